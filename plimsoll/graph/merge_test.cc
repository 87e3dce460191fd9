// Repeated expressions are computed once: ops are distinguished by their attributes, whatever lies between those in
// memory.
#include <gtest/gtest.h>

#include "plimsoll/graph/function.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

using T = Tensor;

// Leaves other bytes on the stack each time, where ops will be made.
__attribute__((noinline)) void scribble(int pattern) {
  volatile unsigned char bytes[4096];
  for (volatile unsigned char& byte : bytes) byte = static_cast<unsigned char>(pattern * 37 + 11);
}

// The callable's result is computed twice and joined: as many steps as for it once, and one more, at every trace.
template <class F>
void expect_merged(F callable, const T& x) {
  const auto once = function(callable);
  const auto twice = [&](int pattern) {
    return function([&, pattern](T in) {
      scribble(pattern);
      const T first = callable(in);
      scribble(pattern + 1);
      return first + callable(in);
    });
  };
  const std::size_t steps = once.memory_plan(x).order.size();
  for (int pattern = 0; pattern < 8; ++pattern) {
    const auto f = twice(pattern);
    EXPECT_EQ(f.memory_plan(x).order.size(), steps + 1) << pattern;
    EXPECT_EQ(f(x).template to_vector<float>(), (callable(x) + callable(x)).template to_vector<float>());
  }
}

TEST(Merge, DoesNotDependOnWhatLiesBetweenAttributes) {
  const T image = random_normal({1, 8, 8, 4}, {.seed = 1}), matrix = random_normal({8, 16}, {.seed = 2});
  const T filter = random_normal({3, 3, 4, 4}, {.seed = 3}), four = ones({4}),
          weights = random_normal({16, 16}, {.seed = 4});
  expect_merged([](T x) { return x * 2.5f; }, matrix);
  expect_merged([](T x) { return 1.f - x; }, matrix);
  expect_merged([&](T x) { return conv2d(x, filter, {.strides = 2, .padding = "same"}); }, image);
  expect_merged([&](T x) { return conv2d_bias_activation(x, filter, four, "relu"); }, image);
  expect_merged([](T x) { return max_pool2d(x, 2); }, image);
  expect_merged([](T x) { return avg_pool2d(x, 2); }, image);
  expect_merged([&](T x) { return batch_norm_inference(x, four, four, four, four); }, image);
  expect_merged([](T x) { return layer_norm(x, ones({16}), zeros({16})); }, matrix);
  expect_merged([&](T x) { return matmul(x, weights, {.transpose_b = true}); }, matrix);
  expect_merged([](T x) { return softmax(x, 0); }, matrix);
  expect_merged([](T x) { return x.sum({1}, {.keep_dims = true}); }, matrix);
  expect_merged([](T x) { return x.transpose(); }, matrix);
  expect_merged([](T x) { return mean_squared_error(x, x * 0.5f); }, matrix);
  expect_merged([](T x) { return scaled_dot_product_attention(x, x, x, {.causal = true}); }, image);
  expect_merged([](T x) { return x + full({8, 16}, 0.25f); }, matrix);
}

TEST(Merge, TellsAttributesApart) {
  const T x = random_normal({4, 4}, {.seed = 1});
  const auto steps = [&](auto callable) {
    const auto f = function(callable);
    EXPECT_EQ(f(x).template to_vector<float>(), callable(x).template to_vector<float>());
    return f.memory_plan(x).order.size();
  };
  EXPECT_EQ(steps([](T a) { return a * 2.f + a * 3.f; }), 3u);
  EXPECT_EQ(steps([](T a) { return 1.f / (a * 0.f) * (1.f / (a * -0.f)); }), 5u);
  EXPECT_EQ(steps([](T a) { return softmax(a, 0) + softmax(a, 1); }), 3u);
  EXPECT_EQ(steps([](T a) { return matmul(a, a) + matmul(a, a, {.transpose_a = true}); }), 3u);
  EXPECT_EQ(steps([](T a) { return a.sum({0}) + a.sum({1}); }), 3u);
  EXPECT_EQ(steps([](T a) { return a.sum({0}) + a.mean({0}); }), 3u);
  EXPECT_EQ(steps([](T a) { return a - 2.f + (2.f - a); }), 3u);
}

}  // namespace
}  // namespace plimsoll
