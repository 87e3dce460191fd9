// Gradients of convolutions, of first and second order, against differences of values; and what a tape saves for them.
#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

struct Case {
  const char* name;
  Shape x, filter;
  ConvOptions options = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Conv2dGradient : public testing::TestWithParam<Case> {};

TEST_P(Conv2dGradient, IsThatOfSmallSteps) {
  const Case& c = GetParam();
  expect_gradients([&](const Tensors& x) { return conv2d(x[0], x[1], c.options); },
                   {varied(c.x), varied(c.filter, -1, 1, 0.6)});
}

INSTANTIATE_TEST_SUITE_P(
    , Conv2dGradient,
    testing::Values(Case{"one element", {1, 1, 1, 1}, {1, 1, 1, 1}}, Case{"valid", {2, 4, 5, 2}, {3, 2, 2, 3}},
                    Case{"same", {1, 4, 3, 2}, {3, 3, 2, 3}, {.padding = "same"}},
                    Case{"strided", {1, 5, 4, 1}, {2, 3, 1, 2}, {.strides = 2, .padding = "same"}},
                    Case{"stride beyond the window", {1, 5, 5, 1}, {1, 2, 1, 2}, {.strides = 3}},
                    Case{"dilated", {1, 5, 5, 1}, {2, 2, 1, 2}, {.dilations = {2, 3}}},
                    Case{"zeros around", {1, 5, 4, 2}, {3, 3, 2, 2}, {.strides = 2, .around = {{1, 0, 2, 1}}}},
                    Case{"groups", {1, 3, 3, 4}, {2, 2, 2, 6}, {.groups = 2}}));

TEST(ConvolutionGradient, OfOneDimensionIsThatOfSmallSteps) {
  for (const char* padding : {"valid", "same", "causal"})
    expect_gradients([&](const Tensors& x) { return conv1d(x[0], x[1], {.padding = padding, .dilations = 2}); },
                     {varied({2, 7, 2}), varied({3, 2, 3}, -1, 1, 0.6)});
}

TEST(ConvolutionGradient, OfDepthwiseIsThatOfSmallSteps) {
  expect_gradients([](const Tensors& x) { return depthwise_conv2d(x[0], x[1], {.padding = "same"}); },
                   {varied({1, 3, 4, 3}), varied({2, 3, 3, 2}, -1, 1, 0.6)});
}

TEST(ConvolutionGradient, OfTransposedIsThatOfSmallSteps) {
  for (const char* padding : {"valid", "same"})
    expect_gradients([&](const Tensors& x) { return conv2d_transpose(x[0], x[1], {.strides = 2, .padding = padding}); },
                     {varied({1, 2, 3, 2}), varied({3, 3, 3, 2}, -1, 1, 0.6)});
}

TEST(ConvolutionGradient, OfFusedBiasAndActivationIsThatOfSmallSteps) {
  for (const char* activation : {"linear", "relu", "sigmoid", "tanh"})
    expect_gradients([&](const Tensors& x) { return conv2d_bias_activation(x[0], x[1], x[2], activation); },
                     {varied({1, 3, 4, 2}), varied({2, 2, 2, 3}, -1, 1, 0.6), varied({3}, -1, 1, 0.2)});
}

TEST(ConvolutionGradient, OfFusedHasTheBitsOfUnfused) {
  const Tensor x = varied({2, 6, 5, 3}).cast(f32), filter = varied({3, 3, 3, 5}, -1, 1, 0.6).cast(f32);
  const Tensor bias = varied({5}, -1, 1, 0.2).cast(f32);
  const auto gradients = [&](bool fused) {
    GradientTape tape;
    for (const Tensor& source : {x, filter, bias}) tape.watch(source);
    const Tensor y = fused ? conv2d_bias_activation(x, filter, bias, "relu") : relu(conv2d(x, filter) + bias);
    Tensors all = tape.gradient(y * y, {x, filter, bias});
    all.push_back(y);
    return all;
  };
  const Tensors fused = gradients(true), unfused = gradients(false);
  for (std::size_t i = 0; i < fused.size(); ++i)
    EXPECT_EQ(fused[i].to_vector<float>(), unfused[i].to_vector<float>()) << i;
}

TEST(ConvolutionGradient, OfAnEmptyBatchIsZero) {
  const Tensor x = zeros({0, 5, 5, 2}), filter = ones({3, 3, 2, 4});
  GradientTape tape;
  tape.watch(x);
  tape.watch(filter);
  const Tensors gradients = tape.gradient(conv2d(x, filter).sum(), {x, filter});
  EXPECT_EQ(gradients[0].shape(), x.shape());
  EXPECT_EQ(gradients[1].to_vector<float>(), std::vector<float>(72, 0.f));
}

TEST(ConvolutionGradient, SavesABitPerOutputOfAFusedRelu) {
  const Tensor x = ones({4, 16, 16, 2}), filter = ones({1, 1, 2, 4}), bias = ones({4});
  const std::size_t before = memory().num_bytes;
  GradientTape tape;
  tape.watch(bias);
  const Tensor sum = conv2d_bias_activation(x, filter, bias, "relu").sum();
  EXPECT_EQ(memory().num_bytes - before, 4 * 16 * 16 * 4 / 8 + sizeof(float));
}

TEST(ConvolutionGradient, SavesOnlyWhatIsRead) {
  const Tensor filter = ones({3, 3, 2, 4});
  const std::size_t before = memory().num_bytes;
  GradientTape tape;
  tape.watch(filter);
  Tensor y;
  {
    const Tensor x = ones({4, 16, 16, 2});
    const Tensor h = conv2d(x, filter);  // Its input is not watched: the filter's gradient reads it, nothing reads h.
    y = h.sum();
  }
  EXPECT_EQ(memory().num_bytes - before, 4 * 16 * 16 * 2 * sizeof(float) + sizeof(float));
}

}  // namespace
}  // namespace plimsoll
