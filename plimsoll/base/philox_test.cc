#include "plimsoll/base/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace plimsoll {
namespace {

// The published known answers of Random123 for philox4x32 with ten rounds.
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, MatchesThePublishedAnswersThroughTheClass) {
  const Philox random(0x299f31d0a4093822u, 0, 0x0370734413198a2eu);
  EXPECT_EQ(random.block(0x85a308d3243f6a88u), (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsTheSameFromTheSameKeyAndOffset) {
  Philox first(7, 100), second(7, 100);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(first.next_word(), second.next_word());
  EXPECT_EQ(first.offset(), 125u);
  EXPECT_NE(Philox(7, 100).next_word(), Philox(8, 100).next_word());
  EXPECT_NE(Philox(7, 100, 1).next_word(), Philox(7, 100).next_word());
}

TEST(Philox, SkipsToTheSamePlaceAsDrawing) {
  Philox skipped(3), drawn(3);
  for (int i = 0; i < 4 * 9; ++i) drawn.next_word();
  skipped.skip(9);
  EXPECT_EQ(skipped.next_word(), drawn.next_word());
  skipped.normal();
  skipped.skip(0);
  const std::uint64_t position = skipped.offset();
  EXPECT_EQ(skipped.next_word(), Philox(3, position).next_word()) << "a skip begins a new block";
}

TEST(Philox, DrawsUniformFloatsBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.f);
  EXPECT_LT(uniform_float(UINT32_MAX), 1.f);
  EXPECT_LT(uniform_double(UINT32_MAX, UINT32_MAX), 1.0);
  Philox random(1);
  double sum = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const float value = random.uniform();
    ASSERT_GE(value, 0.f);
    ASSERT_LT(value, 1.f);
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
}

TEST(Philox, DrawsNormalFloatsWithTheRightMoments) {
  Philox random(2);
  double sum = 0, squares = 0, fourths = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(fourths / kDraws, 3, 0.1);
}

TEST(Philox, DrawsFiniteNormalsFromTheExtremeWords) {
  for (const std::uint32_t a : {0u, 255u, 256u, UINT32_MAX})
    for (const std::uint32_t b : {0u, UINT32_MAX}) {
      const auto [first, second] = normal_floats(a, b);
      EXPECT_TRUE(std::isfinite(first) && std::isfinite(second)) << a << " " << b;
    }
}

TEST(Philox, DrawsIntegersBelowABoundEvenly) {
  Philox random(5);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts.at(random.below(6));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(1), 0u);
}

}  // namespace
}  // namespace plimsoll
