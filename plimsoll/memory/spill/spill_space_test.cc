#include "plimsoll/memory/spill/spill_space.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "plimsoll/base/heap_count_testing.h"

namespace plimsoll {
namespace {

TEST(SpillSpace, GivesTheSmallestHoleThatIsLargeEnough) {
  SpillSpace space;
  space.grow(100);
  std::vector<SpillSpace::Taken> parts;
  for (const std::uint64_t bytes : {30u, 5u, 20u, 5u, 40u}) parts.push_back(space.take(bytes));
  space.give(std::move(parts[0]));
  space.give(std::move(parts[2]));
  EXPECT_EQ(space.holes(), 2u);
  EXPECT_EQ(space.take(20).offset(), 35u);
  EXPECT_EQ(space.take(10).offset(), 0u);
  EXPECT_EQ(space.growth_for(21), 21u) << "20 are left in the first hole, which is not at the end";
}

TEST(SpillSpace, MergesNeighboursAndGrowsTheHoleAtTheEnd) {
  SpillSpace space;
  space.grow(30);
  SpillSpace::Taken a = space.take(10), b = space.take(10), c = space.take(10);
  space.give(std::move(a));
  space.give(std::move(c));
  EXPECT_EQ(space.holes(), 2u);
  EXPECT_EQ(space.growth_for(15), 5u);
  space.give(std::move(b));
  EXPECT_EQ(space.holes(), 1u);
  EXPECT_EQ(space.growth_for(30), 0u);
  EXPECT_EQ(space.taken_bytes(), 0u);
}

TEST(SpillSpace, ChangesNothingWhenMemoryRunsOut) {
  SpillSpace space;
  space.grow(100);
  for (std::size_t successes = 0; successes < 2; ++successes) {
    fail_heap_after(successes);
    EXPECT_THROW(static_cast<void>(space.take(10)), std::bad_alloc);
    EXPECT_TRUE(disarm_heap());
    fail_heap_after(successes);
    EXPECT_THROW(space.grow(10), std::bad_alloc);
    EXPECT_TRUE(disarm_heap());
    EXPECT_EQ(space.end(), 100u);
    EXPECT_EQ(space.taken_bytes(), 0u);
    EXPECT_EQ(space.growth_for(100), 0u);
  }
}

TEST(SpillSpace, AllocatesNothingToGiveBack) {
  SpillSpace space;
  space.grow(100);
  std::vector<SpillSpace::Taken> parts;
  for (int i = 0; i < 10; ++i) parts.push_back(space.take(10));
  const std::size_t before = heap_allocations();
  for (const std::size_t i : {1u, 3u, 5u, 4u, 0u, 9u}) space.give(std::move(parts[i]));
  EXPECT_EQ(heap_allocations(), before);
}

// Every byte of the file by name, and holes found by looking at them all.
TEST(SpillSpace, AgreesWithAMapOfEveryByte) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    SpillSpace space;
    std::vector<SpillSpace::Taken> parts;
    std::vector<bool> is_taken;
    for (int step = 0; step < 200; ++step) {
      if (parts.empty() || random() % 5 < 3) {
        const std::uint64_t bytes = 1 + random() % 12;
        std::size_t best = SIZE_MAX, run = 0, holes_end = 0;
        for (std::size_t at = 0; at <= is_taken.size(); ++at) {
          if (at < is_taken.size() && !is_taken[at]) {
            ++run;
            continue;
          }
          if (run >= bytes) best = std::min(best, run);
          if (at == is_taken.size()) holes_end = run;
          run = 0;
        }
        const std::uint64_t growth = best != SIZE_MAX ? 0 : bytes - holes_end;
        ASSERT_EQ(space.growth_for(bytes), growth);
        space.grow(growth);
        is_taken.resize(is_taken.size() + growth);
        SpillSpace::Taken part = space.take(bytes);
        ASSERT_EQ(part.bytes(), bytes);
        for (std::uint64_t at = part.offset(); at < part.offset() + bytes; ++at) {
          ASSERT_FALSE(is_taken.at(at)) << "overlaps another";
          is_taken[at] = true;
        }
        parts.push_back(std::move(part));
      } else {
        std::swap(parts[random() % parts.size()], parts.back());
        for (std::uint64_t i = 0; i < parts.back().bytes(); ++i) is_taken.at(parts.back().offset() + i) = false;
        space.give(std::move(parts.back()));
        parts.pop_back();
      }
      ASSERT_EQ(space.end(), is_taken.size());
      ASSERT_EQ(space.taken_bytes(), static_cast<std::uint64_t>(std::count(is_taken.begin(), is_taken.end(), true)));
    }
  }
}

}  // namespace
}  // namespace plimsoll
