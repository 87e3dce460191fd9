// What an arena does when a request does not fit: the ladder, the error, and that nothing changed.
#include <gmock/gmock.h>

#include <functional>
#include <random>
#include <thread>

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
  EXPECT_EQ(error.smallest_sufficient_limit(), 16_MiB + 4096);
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
    EXPECT_EQ(error.smallest_sufficient_limit(), exact) << bytes;
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

// How much of the sequence was served.
std::size_t reaches(std::size_t limit, const std::vector<Operation>& sequence, std::size_t* sufficient = nullptr,
                    bool growth = false) {
  HostArena host({.limit = limit, .growth = growth});
  std::vector<Block> live;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    try {
      if (sequence[i].allocate) {
        live.push_back(host->allocate(sequence[i].bytes));
      } else {
        std::swap(live[sequence[i].which % live.size()], live.back());
        host->deallocate(live.back());
        live.pop_back();
      }
    } catch (const OutOfMemory& error) {
      if (sufficient) *sufficient = error.smallest_sufficient_limit();
      return i;
    }
  }
  return sequence.size();
}

template <class F>
std::vector<Operation> random_sequence(std::mt19937& random, std::size_t length, F&& size) {
  std::vector<Operation> sequence;
  for (std::size_t live = 0; sequence.size() < length;) {
    const bool frees = live > 0 && random() % 5 < 2;
    sequence.push_back({!frees, frees ? 0 : size(), random()});
    live += frees ? -1 : 1;
  }
  return sequence;
}

// The limit that is named when the sequence is refused serves it to there, and a page less does not.
void expect_exact_advice(std::size_t limit, std::vector<Operation> sequence, bool growth) {
  std::size_t sufficient = 0;
  const std::size_t reached = reaches(limit, sequence, &sufficient, growth);
  ASSERT_LT(reached, sequence.size()) << "nothing was refused";
  sequence.resize(reached + 1);
  ASSERT_EQ(reaches(sufficient, sequence, nullptr, growth), sequence.size());
  ASSERT_LT(reaches(sufficient - 4096, sequence, nullptr, growth), sequence.size());
}

TEST(ArenaRefusal, NamesALimitThatServesTheSameSequenceWhileOnePageLessDoesNot) {
  for (unsigned seed = 0; seed < 64; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::size_t limit = 128_KiB << seed % 3;
    const auto size = [&]() -> std::size_t {
      switch (seed % 4) {
        case 0:
          return 1 + random() % 5000;  // Where blocks of odd sizes lie depends on the limit.
        case 1:
          return 1 + random() % (std::size_t{1} << (6 + random() % 12));
        case 2:
          return random() % 8 ? 64 : 1 + random() % (limit / 2);
        default:
          return 4096 * (1 + random() % 10);
      }
    };
    expect_exact_advice(limit, random_sequence(random, 3000, size), seed % 8 >= 4);
    if (HasFatalFailure()) return;
  }
}

TEST(ArenaRefusal, OfTheVeryFirstRequestNamesItsPages) {
  HostArena host({.limit = 256_KiB});
  const OutOfMemory error = refusal_of([&] { static_cast<void>(host->allocate(300'001)); });
  EXPECT_EQ(error.smallest_sufficient_limit(), LiveBlocks::pages_for(300'001) * 4096);
}

// What is remembered of the requests is lost where they can no longer be run again; then the limit that is named is
// higher, and enough all the same.
TEST(ArenaRefusal, NamesALimitThatIsEnoughAlsoWhenRequestsAreNotRemembered) {
  struct Case {
    const char* name;
    std::function<void(Arena&)> forget;
  };
  const std::vector<Case> cases = {
      {"another thread", [](Arena& arena) { std::thread([&] { arena.deallocate(arena.allocate(64)); }).join(); }},
      {"too many",
       [](Arena& arena) {
         for (int i = 0; i < 40'000; ++i) arena.deallocate(arena.allocate(64));
       }},
      {"deferred", [](Arena& arena) {
         arena.set_deferred_release(true);
         arena.deallocate(arena.allocate(64));
         arena.flush_deferred();
         arena.set_deferred_release(false);
       }}};
  for (const Case& forgetful : cases) {
    const auto fill = [&](std::size_t limit, std::size_t* sufficient) {
      HostArena host({.limit = limit});
      forgetful.forget(*host);
      std::mt19937 random(5);
      try {
        for (int i = 0; i < 100; ++i) static_cast<void>(host->allocate(1 + random() % 5000));
      } catch (const OutOfMemory& error) {
        *sufficient = error.smallest_sufficient_limit();
        EXPECT_LE(*sufficient, error.in_use() * 2) << forgetful.name;
        return false;
      }
      return true;
    };
    std::size_t limit = 64_KiB;
    for (int tries = 0; !fill(limit, &limit);) ASSERT_LT(++tries, 100) << forgetful.name;
    EXPECT_GE(limit, 200'000u) << forgetful.name;
  }
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
