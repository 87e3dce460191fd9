#include "plimsoll/memory/heap.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "plimsoll/memory/heap_model_testing.h"

namespace plimsoll {
namespace {

struct HeapCase {
  std::string name;
  FakePagesOptions pages;
  bool two_zones = true;

  friend void PrintTo(const HeapCase& heap, std::ostream* out) { *out << heap.name; }
};

class HeapOver : public testing::TestWithParam<HeapCase> {};

INSTANTIATE_TEST_SUITE_P(Pages, HeapOver,
                         testing::Values(HeapCase{"Moving", {.moves = FakeMoves::kAll}},
                                         HeapCase{"NotMoving", {.moves = FakeMoves::kNone}},
                                         HeapCase{"MovingHalf", {.moves = FakeMoves::kHalf}},
                                         HeapCase{"OneZone", {}, false}, HeapCase{"SmallestPages", {.page_bytes = 64}},
                                         HeapCase{"LargePages", {.page_bytes = 65536}}),
                         [](const auto& info) { return info.param.name; });

std::size_t cap_for(const HeapCase& heap) { return std::max<std::size_t>(24, 400 * 4096 / heap.pages.page_bytes); }

std::size_t chunks_of(const Heap& heap) {
  std::size_t chunks = 0;
  heap.for_each([&](const Chunk&, std::size_t) { ++chunks; });
  return chunks;
}

TEST_P(HeapOver, AgreesWithAMapOverARandomRunAtATightCap) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::mt19937 random(seed);
    const std::size_t cap = cap_for(GetParam());
    HeapAndModel model(cap, GetParam().pages, GetParam().two_zones);
    run_randomly(model, random, 4000, cap * GetParam().pages.page_bytes / 2, [](std::size_t, bool) {});
    model.check();
    EXPECT_GT(model.heap().counters().pages_moved, 0u) << "the cap was not tight enough to need moving";
    model.give_all();
    model.check();
    EXPECT_EQ(chunks_of(model.heap()), GetParam().two_zones ? 2u : 1u) << "one chunk per zone when all is free";
  }
}

TEST_P(HeapOver, NamesTheLeastCapWithWhichARefusedRequestIsServed) {
  int refusals = 0, sharing = 0;
  std::mt19937 random(31);
  const std::size_t cap = cap_for(GetParam());
  HeapAndModel model(4 * cap, GetParam().pages, GetParam().two_zones);
  Heap& heap = model.heap();
  std::vector<Chunk*> live;
  const auto take = [&](std::size_t size) {
    Chunk* chunk = heap.take_resident(size, kGranularity);
    if (!chunk) chunk = heap.take_committing(size, kGranularity, cap);
    return chunk ? chunk : heap.take_moving(size, kGranularity, cap, cap);
  };
  for (int step = 0; step < 6000; ++step) {
    if (!live.empty() && random() % 10 < 4) {
      std::swap(live[random() % live.size()], live.back());
      heap.give(live.back());
      live.pop_back();
      continue;
    }
    const std::size_t size = random_size(random, cap * GetParam().pages.page_bytes / 2);
    if (Chunk* const chunk = take(size)) {
      live.push_back(chunk);
      continue;
    }
    ++refusals;
    const std::size_t enough = heap.sufficient_pages(size, kGranularity);
    ASSERT_GT(enough, cap);
    if (enough < heap.committed_pages() - heap.spare_pages() + heap.pages_for(size)) ++sharing;
    Chunk* const chunk = heap.take_moving(size, kGranularity, enough, enough);
    ASSERT_NE(chunk, nullptr) << size;
    heap.give(chunk);
    heap.release_holes(1);  // Back below the cap. Another hole of the same size may now come first.
    const std::size_t again = heap.sufficient_pages(size, kGranularity);
    ASSERT_EQ(heap.take_moving(size, kGranularity, again - 1, again - 1), nullptr) << size;
  }
  heap.validate();
  EXPECT_GT(refusals, 100);
  if (GetParam().pages.page_bytes > 64) {
    EXPECT_GT(sharing, 0) << "no block shared a page with its neighbour";
  }
}

TEST_P(HeapOver, RefusesOnlyWhenLivePagesPlusRequestPassTheCap) {
  int refusals = 0, served = 0;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed * 77);
    const std::size_t cap = cap_for(GetParam());
    HeapAndModel model(cap, GetParam().pages, GetParam().two_zones);
    run_randomly(model, random, 2500, cap * GetParam().pages.page_bytes, [&](std::size_t size, bool refused) {
      refused ? ++refusals : ++served;
      const std::size_t live = model.live_pages();
      if (refused) {
        ASSERT_GT(live + model.heap().pages_for(size), cap) << size;
      } else {
        ASSERT_LE(live, cap);
      }
    });
  }
  EXPECT_GT(refusals, 20) << "the run must reach the cap";
  EXPECT_GT(served, 1000);
}

TEST_P(HeapOver, StaysIntactWhenAnyOnePageRequestIsRefused) {
  const std::size_t cap = cap_for(GetParam());
  std::size_t injected = 0;
  for (std::size_t refuse_at = 0; refuse_at < 40; ++refuse_at) {
    std::mt19937 random(9);
    HeapAndModel model(cap, GetParam().pages, GetParam().two_zones);
    model.pages().refuse_commit_after(refuse_at);
    run_randomly(model, random, 600, cap * GetParam().pages.page_bytes / 2, [&](std::size_t size, bool refused) {
      if (!model.pages().refusal_pending()) ++injected;
      if (random() % 4 == 0) model.heap().release_holes(1);  // So that pages are asked for again and again.
      if (model.pages().refusal_pending()) return;
      model.pages().refuse_commit_after(refuse_at);
      model.check();
      if (refused && model.live_pages() + model.heap().pages_for(size) <= cap) {
        model.pages().refuse_commit_after(SIZE_MAX - 1);
        ASSERT_NE(model.take(size), nullptr) << "the next request must succeed";
        model.pages().refuse_commit_after(refuse_at);
      }
    });
    model.give_all();
    model.check();
    ASSERT_EQ(chunks_of(model.heap()), GetParam().two_zones ? 2u : 1u);
  }
  EXPECT_GT(injected, 50u);
}

TEST_P(HeapOver, ReleasesEveryPageWithoutALiveByteAndNoOther) {
  std::mt19937 random(4);
  const std::size_t cap = cap_for(GetParam());
  HeapAndModel model(cap, GetParam().pages, GetParam().two_zones);
  run_randomly(model, random, 1000, cap * GetParam().pages.page_bytes / 4, [](std::size_t, bool) {});
  const std::size_t before = model.heap().committed_pages();
  const std::size_t released = model.heap().release_holes(1);
  EXPECT_EQ(before - released, model.live_pages());
  model.check();
  EXPECT_EQ(model.heap().spare_pages(), 0u);
  EXPECT_EQ(model.heap().release_holes(1), 0u);
  run_randomly(model, random, 500, cap * GetParam().pages.page_bytes / 4, [](std::size_t, bool) {});
  model.give_all();
  model.heap().release_holes(1);
  EXPECT_EQ(model.pages().present(), 0u);
}

TEST_P(HeapOver, AgreesWithAMapOverAnyCommands) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint32_t>& commands) {
    HeapAndModel model(30, GetParam().pages, GetParam().two_zones);
    for (const std::uint32_t command : commands) {
      if (command % 2 == 1 && !model.empty()) {
        model.give(command / 2);
      } else {
        const std::size_t size = (1 + (command >> 4) % (1u << (command / 2 % 8 + 3))) * kGranularity;
        const std::size_t alignment = kGranularity << (command / 16 % 5 == 0 ? command / 64 % 8 : 0);
        const std::size_t live = model.live_pages();
        if (!model.take(size, alignment)) {
          RC_ASSERT(live + model.heap().pages_for(size) > model.page_cap());
        }
      }
      model.check();
    }
    model.give_all();
    model.check();
    RC_ASSERT(!testing::Test::HasFailure());
  }));
}

TEST(Heap, ReleasesOnlyHolesOfAtLeastTheGivenSize) {
  HeapAndModel model(100, {}, false);
  Chunk* small = model.take(3 * 4096);
  model.take(64);
  Chunk* large = model.take(20 * 4096);
  model.take(64);
  ASSERT_TRUE(small && large);
  const std::size_t committed = model.heap().committed_pages();
  model.give(2);
  model.give(0);
  EXPECT_EQ(model.heap().release_holes(10), 19u) << "the first page of the larger hole still holds a live byte";
  EXPECT_EQ(model.heap().committed_pages(), committed - 19);
  model.check();
}

TEST(Heap, CountsPagesAsHeldThatTheSourceKeeps) {
  HeapAndModel model(20, {.moves = FakeMoves::kNone}, false);
  model.take(10 * 4096);
  model.take(4096);
  model.give(0);
  model.pages().keep_pages(true);
  EXPECT_EQ(model.heap().release_holes(1), 0u);
  EXPECT_EQ(model.heap().committed_pages(), 11u);
  EXPECT_EQ(model.take(12 * 4096), nullptr) << "nine pages may be committed, the other three cannot be had";
  model.check();
  EXPECT_NE(model.take(9 * 4096 + 4096), nullptr);
  model.check();
  model.give(0);
  model.pages().keep_pages(false);
  EXPECT_EQ(model.heap().release_holes(1), 10u);
  model.check();
}

TEST(Heap, CommitsMoreThanTheSoftCapOnlyForPagesWithALiveByte) {
  HeapAndModel model(100, {}, false);
  model.take(10 * 4096);
  model.take(4096);
  model.give(0);
  Heap& heap = model.heap();
  ASSERT_EQ(heap.committed_pages(), 11u);
  Chunk* chunk = heap.take_moving(30 * 4096, kGranularity, 11, 100);
  ASSERT_NE(chunk, nullptr);
  EXPECT_EQ(heap.committed_pages(), 31u) << "the ten pages of the hole come first";
  EXPECT_EQ(heap.spare_pages(), 0u);
  heap.give(chunk);
}

TEST(Heap, PrefersTheSmallestHoleWhosePagesAreThere) {
  HeapAndModel model(400, {}, false);
  std::vector<Chunk*> holes;
  for (const std::size_t pages : {30, 10, 20}) {
    holes.push_back(model.take(pages * 4096));
    model.take(4096);
  }
  const std::size_t ten = holes[1]->offset;
  model.give(4);
  model.give(2);
  model.give(0);
  const std::size_t committed = model.heap().committed_pages();
  EXPECT_EQ(model.take(9 * 4096)->offset, ten);
  EXPECT_EQ(model.heap().committed_pages(), committed);
  EXPECT_EQ(model.pages().moves(), 0u);
}

TEST(Heap, GivesSmallBlocksAZoneOfTheirOwn) {
  HeapAndModel model(400, {}, true);
  const Chunk* large = model.take(8192);
  const Chunk* small = model.take(4096);
  const Chunk* second = model.take(4096 + 64);
  EXPECT_EQ(small->zone, 0);
  EXPECT_EQ(large->zone, 1);
  EXPECT_EQ(second->zone, 1);
}

TEST(Heap, UsesTheOtherZoneWhenItsOwnIsFull) {
  HeapAndModel model(64, {.range_factor = 1}, true);  // 16 pages for small blocks, 48 for the rest.
  for (int i = 0; i < 64; ++i) ASSERT_NE(model.take(4096), nullptr) << i;
  EXPECT_EQ(model.take(4096), nullptr);
  model.check();
}

TEST(Heap, CountsWhatMovingCost) {
  HeapAndModel model(20, {.moves = FakeMoves::kHalf}, false);
  model.take(10 * 4096);
  model.take(4096);
  model.give(0);
  ASSERT_NE(model.take(12 * 4096), nullptr);
  const HeapCounters& counters = model.heap().counters();
  EXPECT_EQ(counters.pages_moved, 3u);
  EXPECT_EQ(counters.pages_refaulted, 2u) << "one of three was moved";
  EXPECT_EQ(counters.moves, 1u);
  model.check();
}

}  // namespace
}  // namespace plimsoll
