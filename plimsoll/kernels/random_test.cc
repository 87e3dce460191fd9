#include "plimsoll/kernels/random.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

struct Moments {
  double mean = 0, deviation = 0, low = 1e300, high = -1e300;
};

Moments moments(const TestTensor& x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) m.mean += x.at(i) / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    m.deviation += (x.at(i) - m.mean) * (x.at(i) - m.mean) / n;
    m.low = std::min(m.low, x.at(i)), m.high = std::max(m.high, x.at(i));
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(Random, UniformFillsItsRange) {
  for (const DType dtype : {f16, bf16, f32, f64}) {
    TestTensor x(dtype, {100001});
    random_uniform({7, 3}, -1, 3, x.view());
    const Moments m = moments(x);
    EXPECT_NEAR(m.mean, 1, 0.02);
    EXPECT_NEAR(m.deviation, 4 / std::sqrt(12.0), 0.02);
    EXPECT_GE(m.low, -1);
    EXPECT_LE(m.high, 3);  // Halves may round up to it.
    if (dtype == f32) {
      EXPECT_LT(m.high, 3);
    }
  }
}

TEST(Random, IntegersAreAllReached) {
  TestTensor x(i32, {10000});
  random_uniform_integers({1, 0}, -2, 3, x.view());
  std::vector<int> counts(5);
  for (std::size_t i = 0; i < x.size(); ++i) ++counts.at(static_cast<std::size_t>(x.at(i) + 2));
  for (const int count : counts) EXPECT_NEAR(count, 2000, 250);
  TestTensor wide(i64, {4});
  random_uniform_integers({1, 0}, INT64_MIN, INT64_MAX, wide.view());
}

TEST(Random, NormalsHaveTheirMoments) {
  TestTensor x(f32, {200000}), y = x;
  random_normal({11, 0}, 5, 2, x.view());
  random_truncated_normal({11, 0}, 5, 2, y.view());
  EXPECT_NEAR(moments(x).mean, 5, 0.03);
  EXPECT_NEAR(moments(x).deviation, 2, 0.03);
  EXPECT_NEAR(moments(y).mean, 5, 0.03);
  EXPECT_NEAR(moments(y).deviation, 2 * 0.8796, 0.03);
  EXPECT_GE(moments(y).low, 1);
  EXPECT_LE(moments(y).high, 9);
}

TEST(Random, BernoulliHitsItsProbability) {
  for (std::size_t d = 0; d < kNumDTypes; ++d) {
    TestTensor x(static_cast<DType>(d), {50000});
    random_bernoulli({3, 0}, 0.3, x.view());
    EXPECT_NEAR(moments(x).mean, 0.3, 0.01);
  }
  TestTensor never(f32, {1000}), always = never;
  random_bernoulli({3, 0}, 0, never.view());
  random_bernoulli({3, 0}, 1, always.view());
  EXPECT_EQ(moments(never).high, 0);
  EXPECT_EQ(moments(always).low, 1);
}

TEST(Random, DrawsAreRepeatableContinuableAndIndependentOfThreads) {
  TestTensor whole(f32, {100000}), again = whole, second(f32, {60000});
  random_normal({5, 9}, 0, 1, whole.view());
  const int threads = num_threads();
  set_num_threads(3);
  random_normal({5, 9}, 0, 1, again.view());
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(whole.data<float>(), again.data<float>(), 400000), 0);
  random_normal({5, 9 + random_blocks(40000)}, 0, 1, second.view());
  EXPECT_EQ(std::memcmp(whole.data<float>() + 40000, second.data<float>(), 240000), 0);
  random_normal({6, 9}, 0, 1, again.view());
  EXPECT_NE(std::memcmp(whole.data<float>(), again.data<float>(), 400000), 0);
}

TEST(Random, EmptyOutputsAreLeftAlone) {
  TestTensor x(f32, {0});
  random_uniform({1, 0}, 0, 1, x.view());
  EXPECT_EQ(random_blocks(0), 0u);
}

}  // namespace
}  // namespace plimsoll
