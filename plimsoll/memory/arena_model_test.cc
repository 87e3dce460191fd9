// Long random runs of arenas over the host's pages against a map of what should be live.
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "plimsoll/memory/arena_testing.h"

namespace plimsoll {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kSteps = 3000;
#else
constexpr int kSteps = 12'000;
#endif

struct MoverCase {
  std::string name;
  PageMover mover = PageMover::kBest;
  bool growth = false;

  friend void PrintTo(const MoverCase& mover, std::ostream* out) { *out << mover.name; }
};

class ArenaWith : public testing::TestWithParam<MoverCase> {};

INSTANTIATE_TEST_SUITE_P(Movers, ArenaWith,
                         testing::Values(MoverCase{"Userfault", PageMover::kUserfault},
                                         MoverCase{"Remap", PageMover::kRemap}, MoverCase{"NoMover", PageMover::kNone},
                                         MoverCase{"UserfaultGrowth", PageMover::kUserfault, true},
                                         MoverCase{"RemapGrowth", PageMover::kRemap, true},
                                         MoverCase{"NoMoverGrowth", PageMover::kNone, true}),
                         [](const auto& info) { return info.param.name; });

std::size_t some_size(std::mt19937& random, std::size_t most) {
  const unsigned kind = random() % 8;
  return 1 + random() % (kind < 3 ? 3000 : kind < 7 ? most / 20 : most);
}

// One random step; a refusal must be justified by the pages that hold a live byte.
void step_randomly(Arena& arena, LiveBlocks& live, std::mt19937& random, std::size_t most, bool draining) {
  if (!live.empty() && random() % 10 < (draining ? 7u : 4u)) {
    arena.deallocate(live.remove(random()));
    return;
  }
  const std::size_t bytes = some_size(random, most);
  const std::size_t alignment = random() % 10 == 0 ? std::size_t{1} << random() % 14 : kDefaultAlignment;
  try {
    live.add(arena.allocate(bytes, alignment));
  } catch (const OutOfMemory& refusal) {
    const std::size_t needed = (live.pages() + LiveBlocks::pages_for(bytes)) * LiveBlocks::kPage;
    ASSERT_GT(needed, arena.limit()) << "refused " << bytes << " bytes that fit";
    const std::size_t unused = needed - live.bytes();  // Of pages with live bytes: less or more in another run.
    ASSERT_LE(refusal.smallest_sufficient_limit(), needed + unused / 2 + 4 * LiveBlocks::kPage);
    ASSERT_GE(refusal.smallest_sufficient_limit(), live.bytes() + bytes);
    ASSERT_EQ(refusal.in_use(), live.bytes());
    ASSERT_EQ(refusal.requested(), bytes);
  }
}

TEST_P(ArenaWith, AgreesWithAMapAndKeepsContentsAtATightLimit) {
  HostArena host({.limit = 6_MiB, .growth = GetParam().growth}, GetParam().mover);
  LiveBlocks live;
  std::mt19937 random(21);
  for (int step = 0; step < kSteps; ++step) {
    step_randomly(*host, live, random, 2_MiB, step / 500 % 4 == 3);
    ASSERT_EQ(host->stats().bytes_in_use, live.bytes());
    if (step % 16 == 0) {
      const LedgerSum sum = sum_of_ledger(*host);
      ASSERT_EQ(sum.bytes, live.bytes());
      ASSERT_EQ(sum.requested, live.requested());
      ASSERT_EQ(sum.blocks, live.size());
      host->validate();
    }
    if (HasFailure()) FAIL() << "at step " << step;
  }
  EXPECT_GT(host->move_counters().pages_moved, 100u) << "pages must really have moved";
  EXPECT_GT(host->stats().num_ooms, 0u) << "the limit must really have been reached";
  while (!live.empty()) host->deallocate(live.remove(random()));
  host->empty_caches();
  EXPECT_EQ(host->extents().size(), 2u) << "one free chunk per zone when all is free";
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
  host->validate();
}

TEST_P(ArenaWith, TrimsAndCollectsAmidARandomRunWithoutLosingAnything) {
  HostArena host({.limit = 6_MiB, .growth = GetParam().growth}, GetParam().mover);
  LiveBlocks live;
  std::mt19937 random(22);
  for (int step = 0; step < kSteps / 3; ++step) {
    step_randomly(*host, live, random, 2_MiB, step / 300 % 3 == 2);
    if (step % 50 == 0) {
      host->trim();
      ASSERT_EQ(host->stats().bytes_reserved, live.pages() * LiveBlocks::kPage);
    } else if (step % 50 == 25) {
      host->collect();
    }
    if (step % 10 == 0) host->validate();
    if (HasFailure()) FAIL() << "at step " << step;
  }
  while (!live.empty()) host->deallocate(live.remove(random()));
}

// Blocks go round among threads: each step is done by one of them, so that most frees are by another thread.
TEST_P(ArenaWith, LedgerSumsToBytesInUseAtEveryStepAlsoWithFreesFromOtherThreads) {
  HostArena host({.limit = 6_MiB, .growth = GetParam().growth}, GetParam().mover);
  constexpr std::size_t kThreads = 3;
  LiveBlocks live;
  std::mt19937 random(23);
  std::mutex mutex;
  std::condition_variable turn_changed;
  std::size_t turn = 0;
  int step = 0;
  const auto work = [&](std::size_t self) {
    for (;;) {
      std::unique_lock lock(mutex);
      turn_changed.wait(lock, [&] { return turn == self || step >= kSteps / 4; });
      if (step++ >= kSteps / 4) break;
      step_randomly(*host, live, random, 1_MiB, step / 200 % 3 == 2);
      const LedgerSum sum = sum_of_ledger(*host);
      EXPECT_EQ(sum.bytes, host->stats().bytes_in_use);
      EXPECT_EQ(sum.bytes, live.bytes());
      EXPECT_EQ(sum.blocks, live.size());
      turn = random() % kThreads;
      turn_changed.notify_all();
    }
    turn_changed.notify_all();
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  host->validate();
  EXPECT_EQ(host->stats().bytes_in_use, live.bytes());
  while (!live.empty()) host->deallocate(live.remove(random()));
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
}

// Training-like: a forward pass keeps blocks of many sizes, the backward pass frees them in reverse with others
// between.
void run_steps(Arena& arena, std::mt19937& random, int steps) {
  std::vector<std::size_t> sizes(60);
  for (std::size_t& size : sizes) size = (1 + random() % 40) * (random() % 4 == 0 ? 100'000 : 5'000);
  std::vector<Block> kept;
  for (int i = 0; i < 20; ++i) kept.push_back(arena.allocate(random() % 500'000 + 1));
  for (int step = 0; step < steps; ++step) {
    std::vector<Block> forward, gradients;
    for (const std::size_t size : sizes) {
      const Block scratch = arena.allocate(size / 2 + random() % 10'000);
      forward.push_back(arena.allocate(size));
      arena.deallocate(scratch);
    }
    for (std::size_t i = sizes.size(); i-- > 0;) {
      gradients.push_back(arena.allocate(sizes[i]));
      arena.deallocate(forward[i]);
      if (i % 3 == 0) {
        arena.deallocate(gradients.front());
        gradients.erase(gradients.begin());
      }
    }
    for (const Block& block : gradients) arena.deallocate(block);
  }
  for (const Block& block : kept) arena.deallocate(block);
}

class ArenaGrowingWith : public testing::TestWithParam<PageMover> {};
INSTANTIATE_TEST_SUITE_P(Movers, ArenaGrowingWith,
                         testing::Values(PageMover::kUserfault, PageMover::kRemap, PageMover::kNone));

TEST_P(ArenaGrowingWith, ReservesAtMostOneTwentiethAndTwoMebibytesAboveThePeakInUse) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    HostArena host({.limit = 4_GiB, .growth = true}, GetParam());
    std::mt19937 random(seed);
    run_steps(*host, random, 4);
    const MemoryStats stats = host->stats();
    EXPECT_GT(stats.peak_bytes_in_use, 10_MiB);
    EXPECT_LE(stats.peak_bytes_reserved, stats.peak_bytes_in_use + stats.peak_bytes_in_use / 20 + 2_MiB)
        << "seed " << seed;
    host->validate();
  }
}

TEST_P(ArenaWith, NeitherMovesNorCommitsPagesInSteadyState) {
  HostArena host({.limit = 1_GiB, .growth = GetParam().growth}, GetParam().mover);
  const auto same_step = [&] {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < 60; ++i) blocks.push_back(host->allocate((i % 7 + 1) * 50'000));
    for (std::size_t i = 60; i-- > 0;) {
      const Block gradient = host->allocate((i % 7 + 1) * 50'000);
      host->deallocate(blocks[i]);
      host->deallocate(gradient);
    }
  };
  for (int i = 0; i < 5; ++i) same_step();
  const std::size_t reserved = host->stats().peak_bytes_reserved, moves = host->move_counters().moves;
  for (int i = 0; i < 20; ++i) same_step();
  EXPECT_EQ(host->stats().peak_bytes_reserved, reserved);
  EXPECT_EQ(host->move_counters().moves, moves);
}

}  // namespace
}  // namespace plimsoll
