// What repeats itself comes to be served from the cache, whatever ran before it in the same process.
#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll {
namespace {

// A step of training as the arena sees it: results are kept going forward and let go going back, with gradients of the
// same sizes and something small beside each.
class Steps {
 public:
  Steps(Arena& arena, std::size_t count, std::size_t least, std::size_t most, std::uint32_t seed) : arena_(arena) {
    std::vector<std::size_t> some;  // Layers of a model are alike.
    for (std::size_t i = 0; i < count; ++i) {
      seed = seed * 1664525 + 1013904223;
      some.push_back((least + seed % (most - least)) / 64 * 64);
      sizes_.push_back(some[i % 5]);
    }
  }

  void run() {
    std::vector<Block> saved, small;
    for (const std::size_t size : sizes_) {
      saved.push_back(arena_.allocate(size));
      small.push_back(arena_.allocate(size / 64 + 64));
    }
    Block gradient;
    for (std::size_t i = sizes_.size(); i-- > 0;) {
      const Block next = arena_.allocate(sizes_[i]);
      arena_.deallocate(saved[i]);
      arena_.deallocate(small[i]);
      arena_.deallocate(gradient);
      gradient = next;
    }
    arena_.deallocate(gradient);
  }

  // The share of allocations for which the heap was asked, of 20 steps after so many.
  double share_of_heap(int warm_up) {
    for (int i = 0; i < warm_up; ++i) run();
    const HeapCounters before = arena_.move_counters();
    for (int i = 0; i < 20; ++i) run();
    const HeapCounters after = arena_.move_counters();
    return static_cast<double>(after.takes + after.gives - before.takes - before.gives) /
           static_cast<double>(20 * 3 * sizes_.size());
  }

 private:
  Arena& arena_;
  std::vector<std::size_t> sizes_;
};

TEST(ArenaSteady, CachesWhatRepeatsWhateverRanBefore) {
  HostPageSource pages;
  Arena arena(pages, {.name = "test", .limit = 2_GiB});
  EXPECT_LT(Steps(arena, 40, 300_KiB, 3_MiB, 1).share_of_heap(60), 0.05);
  EXPECT_LT(Steps(arena, 8, 2_MiB, 9_MiB, 2).share_of_heap(200), 0.05);
  EXPECT_LT(Steps(arena, 60, 260_KiB, 1_MiB, 3).share_of_heap(60), 0.05);
  EXPECT_LT(Steps(arena, 20, 1_MiB, 6_MiB, 4).share_of_heap(100), 0.05);
  EXPECT_LT(Steps(arena, 40, 300_KiB, 3_MiB, 1).share_of_heap(60), 0.05);
  arena.validate();
}

TEST(ArenaSteady, CachesOnWhenPeaksAreReset) {
  HostPageSource pages;
  Arena arena(pages, {.name = "test", .limit = 2_GiB});
  EXPECT_LT(Steps(arena, 8, 2_MiB, 9_MiB, 2).share_of_heap(200), 0.05);
  for (const std::uint32_t seed : {5u, 6u, 7u}) {
    arena.reset_peaks();
    EXPECT_LT(Steps(arena, 12, 300_KiB, 2_MiB, seed).share_of_heap(60), 0.05);
  }
}

TEST(ArenaSteady, CachesNewSizesInPlaceOfManyOthers) {
  HostPageSource pages;
  Arena arena(pages, {.name = "test", .limit = 2_GiB});
  for (std::size_t i = 1; i <= 4000; ++i) arena.deallocate(arena.allocate(64 * i));
  EXPECT_LT(Steps(arena, 20, 4_KiB, 200_KiB, 9).share_of_heap(10), 0.05);
  arena.validate();
  EXPECT_EQ(arena.stats().bytes_in_use, 0u);
}

TEST(ArenaSteady, CachesWithGrowthWhatFitsBesideThePeak) {
  HostPageSource pages;
  Arena arena(pages, {.name = "test", .limit = 2_GiB, .growth = true});
  Steps(arena, 20, 1_MiB, 6_MiB, 4).share_of_heap(20);
  EXPECT_LT(Steps(arena, 12, 300_KiB, 1_MiB, 8).share_of_heap(200), 0.05);
}

}  // namespace
}  // namespace plimsoll
