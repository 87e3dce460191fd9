#include "plimsoll/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

namespace plimsoll {
namespace {

static_assert(std::is_trivially_copyable_v<float16> && std::is_trivially_copyable_v<bfloat16>);
static_assert(float16(1.0f).bits() == 0x3c00 && bfloat16(1.0f).bits() == 0x3f80);
static_assert(float16{} == 0.0f);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a pattern by the definition of the format.
float value_by_definition(int bits, int exponent_bits, int mantissa_bits) {
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const float sign = bits & 0x8000 ? -1.f : 1.f;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? std::nanf("") : sign * kInfinity;
  const int units = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(static_cast<float>(units), std::max(exponent, 1) - bias - mantissa_bits);
}

template <class Half>
void expect_every_pattern_reads_and_returns(int exponent_bits, int mantissa_bits) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = Half::from_bits(static_cast<std::uint16_t>(bits));
    const float value = half, expected = value_by_definition(bits, exponent_bits, mantissa_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(Half(value).bits(), bits | 1 << (mantissa_bits - 1)) << "NaN keeps sign and payload, made quiet";
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
      ASSERT_EQ(Half(value).bits(), bits);
      ASSERT_EQ(Half(static_cast<double>(value)).bits(), bits);
    }
  }
}

// Between each two neighbours: the midpoint rounds to the even one, anything else to the nearer one.
template <class Half>
void expect_rounding_between_all_neighbours(int largest_finite, double step_to_infinity) {
  for (int low = 0; low <= largest_finite; ++low) {
    const double below = Half::from_bits(static_cast<std::uint16_t>(low));
    const double above =
        low == largest_finite ? below + step_to_infinity : double{Half::from_bits(static_cast<std::uint16_t>(low + 1))};
    const double middle = (below + above) / 2;
    const int even = low % 2 == 0 ? low : low + 1;
    for (const int sign : {0, 0x8000}) {
      const double direction = sign ? -1 : 1;
      ASSERT_EQ(Half(static_cast<float>(direction * middle)).bits(), even | sign) << low;
      ASSERT_EQ(Half(direction * middle).bits(), even | sign) << low;
      ASSERT_EQ(Half(static_cast<float>(direction) * std::nextafter(static_cast<float>(middle), 0.f)).bits(),
                low | sign);
      ASSERT_EQ(Half(direction * std::nextafter(middle, 0.)).bits(), low | sign) << low;
      ASSERT_EQ(Half(static_cast<float>(direction) * std::nextafter(static_cast<float>(middle), kInfinity)).bits(),
                (low + 1) | sign);
      ASSERT_EQ(Half(direction * std::nextafter(middle, 1e300)).bits(), (low + 1) | sign) << low;
    }
  }
}

TEST(Float16, ReadsEveryPatternAndWritesItBack) { expect_every_pattern_reads_and_returns<float16>(5, 10); }
TEST(BFloat16, ReadsEveryPatternAndWritesItBack) { expect_every_pattern_reads_and_returns<bfloat16>(8, 7); }
TEST(Float16, RoundsToNearestEvenBetweenAllNeighbours) { expect_rounding_between_all_neighbours<float16>(0x7bff, 32); }
TEST(BFloat16, RoundsToNearestEvenBetweenAllNeighbours) {
  expect_rounding_between_all_neighbours<bfloat16>(0x7f7f, 0x1p120);
}

TEST(Float16, OverflowsToInfinityAndUnderflowsToZero) {
  EXPECT_EQ(float16(1e6f).bits(), 0x7c00);
  EXPECT_EQ(float16(-1e300).bits(), 0xfc00);
  EXPECT_EQ(float16(1e-30f).bits(), 0x0000);
  EXPECT_EQ(float16(-std::numeric_limits<float>::denorm_min()).bits(), 0x8000);
  EXPECT_EQ(float16(65519.99f), 65504.f);
  EXPECT_EQ(bfloat16(1e300).bits(), 0x7f80);
  EXPECT_TRUE(std::isnan(float16(std::nan(""))));
  EXPECT_TRUE(std::isnan(bfloat16(std::nan(""))));
}

TEST(Float16, ConvertsFromIntegersAndComputesInFloat) {
  EXPECT_EQ(float16(2049), 2048.f);
  EXPECT_EQ(bfloat16(-3L), -3.f);
  EXPECT_EQ(float16(1.5f) * float16(2.f) + 1, 4.f);
  EXPECT_LT(float16(1.f), bfloat16(2.f));
}

TEST(Float16, HasLimits) {
  using Limits = std::numeric_limits<float16>;
  EXPECT_EQ(Limits::max(), 65504.f);
  EXPECT_EQ(Limits::lowest(), -65504.f);
  EXPECT_EQ(Limits::min(), 0x1p-14f);
  EXPECT_EQ(Limits::denorm_min(), 0x1p-24f);
  EXPECT_EQ(Limits::epsilon(), 0x1p-10f);
  EXPECT_EQ(std::numeric_limits<bfloat16>::epsilon(), 0x1p-7f);
  EXPECT_EQ(std::numeric_limits<bfloat16>::min(), std::numeric_limits<float>::min());
  EXPECT_TRUE(std::isinf(std::numeric_limits<bfloat16>::infinity()));
}

}  // namespace
}  // namespace plimsoll
