#include "plimsoll/ops/norm.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor sample() { return constant({{3.f, -4.f}, {-6.f, 8.f}, {0.f, 0.f}}); }

TEST(Norm, IsEuclideanByDefault) {
  EXPECT_NEAR(norm(sample()).item<float>(), std::sqrt(125.f), 1e-5f);
  EXPECT_EQ(norm(sample()).shape(), Shape::scalar());
  EXPECT_THAT(norm(sample(), 2, {1}).to_vector<float>(), ElementsAre(5, 10, 0));
  EXPECT_EQ(norm(sample(), 2, {1}, {.keep_dims = true}).shape(), Shape({3, 1}));
  EXPECT_THAT(norm(sample(), "fro", {-1}).to_vector<float>(), ElementsAre(5, 10, 0));
  EXPECT_THAT(norm(sample().cast(f64), 2, {1}).to_vector<double>(), ElementsAre(5, 10, 0));
}

TEST(Norm, ComputesHalvesInFloats) {
  // 300 squared is more than an f16 holds.
  EXPECT_EQ(norm(constant({300.f, 400.f}).cast(f16)).cast(f32).item<float>(), 500);
  EXPECT_EQ(norm(constant({300.f, 400.f}).cast(f16), 3).dtype(), f16);
  EXPECT_THAT(norm(sample().cast(bf16), 2, {1}).cast(f32).to_vector<float>(), ElementsAre(5, 10, 0));
}

TEST(Norm, HasOtherOrders) {
  EXPECT_THAT(norm(sample(), 1, {1}).to_vector<float>(), ElementsAre(7, 14, 0));
  EXPECT_THAT(norm(sample(), kInfinity, {0}).to_vector<float>(), ElementsAre(6, 8));
  EXPECT_THAT(norm(sample(), "inf", {0}, {.keep_dims = true}).to_vector<float>(), ElementsAre(6, 8));
  EXPECT_THAT(norm(sample(), "-inf", {1}).to_vector<float>(), ElementsAre(3, 6, 0));
  EXPECT_THAT(norm(sample(), 0, {1}).to_vector<float>(), ElementsAre(2, 2, 0));
  // (27 + 64)^(1/3), twice that.
  EXPECT_THAT(norm(sample(), 3, {1}).to_vector<float>(),
              Pointwise(FloatNear(1e-5f), std::vector<float>{4.4979414f, 8.9958829f, 0.f}));
}

TEST(Norm, OfNothingIsZeroOrNothing) {
  EXPECT_EQ(norm(zeros({0})).item<float>(), 0);
  EXPECT_EQ(norm(zeros({0, 3}), 2, {1}).shape(), Shape({0}));
  EXPECT_THAT(norm(zeros({2, 0}), 2, {1}).to_vector<float>(), ElementsAre(0, 0));
  EXPECT_EQ(norm(zeros({0}), kInfinity).item<float>(), 0);
  EXPECT_THAT(norm(zeros({2, 0}), "inf", {1}).to_vector<float>(), ElementsAre(0, 0));
}

TEST(Norm, RefusesWhatIsNoNorm) {
  EXPECT_THROW(norm(constant({1, 2})), InvalidArgument);
  EXPECT_THROW(norm(sample(), -1), InvalidArgument);
  EXPECT_THROW(norm(sample(), std::nan("")), InvalidArgument);
  EXPECT_THROW(norm(sample(), "nuc"), InvalidArgument);
  EXPECT_THROW(norm(sample(), 2, {2}), InvalidArgument);
  EXPECT_THROW(norm(Tensor()), Error);
}

TEST(MomentsTest, GivesMeanAndVariance) {
  const auto [mean, variance] = moments(constant({{1.f, 2.f}, {3.f, 6.f}}), {0});
  EXPECT_EQ(mean.shape(), Shape({2}));
  EXPECT_THAT(mean.to_vector<float>(), ElementsAre(2, 4));
  EXPECT_THAT(variance.to_vector<float>(), ElementsAre(1, 4));
  const Moments all = moments(constant({1.f, 3.f}), {}, {.keep_dims = true});
  EXPECT_EQ(all.mean.shape(), Shape({1}));
  EXPECT_EQ(all.variance.shape(), Shape({1}));
  EXPECT_EQ(all.variance.item<float>(), 1);
}

TEST(MomentsTest, AreToBeHadAlone) {
  const Tensor x = constant({{1.f, 2.f}, {3.f, 6.f}});
  EXPECT_THAT(variance(x, {0}).to_vector<float>(), ElementsAre(1, 4));
  EXPECT_THAT(standard_deviation(x, {0}).to_vector<float>(), ElementsAre(1, 2));
  EXPECT_EQ(standard_deviation(x, {1}, {.keep_dims = true}).shape(), Shape({2, 1}));
  EXPECT_EQ(standard_deviation(constant({300.f, -300.f}).cast(f16)).cast(f32).item<float>(), 300);
  EXPECT_THROW(variance(constant({1, 2})), InvalidArgument);
  EXPECT_THROW(standard_deviation(constant({1, 2})), InvalidArgument);
}
TEST(MomentsTest, ComputesHalvesInFloats) {
  // The squares of the differences are more than an f16 holds, their mean is not.
  const Tensor x = constant({300.f, -300.f, 0.f, 0.f}).cast(f16);
  EXPECT_EQ(moments(x).variance.cast(f32).item<float>(), 44992.f);  // The nearest f16 to 45000.
  EXPECT_THROW(moments(constant({1, 2})), InvalidArgument);
}

TEST(L2Normalize, GivesVectorsOfLengthOne) {
  const Tensor y = l2_normalize(sample());
  EXPECT_THAT(y.to_vector<float>(), Pointwise(FloatNear(1e-6f), std::vector<float>{0.6f, -0.8f, -0.6f, 0.8f, 0, 0}));
  EXPECT_NEAR(norm(l2_normalize(sample(), {})).item<float>(), 1, 1e-6f);
  EXPECT_THAT(l2_normalize(constant({300.f, 400.f}).cast(f16)).cast(f32).to_vector<float>(),
              Pointwise(FloatNear(5e-4f), std::vector<float>{0.6f, 0.8f}));
  EXPECT_THROW(l2_normalize(constant({1, 2})), InvalidArgument);
  EXPECT_THROW(l2_normalize(sample(), {-1}, -1), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
