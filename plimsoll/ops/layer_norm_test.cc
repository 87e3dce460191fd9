#include "plimsoll/ops/layer_norm.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/group_norm.h"
#include "plimsoll/ops/norm.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

void expect_near(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto left = a.cast(f64).to_vector<double>(), right = b.cast(f64).to_vector<double>();
  for (std::size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], right[i], tolerance) << i;
}

Tensor normal(const Shape& shape, std::uint64_t seed) { return random_normal(shape, {.seed = seed, .dtype = f64}); }

Tensor normalized(const Tensor& x, const Axes& axes, double epsilon) {
  const Moments exact = moments(x, axes, {.keep_dims = true});
  return (x - exact.mean) / sqrt(exact.variance + epsilon);
}

TEST(LayerNorm, NormalizesTheLastAxes) {
  const Tensor x = normal({2, 3, 4}, 1), gamma = normal({4}, 2), beta = normal({4}, 3);
  expect_near(layer_norm(x, gamma, beta), normalized(x, {2}, 1e-3) * gamma + beta);
  expect_near(layer_norm(x, {}, beta), normalized(x, {2}, 1e-3) + beta);
  const Tensor wide = normal({3, 4}, 4);
  expect_near(layer_norm(x, wide, {}, {.epsilon = 0.5, .axis = 1}), normalized(x, {1, 2}, 0.5) * wide);
}

TEST(GroupNorm, NormalizesTheChannelsOfAGroup) {
  const Tensor x = normal({2, 3, 2, 6}, 1), gamma = normal({6}, 2), beta = normal({6}, 3);
  const Tensor exact = normalized(x.reshape({2, 6, 3, 2}), {1, 3}, 1e-3).reshape(x.shape());
  expect_near(group_norm(x, 3, gamma, beta), exact * gamma + beta);
  expect_near(group_norm(x, 6, {}, {}, {.epsilon = 0.1}), normalized(x, {1, 2}, 0.1));
}

TEST(LayerNorm, TakesEmptyBatchesAndHalves) {
  EXPECT_EQ(layer_norm(zeros({0, 4}), ones({4}), {}).shape(), (Shape{0, 4}));
  EXPECT_EQ(group_norm(zeros({0, 4}), 2, ones({4}), {}).shape(), (Shape{0, 4}));
  const Tensor x = normal({5, 8}, 1);
  expect_near(layer_norm(x.cast(f16), {}, {}), layer_norm(x, {}, {}), 0.01);
  expect_near(group_norm(x.cast(bf16), 2, {}, {}), group_norm(x, 2, {}, {}), 0.05);
}

TEST(LayerNorm, RefusesWhatDoesNotGoTogether) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_EQ(refusal([&] { layer_norm(x, zeros({3}), {}); }), "layer_norm: gamma is [3], x [2, 3, 4]; give it as [4]");
  EXPECT_EQ(refusal([&] { layer_norm(x, {}, zeros({4}), {.axis = 1}); }),
            "layer_norm: beta is [4], x [2, 3, 4]; give it as [3, 4]");
  EXPECT_EQ(refusal([&] { layer_norm(x, {}, {}, {.epsilon = -1}); }), "layer_norm: epsilon is -1; give 0 or more");
  EXPECT_THROW(layer_norm(x, {}, {}, {.axis = 3}), InvalidArgument);
  EXPECT_THROW(layer_norm(Tensor(), {}, {}), Error);
  EXPECT_NE(refusal([&] { layer_norm(x.cast(i32), {}, {}); }).find("int32"), std::string::npos);
}

TEST(GroupNorm, RefusesWhatDoesNotGoTogether) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_EQ(refusal([&] { group_norm(x, 3, {}, {}); }),
            "group_norm: 3 groups, x [2, 3, 4] has 4 channels; give groups that divide them");
  EXPECT_THROW(group_norm(x, 0, {}, {}), InvalidArgument);
  EXPECT_THROW(group_norm(zeros({4}), 2, {}, {}), InvalidArgument);
  EXPECT_THROW(group_norm(x, 2, zeros({3}), {}), InvalidArgument);
  EXPECT_THROW(group_norm(x, 2, {}, {}, {.epsilon = -1}), InvalidArgument);
  EXPECT_THROW(group_norm(x.cast(i32), 2, {}, {}), InvalidArgument);
  EXPECT_THROW(group_norm(Tensor(), 2, {}, {}), Error);
}

}  // namespace
}  // namespace plimsoll
