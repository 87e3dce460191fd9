// What an arena does when a request does not fit: the ladder, the error, and that nothing changed.
#include <gmock/gmock.h>

#include <random>

#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/pages/fake_pages_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

BlockLabel labelled(const char* op, const char* scope = "", Category category = Category::kOther) {
  BlockLabel label;
  label.op = op;
  label.scope = scope;
  label.category = category;
  return label;
}

TEST(ArenaRefusal, TellsEveryFieldTruly) {
  HostArena host({.name = "CPU:7", .limit = 16_MiB});
  const Block weights = host->allocate(10_MiB, 64, labelled("variable", "dense", Category::kParameters));
  const Block first = host->allocate(1_MiB, 64, labelled("relu", "", Category::kActivations));
  const Block second = host->allocate(1_MiB, 64, labelled("relu", "", Category::kActivations));
  host->deallocate(host->allocate(1_MiB));  // Stays cached.
  const OutOfMemory error =
      refusal_of([&] { static_cast<void>(host->allocate(4_MiB + 1, 64, labelled("conv2d", "block3"))); });
  EXPECT_EQ(error.requested(), 4_MiB + 1);
  EXPECT_EQ(error.limit(), 16_MiB);
  EXPECT_EQ(error.in_use(), 12_MiB);
  EXPECT_EQ(error.smallest_sufficient_limit(), 16_MiB + 2 * 4096) << "one for the block of 64 bytes more than pages";
  ASSERT_EQ(error.holders().size(), 2u);
  EXPECT_EQ(error.holders()[0].op, "variable");
  EXPECT_EQ(error.holders()[0].scope, "dense");
  EXPECT_EQ(error.holders()[0].category, "parameters");
  EXPECT_EQ(error.holders()[0].bytes, 10_MiB);
  EXPECT_EQ(error.holders()[0].count, 1u);
  EXPECT_EQ(error.holders()[1].op, "relu");
  EXPECT_EQ(error.holders()[1].bytes, 2_MiB);
  EXPECT_EQ(error.holders()[1].count, 2u);
  EXPECT_THAT(error.what(),
              HasSubstr("\"CPU:7\": cannot allocate 4.0 MiB (4194305 bytes) for \"conv2d\" in scope \"block3\""));
  EXPECT_THAT(error.what(), HasSubstr("used 12.0 MiB of 16.0 MiB"));
  for (const Block& block : {weights, first, second}) host->deallocate(block);
}

TEST(ArenaRefusal, CountsWhatIsLiveInTheSufficientLimitAlsoForARequestAboveTheLimit) {
  HostArena host({.limit = 16_MiB});
  const Block block = host->allocate(10_MiB);
  for (const std::size_t bytes : {6_MiB + 1, 15_MiB, 17_MiB, 1_GiB}) {
    const OutOfMemory error = refusal_of([&] { static_cast<void>(host->allocate(bytes)); });
    const std::size_t exact = 10_MiB + LiveBlocks::pages_for(bytes) * 4096;
    EXPECT_GE(error.smallest_sufficient_limit(), exact) << bytes;
    EXPECT_LE(error.smallest_sufficient_limit(), exact + (bytes % 4096 == 0 ? 0 : 4096)) << bytes;
  }
  host->deallocate(block);
}

TEST(ArenaRefusal, SurvivesSizesThatOverflow) {
  HostArena host({.limit = 16_MiB});
  for (const std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 4096, SIZE_MAX / 2, std::size_t{1} << 46, (std::size_t{1} << 46) + 1}) {
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{64}, 2_MiB}) {
      const OutOfMemory error = refusal_of([&] { static_cast<void>(host->allocate(bytes, alignment)); });
      EXPECT_EQ(error.requested(), bytes);
      EXPECT_GT(error.smallest_sufficient_limit(), 16_MiB);
    }
  }
  EXPECT_EQ(host->stats().peak_bytes_in_use, 0u);
  EXPECT_EQ(host->stats().bytes_reserved, 0u);
}

TEST(ArenaRefusal, NeverCountsInPeaksOrAllocations) {
  HostArena host({.limit = 16_MiB});
  const Block block = host->allocate(1_MiB);
  for (const std::size_t bytes : {16_MiB, 15_MiB + 1, 64_MiB})
    EXPECT_THROW(static_cast<void>(host->allocate(bytes)), OutOfMemory);
  const MemoryStats stats = host->stats();
  EXPECT_EQ(stats.peak_bytes_in_use, 1_MiB);
  EXPECT_EQ(stats.peak_bytes_reserved, 1_MiB);
  EXPECT_EQ(stats.largest_alloc_bytes, 1_MiB);
  EXPECT_EQ(stats.num_allocs, 1u);
  EXPECT_EQ(stats.num_ooms, 3u);
  host->deallocate(block);
}

struct Operation {
  bool allocate = false;
  std::size_t bytes = 0, which = 0;
};

// True when the whole sequence was served.
bool serves(std::size_t limit, const std::vector<Operation>& sequence, std::size_t* sufficient = nullptr) {
  HostArena host({.limit = limit});
  std::vector<Block> live;
  try {
    for (const Operation& operation : sequence) {
      if (operation.allocate) {
        live.push_back(host->allocate(operation.bytes));
      } else {
        std::swap(live[operation.which % live.size()], live.back());
        host->deallocate(live.back());
        live.pop_back();
      }
    }
  } catch (const OutOfMemory& error) {
    if (sufficient) *sufficient = error.smallest_sufficient_limit();
    return false;
  }
  return true;
}

TEST(ArenaRefusal, NamesALimitThatServesTheSameSequenceWhileOnePageLessDoesNot) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::vector<Operation> sequence;
    std::size_t live = 0, sufficient = 0;
    do {  // Whole pages, so that how many are live does not depend on where blocks lie.
      if (live > 0 && random() % 3 == 0) {
        sequence.push_back({false, 0, random()});
        --live;
      } else {
        sequence.push_back({true, (1 + random() % 100) * 4096, 0});
        ++live;
      }
    } while (serves(2_MiB, sequence, &sufficient));
    ASSERT_TRUE(serves(sufficient, sequence)) << "seed " << seed;
    ASSERT_FALSE(serves(sufficient - 4096, sequence)) << "seed " << seed;
  }
}

TEST(ArenaRefusal, NamesALimitThatServesTheSameSequenceOfOddSizes) {
  std::size_t above = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<Operation> sequence;
    std::size_t live = 0, sufficient = 0;
    do {
      if (live > 0 && random() % 5 < 2) {
        sequence.push_back({false, 0, random()});
        --live;
      } else {
        const std::size_t most = seed % 2 ? 5000 : std::size_t{1} << (6 + random() % 12);
        sequence.push_back({true, 1 + random() % most, 0});
        ++live;
      }
    } while (serves(512_KiB, sequence, &sufficient));
    ASSERT_TRUE(serves(sufficient, sequence)) << "seed " << seed;
    above += sufficient - 512_KiB;
  }
  EXPECT_LE(above / 60, 64_KiB) << "and not much more than that";
}

TEST(ArenaRefusal, OfABudgetNamesALimitThatServesTheSameSequenceWhileOneByteLessDoesNot) {
  const auto serves_within = [](std::size_t limit, std::size_t& sufficient) {
    HostArena host({.limit = 64_MiB});
    const Budget budget("train", limit);
    const BudgetScope scope(budget);
    std::mt19937 random(8);
    std::vector<Block> live;
    try {
      for (int i = 0; i < 200; ++i) {
        live.push_back(host->allocate(1 + random() % 50'000));
        if (random() % 3 == 0) {
          host->deallocate(live.front());
          live.erase(live.begin());
        }
      }
    } catch (const OutOfMemory& error) {
      sufficient = error.smallest_sufficient_limit();
      EXPECT_EQ(error.limit(), limit);
      EXPECT_EQ(error.in_use(), budget.used());
      EXPECT_THAT(error.what(), HasSubstr("budget \"train\": cannot allocate"));
      for (const Block& block : live) host->deallocate(block);
      return live.size();
    }
    for (const Block& block : live) host->deallocate(block);
    return std::size_t{1'000'000};
  };
  std::size_t sufficient = 0, more = 0;
  const std::size_t reached = serves_within(1'000'000, sufficient);
  ASSERT_LT(reached, 1'000'000u);
  EXPECT_GT(serves_within(sufficient, more), reached);
  EXPECT_EQ(serves_within(sufficient - 1, more), reached);
}

TEST(ArenaRefusal, IsTheBudgetsWhenBudgetAndDeviceBothRefuse) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("process", 32_MiB);
  const BudgetScope scope(budget);
  const Block held = host->allocate(30_MiB);
  try {
    static_cast<void>(host->allocate(35_MiB));
    FAIL() << "nothing was refused";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.limit(), 32_MiB);
    EXPECT_EQ(error.smallest_sufficient_limit(), 65_MiB);
  }
  host->deallocate(held);
}

TEST(ArenaRefusal, OfASizeThatNoMachineHasNamesThatSize) {
  HostArena host({.limit = 1_MiB});
  try {
    static_cast<void>(host->allocate(SIZE_MAX));
    FAIL() << "nothing was refused";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.smallest_sufficient_limit(), SIZE_MAX);
  }
}

TEST(ArenaRefusal, ByThePageSourceLeavesEverythingIntactAndTheNextRequestSucceeds) {
  FakePageSource pages;
  Arena arena(pages, {.limit = 4_MiB});
  LiveBlocks live;
  std::mt19937 random(31);
  int refused = 0;
  for (int step = 0; step < 3000; ++step) {
    if (!live.empty() && (random() % 2 == 0 || live.bytes() > 3_MiB)) {
      arena.deallocate(live.remove(random()));
      if (random() % 3 == 0) arena.trim();
      continue;
    }
    const std::size_t bytes = 1 + random() % 60'000;
    pages.range().refuse_commits(random() % 2 == 0);
    try {
      live.add(arena.allocate(bytes));
    } catch (const OutOfMemory& error) {
      ++refused;
      EXPECT_GT(error.smallest_sufficient_limit(), 4_MiB) << "the present limit did not do";
      pages.range().refuse_commits(false);
      live.add(arena.allocate(bytes));
    }
    arena.validate();
    ASSERT_EQ(arena.stats().bytes_in_use, live.bytes());
    ASSERT_EQ(arena.stats().bytes_reserved, pages.range().present() * 4096);
    ASSERT_EQ(pages.range().wrong_calls(), 0u);
  }
  EXPECT_GT(refused, 50);
  while (!live.empty()) arena.deallocate(live.remove(0));
}

}  // namespace
}  // namespace plimsoll
