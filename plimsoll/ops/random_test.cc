#include "plimsoll/ops/random.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/philox.h"
#include "plimsoll/device/config.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

using Floats = std::vector<float>;

double mean_of(const Floats& x) {
  double sum = 0;
  for (const float value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double deviation_of(const Floats& x) {
  const double mean = mean_of(x);
  double sum = 0;
  for (const float value : x) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(RandomUniform, GivesTheWordsOfTheGenerator) {
  Philox words(7);
  Floats expected(6);
  for (float& value : expected) value = words.uniform();
  const Tensor x = random_uniform({2, 3}, {.seed = 7});
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_EQ(x.to_vector<float>(), expected);
}

TEST(RandomUniform, StaysInItsRange) {
  const Floats x = random_uniform({100000}, -2, 6.f, {.seed = 1}).to_vector<float>();
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -2);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 6);
  EXPECT_NEAR(mean_of(x), 2, 0.03);
  EXPECT_NEAR(deviation_of(x), 8 / std::sqrt(12.0), 0.03);
}

TEST(RandomUniform, DrawsIntegers) {
  const std::vector<int> x = random_uniform({3000}, -1, 2, {.seed = 3, .dtype = i32}).to_vector<int>();
  for (const int value : {-1, 0, 1}) EXPECT_NEAR(std::count(x.begin(), x.end(), value), 1000, 120);
  EXPECT_THAT(x, Each(::testing::AllOf(::testing::Ge(-1), ::testing::Le(1))));
  EXPECT_EQ(random_uniform({5}, 255, 256, {.dtype = u8}).to_vector<std::uint8_t>(), std::vector<std::uint8_t>(5, 255));
  const std::int64_t large = std::int64_t{1} << 60;
  EXPECT_EQ(random_uniform({1}, large, large + 1, {.dtype = i64}).item<std::int64_t>(), large);
}

TEST(RandomUniform, RefusesWhatIsNoRange) {
  EXPECT_EQ(refusal([] { random_uniform({2}, {.dtype = i32}); }),
            "random_uniform: is not defined for int32; give the range, low and high");
  EXPECT_EQ(refusal([] { random_uniform({2}, 0, 1, {.dtype = boolean}); }),
            "random_uniform: is not defined for bool; use random_bernoulli");
  EXPECT_EQ(refusal([] { random_uniform({2}, 3, 3, {.dtype = i32}); }),
            "random_uniform: no integers from 3 up to, not with, 3");
  EXPECT_EQ(refusal([] { random_uniform({2}, 0, 257, {.dtype = u8}); }),
            "random_uniform: uint8 does not hold all from 0 to 256");
  EXPECT_EQ(refusal([] { random_uniform({2}, 1, 0); }),
            "random_uniform: 1 to 0 is not a range; give finite ends, the lower one first");
  EXPECT_THROW(random_uniform({2}, 0, std::numeric_limits<double>::infinity()), InvalidArgument);
  EXPECT_EQ(refusal([] {
              random_uniform({kUnknownSize, 4});
            }),
            "random_uniform: shape [?, 4] has unknown sizes; give every size");
}

TEST(RandomNormal, HasItsMeanAndDeviation) {
  const Floats x = random_normal({100000}, {.seed = 5}).to_vector<float>();
  EXPECT_NEAR(mean_of(x), 0, 0.02);
  EXPECT_NEAR(deviation_of(x), 1, 0.02);
  const Floats y = random_normal({100000}, 3, 0.5, {.seed = 5}).to_vector<float>();
  EXPECT_NEAR(mean_of(y), 3, 0.01);
  EXPECT_NEAR(deviation_of(y), 0.5, 0.01);
  EXPECT_NEAR(y[17], x[17] * 0.5f + 3, 1e-6f);
}

TEST(RandomNormal, HoldsTheSameDrawsInEveryFloat) {
  const Tensor x = random_normal({9}, {.seed = 5});
  for (const DType dtype : {f16, bf16}) {
    const Tensor y = random_normal({9}, {.seed = 5, .dtype = dtype});
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.cast(f32).to_vector<float>(), x.cast(dtype).cast(f32).to_vector<float>());
  }
  EXPECT_EQ(random_normal({9}, {.seed = 5, .dtype = f64}).cast(f32).to_vector<float>(), x.to_vector<float>());
}

TEST(RandomNormal, RefusesIntegersAndWhatIsNoDeviation) {
  EXPECT_EQ(refusal([] { random_normal({2}, {.dtype = i32}); }),
            "random_normal: is not defined for int32; draw floats and cast them");
  EXPECT_EQ(refusal([] { random_normal({2}, 0, -1); }),
            "random_normal: mean 0 and deviation -1; give finite ones, the deviation 0 or more");
  EXPECT_THROW(truncated_normal({2}, std::nan(""), 1), InvalidArgument);
  EXPECT_THROW(truncated_normal({2}, {.dtype = boolean}), InvalidArgument);
}

TEST(TruncatedNormal, StaysWithinTwoDeviations) {
  const Floats x = truncated_normal({100000}, 1, 2, {.seed = 5}).to_vector<float>();
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -3);
  EXPECT_LE(*std::max_element(x.begin(), x.end()), 5);
  EXPECT_NEAR(mean_of(x), 1, 0.03);
  EXPECT_NEAR(deviation_of(x), 2 * 0.8796, 0.03);  // Of the normal distribution cut at two deviations.
  EXPECT_EQ(truncated_normal({4}, {.seed = 9}).to_vector<float>(),
            truncated_normal({4}, 0, 1, {.seed = 9}).to_vector<float>());
}

TEST(RandomBernoulli, IsOneAsOftenAsAsked) {
  const Floats x = random_bernoulli({100000}, 0.3, {.seed = 5}).to_vector<float>();
  EXPECT_NEAR(mean_of(x), 0.3, 0.01);
  EXPECT_THAT(random_bernoulli({3}, 1, {.dtype = i32}).to_vector<int>(), ElementsAre(1, 1, 1));
  EXPECT_EQ(random_bernoulli({3}, 0, {.dtype = boolean}).any().item<bool>(), false);
  EXPECT_EQ(refusal([] { random_bernoulli({3}, 1.5); }), "random_bernoulli: the probability is 1.5; give 0 to 1");
  EXPECT_THROW(random_bernoulli({3}, std::nan("")), InvalidArgument);
}

TEST(Random, OfNothingIsNothing) {
  EXPECT_EQ(random_normal({0, 4}).shape(), Shape({0, 4}));
  EXPECT_EQ(random_uniform({}).shape(), Shape::scalar());
}

TEST(Random, WithASeedTheSameCallGivesTheSameNumbers) {
  EXPECT_EQ(random_normal({5}, {.seed = 7}).to_vector<float>(), random_normal({5}, {.seed = 7}).to_vector<float>());
  EXPECT_NE(random_normal({5}, {.seed = 7}).to_vector<float>(), random_normal({5}, {.seed = 8}).to_vector<float>());
}

TEST(Random, WithoutASeedEveryCallGoesOn) {
  config::set_seed(42);
  const Floats first = random_uniform({6}).to_vector<float>(), second = random_uniform({4}).to_vector<float>();
  config::set_seed(42);  // The same seed restarts the stream.
  EXPECT_EQ(random_uniform({6}).to_vector<float>(), first);
  EXPECT_EQ(random_uniform({4}).to_vector<float>(), second);
  EXPECT_NE(Floats(first.begin(), first.begin() + 4), second);
  config::set_seed(42);  // The second draw begins with the block after those of the first.
  const Floats all = random_uniform({12}).to_vector<float>();
  EXPECT_EQ(Floats(all.begin() + 8, all.end()), second);
  config::set_seed(43);
  EXPECT_NE(random_uniform({6}).to_vector<float>(), first);
}

TEST(Random, CallsWithTheProcessSeedDrawOtherNumbers) {
  config::set_seed(42);
  EXPECT_NE(random_uniform({6}).to_vector<float>(), random_uniform({6}, {.seed = 42}).to_vector<float>());
}

}  // namespace
}  // namespace plimsoll
