#include "plimsoll/ops/convolution.h"

#include <gtest/gtest.h>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/internal/convolution_ops.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

TEST(Convolution, ZerosAroundAreThoseOfAPaddedImage) {
  const Tensor x = random_normal({2, 6, 7, 4}, {.seed = 3}), filter = random_normal({3, 3, 4, 5}, {.seed = 4});
  const ConvOptions options{.strides = 2, .around = {{1, 0, 2, 1}}};
  const Tensor padded = pad(x, {{0, 0}, {1, 0}, {2, 1}, {0, 0}});
  EXPECT_EQ(conv2d(x, filter, options).to_vector<float>(), conv2d(padded, filter, {.strides = 2}).to_vector<float>());
  EXPECT_THROW(conv2d(x, filter, {.around = {{-1, 0, 0, 0}}}), InvalidArgument);
  EXPECT_THROW(conv2d_transpose(x, filter, {.around = {{1, 1, 1, 1}}}), InvalidArgument);
}

TEST(Conv2d, IsTheSumOfProducts) {
  const Tensor x = arange(0, 12).cast(f32).reshape({1, 3, 4, 1}),
               filter = constant({1.f, 2.f, 3.f, 4.f}).reshape({2, 2, 1, 1});
  const Tensor y = conv2d(x, filter);
  EXPECT_EQ(y.shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{34, 44, 54, 74, 84, 94}));
}

TEST(Conv2d, PadsAsTensorFlowDoes) {
  const Tensor filter = ones({2, 2, 1, 1});
  const auto sums = [&](std::int64_t size, const ConvOptions& options) {
    return conv2d(ones({1, size, size, 1}), filter, options).to_vector<float>();
  };
  EXPECT_EQ(sums(3, {.padding = "same"}), (std::vector<float>{4, 4, 2, 4, 4, 2, 2, 2, 1}));  // The odd one at the end.
  EXPECT_EQ(sums(3, {.strides = 2, .padding = "same"}), (std::vector<float>{4, 2, 2, 1}));
  EXPECT_EQ(sums(3, {.strides = {1, 2}, .padding = "SAME"}), (std::vector<float>{4, 2, 4, 2, 2, 1}));
  EXPECT_EQ(sums(3, {.padding = "same", .dilations = 2}), (std::vector<float>{1, 2, 1, 2, 4, 2, 1, 2, 1}));
  EXPECT_EQ(conv2d(ones({1, 5, 5, 1}), filter, {.strides = 3, .padding = "valid"}).shape(), (Shape{1, 2, 2, 1}));
}

TEST(Conv2d, KeepsGroupsApart) {
  const Tensor x = constant({1.f, 10.f, 100.f, 1000.f}).reshape({1, 1, 1, 4});
  const Tensor y = conv2d(x, ones({1, 1, 2, 2}), {.groups = 2});
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{11, 1100}));
}

TEST(Conv2d, TakesEmptyBatchesAndHalves) {
  EXPECT_EQ(conv2d(zeros({0, 5, 5, 2}), ones({3, 3, 2, 4})).shape(), (Shape{0, 3, 3, 4}));
  const Tensor half = conv2d(ones({1, 3, 3, 2}, f16), ones({3, 3, 2, 1}, f16));
  EXPECT_EQ(half.dtype(), f16);
  EXPECT_EQ(half.item<float>(), 18.f);
}

TEST(Conv2d, IsTheSameWithAnyNumberOfThreads) {
  const Tensor x = random_normal({8, 20, 21, 7}, {.seed = 1}), filter = random_normal({3, 3, 7, 19}, {.seed = 2});
  const int threads = num_threads();
  set_num_threads(1);
  const auto one = conv2d(x, filter, {.padding = "same"}).to_vector<float>();
  set_num_threads(2);
  const auto two = conv2d(x, filter, {.padding = "same"}).to_vector<float>();
  set_num_threads(threads);
  EXPECT_EQ(one, two);
}

TEST(Conv1d, SeesNothingThatComesAfterWhenCausal) {
  const Tensor x = constant({1.f, 10.f, 100.f, 1000.f}).reshape({1, 4, 1}), filter = ones({2, 1, 1});
  const auto values = [&](const Conv1dOptions& options) { return conv1d(x, filter, options).to_vector<float>(); };
  EXPECT_EQ(values({.padding = "causal"}), (std::vector<float>{1, 11, 110, 1100}));
  EXPECT_EQ(values({.padding = "causal", .dilations = 2}), (std::vector<float>{1, 10, 101, 1010}));
  EXPECT_EQ(values({.padding = "same"}), (std::vector<float>{11, 110, 1100, 1000}));
  EXPECT_EQ(values({.strides = 2}), (std::vector<float>{11, 1100}));
}

TEST(DepthwiseConv2d, GivesEachChannelItsOwnFilters) {
  const Tensor x = constant({1.f, 10.f}).reshape({1, 1, 1, 2});
  const Tensor filter = constant({1.f, 2.f, 3.f, 4.f}).reshape({1, 1, 2, 2});
  EXPECT_EQ(depthwise_conv2d(x, filter).to_vector<float>(), (std::vector<float>{1, 2, 30, 40}));
}

TEST(Conv2dTranspose, SpreadsItsInput) {
  const Tensor x = constant({1.f, 10.f}).reshape({1, 1, 2, 1}),
               filter = constant({1.f, 2.f, 3.f}).reshape({1, 3, 1, 1});
  const auto values = [&](const ConvOptions& options) {
    return conv2d_transpose(x, filter, options).to_vector<float>();
  };
  EXPECT_EQ(values({}), (std::vector<float>{1, 12, 23, 30}));
  EXPECT_EQ(values({.strides = {1, 2}}), (std::vector<float>{1, 2, 13, 20, 30}));
  EXPECT_EQ(values({.strides = {1, 2}, .padding = "same"}), (std::vector<float>{1, 2, 13, 20}));
  EXPECT_EQ(values({.strides = {1, 4}}), (std::vector<float>{1, 2, 3, 0, 10, 20, 30, 0}));
  EXPECT_EQ(
      conv2d_transpose(ones({2, 4, 4, 6}), ones({3, 3, 2, 6}), {.strides = 2, .padding = "same", .groups = 3}).shape(),
      (Shape{2, 8, 8, 6}));
}

TEST(Conv2dBiasActivation, HasTheBitsOfItsSteps) {
  const Tensor x = random_normal({2, 9, 8, 5}, {.seed = 1}), filter = random_normal({3, 3, 5, 13}, {.seed = 2});
  const Tensor bias = random_normal({13}, {.seed = 3}), plain = conv2d(x, filter) + bias;
  const auto fused = [&](const char* word) { return conv2d_bias_activation(x, filter, bias, word).to_vector<float>(); };
  EXPECT_EQ(fused("linear"), plain.to_vector<float>());
  EXPECT_EQ(fused("relu"), relu(plain).to_vector<float>());
  EXPECT_EQ(fused("sigmoid"), sigmoid(plain).to_vector<float>());
  EXPECT_EQ(fused("tanh"), tanh(plain).to_vector<float>());
}

TEST(Convolution, InfersUnknownSizes) {
  const Convolve op({"conv2d", 2, 2, 1, PaddingRule::same, 1, false});
  const Shape x = {kUnknownSize, kUnknownSize, 9, 3}, filter = {3, 3, 3, 8};
  const SpecRef specs[] = {{&x, f32}, {&filter, f32}};
  SpecList out;
  op.infer(Specs(specs), out);
  EXPECT_EQ(out[0].shape, (Shape{kUnknownSize, kUnknownSize, 5, 8}));
}

TEST(Convolution, RefusesWhatDoesNotGoTogether) {
  const Tensor x = zeros({1, 4, 4, 3}), filter = zeros({3, 3, 3, 8});
  EXPECT_EQ(refusal([&] {
              conv2d(x, zeros({3, 3, 2, 8}));
            }),
            "conv2d: x [1, 4, 4, 3] has 3 channels, the filter [3, 3, 2, 8] is for 2");
  EXPECT_EQ(refusal([&] {
              conv2d(zeros({4, 4, 3}), filter);
            }),
            "conv2d: x is [4, 4, 3], the filter [3, 3, 3, 8]; give x as [batch, rows, columns, channels] and a filter "
            "of 4 axes");
  EXPECT_EQ(refusal([&] {
              conv2d(x, zeros({5, 3, 3, 8}));
            }),
            "conv2d: the filter [5, 3, 3, 8] is larger than x [1, 4, 4, 3]; use padding \"same\" or a larger x");
  EXPECT_EQ(refusal([&] { conv2d(x, filter, {.strides = {1, 0}}); }), "conv2d: strides are 1 and 0; give 1 or more");
  EXPECT_EQ(refusal([&] { conv2d(x, filter, {.dilations = -1}); }), "conv2d: dilations are -1 and -1; give 1 or more");
  EXPECT_EQ(refusal([&] { conv2d(x, filter, {.padding = "same", .dilations = std::int64_t{1} << 62}); }),
            "conv2d: dilations are 4611686018427387904 and 4611686018427387904; give at most 16777216");
  EXPECT_EQ(refusal([&] { conv2d(x, filter, {.padding = "full"}); }),
            "conv2d: padding is \"full\"; give \"valid\" or \"same\"");
  EXPECT_EQ(refusal([&] {
              conv1d(zeros({1, 4, 3}), zeros({2, 3, 1}), {.padding = "full"});
            }),
            "conv1d: padding is \"full\"; give \"valid\", \"same\" or \"causal\"");
  EXPECT_EQ(refusal([&] {
              conv2d(x, zeros({3, 3, 1, 8}), {.groups = 3});
            }),
            "conv2d: the filter [3, 3, 1, 8] has 8 output channels, which 3 groups do not divide");
  EXPECT_EQ(refusal([&] { conv2d(x, filter, {.groups = 0}); }), "conv2d: groups are 0; give 1 or more");
  EXPECT_EQ(refusal([&] { conv2d(x, zeros({0, 3, 3, 8})); }), "conv2d: the filter [0, 3, 3, 8] has no taps");
  EXPECT_EQ(refusal([&] { conv2d_transpose(x, filter); }),
            "conv2d_transpose: x [1, 4, 4, 3] has 3 channels, the filter [3, 3, 3, 8] is for 8");
  EXPECT_EQ(refusal([&] { conv2d_transpose(x, filter, {.groups = 0}); }),
            "conv2d_transpose: groups are 0; give 1 or more");
  EXPECT_EQ(refusal([&] { conv2d_bias_activation(x, filter, zeros({3})); }),
            "conv2d_bias_activation: bias is [3], the filter [3, 3, 3, 8] has 8 output channels; give one for each");
  EXPECT_NE(refusal([&] { conv2d_bias_activation(x, filter, zeros({8}), "gelu"); }).find("\"gelu\""),
            std::string::npos);
  EXPECT_NE(refusal([&] { conv2d(x.cast(i32), filter.cast(i32)); }).find("int32"), std::string::npos);
  EXPECT_NE(refusal([&] { conv2d(x, filter.cast(f64)); }).find("float64"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll
