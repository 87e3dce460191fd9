#include "plimsoll/tensor/number.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace plimsoll {
namespace {

template <Element T>
T as(const Number& number) {
  const std::uint64_t bytes = number.to(kDTypeOf<T>);
  T element;
  std::memcpy(static_cast<void*>(&element), &bytes, sizeof element);
  return element;
}

TEST(Number, KnowsTheDtypeOfItsCppType) {
  EXPECT_EQ(Number(1).dtype(), i32);
  EXPECT_EQ(Number(1L).dtype(), i64);
  EXPECT_EQ(Number(std::size_t{1}).dtype(), i64);
  EXPECT_EQ(Number(std::uint8_t{1}).dtype(), u8);
  EXPECT_EQ(Number(true).dtype(), boolean);
  EXPECT_EQ(Number(1.f).dtype(), f32);
  EXPECT_EQ(Number(1.0).dtype(), f64);
  EXPECT_EQ(Number(float16(1.f)).dtype(), f16);
  EXPECT_EQ(Number(bfloat16(1.f)).dtype(), bf16);
}

TEST(Number, KeepsLargeIntegersWhole) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(as<std::int64_t>(Number(kLarge)), kLarge);
  EXPECT_TRUE(Number(kLarge).is_integer());
}

TEST(Number, ConvertsToEveryDtype) {
  EXPECT_EQ(as<float>(Number(3)), 3.f);
  EXPECT_EQ(as<double>(Number(0.1)), 0.1);
  EXPECT_EQ(static_cast<float>(as<float16>(Number(0.5f))), 0.5f);
  EXPECT_EQ(static_cast<float>(as<bfloat16>(Number(3))), 3.f);
  EXPECT_EQ(as<bool>(Number(2)), true);
  EXPECT_EQ(as<bool>(Number(0.0)), false);
  EXPECT_EQ(as<bool>(Number(0.25f)), true);
  EXPECT_EQ(as<std::int16_t>(Number(-7)), -7);
  EXPECT_EQ(as<std::uint8_t>(Number(200)), 200);
}

TEST(Number, TruncatesTowardsZeroAndStopsAtTheEnds) {
  EXPECT_EQ(as<int>(Number(2.9f)), 2);
  EXPECT_EQ(as<int>(Number(-2.9f)), -2);
  EXPECT_EQ(as<int>(Number(1e20)), std::numeric_limits<int>::max());
  EXPECT_EQ(as<std::int8_t>(Number(-1e20)), -128);
  EXPECT_EQ(as<std::int64_t>(Number(1e300)), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(as<int>(Number(std::numeric_limits<double>::quiet_NaN())), 0);
}

TEST(Number, KeepsInfinities) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(as<float>(Number(-kInfinity)), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(Number(kInfinity).as_double(), kInfinity);
}

}  // namespace
}  // namespace plimsoll
