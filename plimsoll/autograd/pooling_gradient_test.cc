// Gradients of poolings, of first and second order, against differences of values; and what a tape saves for them.
#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

struct Case {
  const char* name;
  Shape x;
  SpatialSize size;
  PoolOptions options = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Pool2dGradient : public testing::TestWithParam<Case> {};

TEST_P(Pool2dGradient, OfTheMaximumIsThatOfSmallSteps) {
  const Case& c = GetParam();
  expect_gradients([&](const Tensors& x) { return square(max_pool2d(square(x[0]), c.size, c.options)); },
                   {varied(c.x)});
}

TEST_P(Pool2dGradient, OfTheAverageIsThatOfSmallSteps) {
  const Case& c = GetParam();
  expect_gradients([&](const Tensors& x) { return square(avg_pool2d(x[0], c.size, c.options)); }, {varied(c.x)});
}

INSTANTIATE_TEST_SUITE_P(, Pool2dGradient,
                         testing::Values(Case{"one element", {1, 1, 1, 1}, 1}, Case{"halves", {2, 4, 6, 3}, {2, 2}},
                                         Case{"a rest", {1, 5, 7, 2}, {2, 3}},
                                         Case{"same", {1, 5, 4, 3}, 3, {.padding = "same"}},
                                         Case{"overlapping", {1, 5, 5, 2}, 3, {.strides = 1}},
                                         Case{"stride beyond the window", {1, 7, 7, 1}, 2, {.strides = 3}},
                                         Case{"many channels", {1, 4, 4, 9}, 2},
                                         Case{"a large window", {1, 6, 6, 1}, 5, {.strides = 1, .padding = "same"}}));

TEST(PoolingGradient, OfOneDimensionIsThatOfSmallSteps) {
  for (const char* padding : {"valid", "same"}) {
    expect_gradients([&](const Tensors& x) { return max_pool1d(square(x[0]), 3, {.padding = padding}); },
                     {varied({2, 7, 2})});
    expect_gradients([&](const Tensors& x) { return avg_pool1d(square(x[0]), 3, {2, padding}); }, {varied({2, 7, 2})});
  }
}

TEST(PoolingGradient, OfGlobalPoolingIsThatOfSmallSteps) {
  expect_gradients([](const Tensors& x) { return global_avg_pool(square(x[0])); }, {varied({2, 3, 4, 2})});
  expect_gradients([](const Tensors& x) { return global_max_pool(square(x[0])); }, {varied({2, 3, 4, 2})});
}

TEST(PoolingGradient, OfAMaximumGoesToTheFirstOfEquals) {
  const Tensor x = ones({1, 2, 4, 1});
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(max_pool2d(x, 2), x).to_vector<float>(), (std::vector<float>{1, 0, 1, 0, 0, 0, 0, 0}));
}

TEST(PoolingGradient, OfAMaximumSavesTwoBitsPerOutput) {
  const Tensor x = ones({4, 16, 16, 8});
  const std::size_t before = memory().num_bytes;
  GradientTape tape;
  tape.watch(x);
  const Tensor sum = max_pool2d(x, 2).sum();
  EXPECT_EQ(memory().num_bytes - before, 4 * 8 * 8 * 8 / 4 + sizeof(float));
}

TEST(PoolingGradient, IsTheSameWithMorePositionsThanABytesCodes) {  // 32 bits each.
  const Tensor x = varied({1, 17, 17, 2});
  GradientTape tape;
  tape.watch(x);
  const Tensor gradient = tape.gradient(max_pool2d(x, 17), x);
  const Tensor wanted = (x == x.max({1, 2}, {.keep_dims = true})).cast(f64);
  EXPECT_EQ(gradient.to_vector<double>(), wanted.to_vector<double>());
}

}  // namespace
}  // namespace plimsoll
