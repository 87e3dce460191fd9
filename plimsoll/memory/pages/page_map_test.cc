#include "plimsoll/memory/pages/page_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace plimsoll {
namespace {

TEST(PageMap, IsEmptyWhenFresh) {
  const PageMap map(1000);
  EXPECT_EQ(map.count(0, 1000), 0u);
  EXPECT_EQ(map.next_set(0, 1000), 1000u);
  EXPECT_EQ(map.next_missing(0, 1000), 0u);
  EXPECT_EQ(map.end_of_set(0, 1000), 0u);
  EXPECT_EQ(map.end_of_missing(0, 1000), 1000u);
}

TEST(PageMap, TreatsAnEmptyRangeAsHavingNothing) {
  PageMap map(200);
  map.set(0, 200);
  for (const std::size_t at : {0u, 1u, 63u, 64u, 65u, 128u, 200u}) {
    EXPECT_EQ(map.count(at, at), 0u);
    EXPECT_EQ(map.next_set(at, at), at);
    EXPECT_EQ(map.end_of_set(at, at), at);
    map.clear(at, at);
  }
  EXPECT_EQ(map.count(0, 200), 200u);
}

TEST(PageMap, SetsAndClearsExactlyItsRangeAtEveryWordBorder) {
  for (const std::size_t first : {0u, 1u, 62u, 63u, 64u, 65u, 127u, 128u}) {
    for (std::size_t last = first; last <= 300; ++last) {
      PageMap map(300);
      map.set(first, last);
      ASSERT_EQ(map.count(0, 300), last - first);
      ASSERT_EQ(map.count(first, last), last - first);
      map.set(0, 300);
      map.clear(first, last);
      ASSERT_EQ(map.count(0, 300), 300 - (last - first));
      ASSERT_EQ(map.count(first, last), 0u);
    }
  }
}

TEST(PageMap, AgreesWithAVectorOfBits) {
  for (const std::size_t pages : {1u, 63u, 64u, 65u, 511u, 1000u}) {
    PageMap map(pages);
    std::vector<bool> model(pages);
    std::mt19937 random(static_cast<unsigned>(pages));
    for (int step = 0; step < 4000; ++step) {
      std::size_t first = random() % (pages + 1), last = random() % (pages + 1);
      if (first > last) std::swap(first, last);
      const auto begin = model.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = model.begin() + static_cast<std::ptrdiff_t>(last);
      const auto first_of = [&](bool bit) {
        return static_cast<std::size_t>(std::find(begin, end, bit) - model.begin());
      };
      const auto end_of = [&](bool bit) {
        for (std::size_t at = last; at > first; --at)
          if (model[at - 1] == bit) return at;
        return first;
      };
      if (step % 3 == 0) {
        const bool set = random() % 2 == 0;
        set ? map.set(first, last) : map.clear(first, last);
        std::fill(begin, end, set);
        continue;
      }
      ASSERT_EQ(map.count(first, last), static_cast<std::size_t>(std::count(begin, end, true)));
      ASSERT_EQ(map.next_set(first, last), first_of(true));
      ASSERT_EQ(map.next_missing(first, last), first_of(false));
      ASSERT_EQ(map.end_of_set(first, last), end_of(true));
      ASSERT_EQ(map.end_of_missing(first, last), end_of(false));
    }
  }
}

}  // namespace
}  // namespace plimsoll
