#include "plimsoll/ops/softmax.h"

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

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// NumPy: e = exp([1, 2, 3]); e / e.sum(); and its logarithm.
const std::vector<float> kSoftmax = {0.09003057f, 0.24472847f, 0.66524096f};
const std::vector<float> kLogSoftmax = {-2.4076060f, -1.4076060f, -0.4076060f};

TEST(Softmax, SharesOneAmongTheLastAxis) {
  const Tensor y = softmax(constant({{1.f, 2.f, 3.f}, {1001.f, 1002.f, 1003.f}}));
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  std::vector<float> twice = kSoftmax;
  twice.insert(twice.end(), kSoftmax.begin(), kSoftmax.end());
  EXPECT_THAT(y.to_vector<float>(), Pointwise(FloatNear(1e-6f), twice));
}

TEST(Softmax, WorksAlongAnyAxis) {
  // The rows of the last axis, put along the first and the middle one.
  const Tensor first = softmax(constant({{1.f, 4.f}, {2.f, 5.f}, {3.f, 6.f}}), 0);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      EXPECT_NEAR(first.at<float>({i, j}), kSoftmax[static_cast<std::size_t>(i)], 1e-6f);
  const Tensor x = arange(0.f, 24.f).reshape({2, 3, 4}), middle = log_softmax(x * 0.25f, -2);
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 4; ++j)
        EXPECT_NEAR(middle.at<float>({b, i, j}), kLogSoftmax[static_cast<std::size_t>(i)], 2e-6f);
  EXPECT_THAT(softmax(constant({1.f, 2.f, 3.f}).reshape({3, 1, 1}), 0).to_vector<float>(),
              Pointwise(FloatNear(1e-6f), kSoftmax));
}

TEST(Softmax, WorksInEveryFloat) {
  const Tensor x = constant({1.f, 2.f, 3.f}), column = x.reshape({3, 1}) + zeros({1, 2});
  for (const DType dtype : {f16, bf16, f64}) {
    const float error = dtype == f64 ? 1e-7f : dtype == f16 ? 5e-4f : 4e-3f;
    EXPECT_EQ(softmax(x.cast(dtype)).dtype(), dtype);
    EXPECT_THAT(softmax(x.cast(dtype)).cast(f32).to_vector<float>(), Pointwise(FloatNear(error), kSoftmax));
    EXPECT_NEAR(softmax(column.cast(dtype), 0).cast(f32).at<float>({2, 1}), kSoftmax[2], error);
  }
}

TEST(LogSoftmax, IsTheLogarithm) {
  EXPECT_THAT(log_softmax(constant({1.f, 2.f, 3.f})).to_vector<float>(), Pointwise(FloatNear(1e-6f), kLogSoftmax));
}

TEST(Softmax, OfNothingIsNothing) {
  EXPECT_EQ(softmax(zeros({0, 3})).shape(), Shape({0, 3}));
  EXPECT_EQ(softmax(zeros({2, 0})).shape(), Shape({2, 0}));
  EXPECT_EQ(softmax(zeros({2, 0, 3}), 1).shape(), Shape({2, 0, 3}));
}

TEST(Softmax, RefusesIntegersAndAxesThatAreNotThere) {
  EXPECT_THROW(softmax(constant({1, 2})), InvalidArgument);
  EXPECT_THROW(softmax(zeros({2, 3}), 2), InvalidArgument);
  EXPECT_THROW(softmax(constant(1.f)), InvalidArgument);
  EXPECT_THROW(softmax(Tensor()), Error);
}

TEST(LogSumExp, SumsOverAxes) {
  const Tensor x = constant({{1.f, 2.f, 3.f}, {1000.f, 1000.f, -kInfinity}});
  EXPECT_THAT(log_sum_exp(x, {1}).to_vector<float>(),
              Pointwise(FloatNear(1e-4f), std::vector<float>{3.4076060f, 1000.6931f}));
  EXPECT_EQ(log_sum_exp(x, {1}, {.keep_dims = true}).shape(), Shape({2, 1}));
  EXPECT_NEAR(log_sum_exp(x).item<float>(), 1000.6931f, 1e-4f);
  EXPECT_THAT(log_sum_exp(x, {0}).to_vector<float>(), ElementsAre(1000, 1000, 3));
  EXPECT_NEAR(log_sum_exp(constant({1.f, 2.f, 3.f}).cast(f16)).cast(f32).item<float>(), 3.4076060f, 2e-3f);
  EXPECT_NEAR(log_sum_exp(constant({1.0, 2.0, 3.0})).item<double>(), 3.40760596444438, 1e-12);
}

TEST(LogSumExp, KeepsInfinities) {
  EXPECT_EQ(log_sum_exp(constant({-kInfinity, -kInfinity})).item<float>(), -kInfinity);
  EXPECT_EQ(log_sum_exp(constant({kInfinity, 1.f})).item<float>(), kInfinity);
  EXPECT_EQ(log_sum_exp(zeros({2, 0}), {1}).to_vector<float>(), std::vector<float>(2, -kInfinity));
  EXPECT_EQ(log_sum_exp(zeros({0, 2}), {1}).shape(), Shape({0}));
}

TEST(LogSumExp, RefusesIntegersAndAxesThatAreNotThere) {
  EXPECT_THROW(log_sum_exp(constant({1, 2})), InvalidArgument);
  EXPECT_THROW(log_sum_exp(zeros({2}), {1}), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
