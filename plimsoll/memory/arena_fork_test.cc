// A forked child may free.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "plimsoll/base/child_testing.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kForks = 5;
#else
constexpr int kForks = 40;
#endif

TEST(ArenaFork, LetsTheChildFreeWhatTheParentKeeps) {
  for (const PageMover mover : {PageMover::kUserfault, PageMover::kRemap, PageMover::kNone}) {
    HostArena host({.limit = 8_MiB}, mover);
    std::vector<MarkedBlock> blocks;
    for (std::uint32_t i = 0; i < 100; ++i) blocks.emplace_back(host->allocate(1 + i * 700), i);
    const int code = run_in_child([&] {
      for (const MarkedBlock& block : blocks) {
        if (!block.intact()) return 1;
        host->deallocate(block.block());
      }
      if (host->stats().bytes_in_use != 0) return 2;
      host->trim();
      if (host->stats().bytes_reserved != 0) return 3;
      host->validate();
      return 0;
    });
    EXPECT_EQ(code, 0) << "1: contents, 2: count, 3: trim, -1: hung or crashed";
    for (const MarkedBlock& block : blocks) {
      EXPECT_TRUE(block.intact()) << "the child's frees are its own";
      host->deallocate(block.block());
    }
    EXPECT_EQ(host->stats().bytes_in_use, 0u);
  }
}

TEST(ArenaFork, IsSafeWhileOtherThreadsAllocateChargeAndAreAlerted) {
  HostArena host({.limit = 16_MiB});
  const Budget budget("busy", 8_MiB);
  const auto alert = on_memory_alert(0.001, [](const MemoryAlert&) {});
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!done) {
        const Budget own("own", 4_MiB, budget);
        const BudgetScope scope(own);
        host->deallocate(host->allocate(1'500'000));
        host->deallocate(host->allocate(1000));
      }
    });
  for (int i = 0; i < kForks; ++i) {
    const MarkedBlock block(host->allocate(300'000), 5);
    const int code = run_in_child([&] {
      if (!block.intact()) return 1;
      host->deallocate(block.block());
      host->empty_caches();
      host->validate();
      return 0;
    });
    ASSERT_EQ(code, 0) << "fork " << i;
    host->deallocate(block.block());
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
}

}  // namespace
}  // namespace plimsoll
