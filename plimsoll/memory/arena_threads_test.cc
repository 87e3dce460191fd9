// Arenas used by many threads at once; the thread sanitizer runs these too.
#include <atomic>
#include <latch>
#include <optional>
#include <random>
#include <thread>

#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/ledger.h"
#include "plimsoll/memory/pages/fake_pages_testing.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kRounds = 400;
constexpr int kShortThreads = 200;
#else
constexpr int kRounds = 3000;
constexpr int kShortThreads = 1000;
#endif

BlockLabel labelled_block(const char* op) {
  BlockLabel label;
  label.op = op;
  return label;
}

// Blocks that any thread may take and give.
class Pool {
 public:
  void put(const MarkedBlock& block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
  }
  bool take(std::size_t which, MarkedBlock& block) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) return false;
    std::swap(blocks_[which % blocks_.size()], blocks_.back());
    block = blocks_.back();
    blocks_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<MarkedBlock> blocks_;
};

// Allocates and frees blocks of the pool, most of which another thread allocated, at a limit that is often reached.
void churn(Arena& arena, Pool& pool, unsigned seed, std::atomic<int>& damaged) {
  std::mt19937 random(seed);
  const BlockLabel label = labelled_block("churn");
  for (int i = 0; i < kRounds; ++i) {
    MarkedBlock block;
    if (random() % 5 < 2 && pool.take(random(), block)) {
      if (!block.intact()) ++damaged;
      arena.deallocate(block.block());
      continue;
    }
    try {
      const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 600'000 : 9'000);
      pool.put(MarkedBlock(arena.allocate(bytes, 64, label), static_cast<std::uint32_t>(random())));
    } catch (const OutOfMemory&) {
    }
  }
}

void free_all(Arena& arena, Pool& pool, std::atomic<int>& damaged) {
  for (MarkedBlock block; pool.take(0, block); arena.deallocate(block.block()))
    if (!block.intact()) ++damaged;
}

TEST(ArenaThreads, KeepBlocksIntactWhenFreedByOthersWhilePagesMove) {
  for (const PageMover mover : {PageMover::kUserfault, PageMover::kRemap, PageMover::kNone}) {
    HostArena host({.limit = 2_MiB}, mover);
    Pool pool;
    std::atomic<int> damaged{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) threads.emplace_back([&, i] { churn(*host, pool, i, damaged); });
    for (std::thread& thread : threads) thread.join();
    host->validate();
    EXPECT_EQ(sum_of_ledger(*host).bytes, host->stats().bytes_in_use);
    free_all(*host, pool, damaged);
    EXPECT_EQ(damaged, 0);
    EXPECT_EQ(host->stats().bytes_in_use, 0u);
    EXPECT_GT(host->move_counters().pages_moved, 0u);
    EXPECT_LE(host->stats().peak_bytes_reserved, 2_MiB);
  }
}

TEST(ArenaThreads, LetOthersLookTrimAndValidateMeanwhile) {
  HostArena host({.limit = 4_MiB});
  Pool pool;
  std::atomic<int> damaged{0}, strange_labels{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back([&, i] { churn(*host, pool, i + 10, damaged); });
  threads.emplace_back([&] {  // Threads that come and go.
    while (!done)
      std::thread([&] {
        try {
          host->deallocate(host->allocate(50'000, 64, labelled_block("churn")));
        } catch (const OutOfMemory&) {
        }
      }).join();
  });
  for (int i = 0; i < kRounds / 10; ++i) {
    std::size_t bytes = 0;
    host->for_each_live([&](const Chunk& chunk) {
      bytes += chunk.size;
      if (std::string_view(chunk.label.op) != "churn" || chunk.requested > chunk.size || chunk.requested == 0)
        ++strange_labels;
    });
    EXPECT_LE(bytes, host->limit());
    EXPECT_LE(host->stats().bytes_in_use, host->limit());
    EXPECT_LE(host->stats().bytes_reserved, host->limit());
    for (const MemoryHolder& holder : find_holders(*host, nullptr)) EXPECT_EQ(holder.op, "churn");
    if (i % 3 == 0) host->trim();
    if (i % 3 == 1) host->validate();
    if (i % 3 == 2) host->collect();
    if (i % 5 == 0) {
      EXPECT_FALSE(host->extents().empty());
    }
    if (i % 7 == 0) host->reset_peaks();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  free_all(*host, pool, damaged);
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(strange_labels, 0) << "the ledger showed a block that was not labelled yet";
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
}

TEST(ArenaThreads, ShowInTheLedgerOnlyBlocksWhoseBudgetIsStillThere) {
  HostArena host({.limit = 32_MiB});
  std::atomic<bool> done{false};
  std::thread looker([&] {
    const Budget other("other", 1_MiB);
    while (!done) EXPECT_TRUE(find_holders(*host, other.node().get()).empty());
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds / 4; ++i) {  // A block larger than what is cached, in a budget that ends at once.
        Block block;
        {
          const Budget budget("short", 16_MiB);
          const BudgetScope scope(budget);
          block = host->allocate(9_MiB);
        }
        host->deallocate(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
  done = true;
  looker.join();
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
}

TEST(ArenaThreads, ReturnTheirCachesWhenTheyEnd) {
  HostArena host({.limit = 64_MiB});
  std::thread([&] {
    std::vector<Block> blocks;
    for (std::size_t i = 1; i < 100; ++i) blocks.push_back(host->allocate(i * 1000));
    for (const Block& block : blocks) host->deallocate(block);
  }).join();
  EXPECT_EQ(host->empty_caches(), 0u);
  EXPECT_EQ(host->extents().size(), 2u) << "all is free and merged";
  EXPECT_EQ(host->stats().num_allocs, 99u) << "what ended threads did still counts";
  EXPECT_EQ(host->stats().largest_alloc_bytes, LiveBlocks::rounded(99'000));
  EXPECT_GE(host->stats().peak_bytes_in_use, 99 * 50 * 1000u);
}

TEST(ArenaThreads, LeaveTheirDeferredFreesToTheNextFlushWhenTheyEnd) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("deferred", 8_MiB);
  host->set_deferred_release(true);
  std::thread([&] {
    const BudgetScope scope(budget);
    host->deallocate(host->allocate(1_MiB));
    host->deallocate(host->allocate(2_MiB));
  }).join();
  EXPECT_EQ(budget.used(), 3_MiB);
  EXPECT_EQ(sum_of_ledger(*host).bytes, 3_MiB);
  EXPECT_EQ(host->flush_deferred(), 3_MiB);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
  EXPECT_EQ(host->extents().size(), 2u);
}

TEST(ArenaThreads, MayBeManyAndShortAndLeaveBlocksBehind) {
  HostArena host({.limit = 64_MiB});
  const auto registered = [] {
    std::size_t count = 0;
    ThreadRegistry::instance().for_each([&](const ThreadMemory&) { ++count; });
    return count;
  };
  const std::size_t before = registered();
  std::vector<Block> left;
  for (int i = 0; i < kShortThreads; ++i)
    std::thread([&] {
      host->deallocate(host->allocate(3000));
      left.push_back(host->allocate(1000));
    }).join();
  EXPECT_LE(registered(), before + 2) << "the state of ended threads is reused";
  EXPECT_EQ(host->stats().bytes_in_use, static_cast<std::size_t>(kShortThreads) * 1024);
  EXPECT_EQ(host->stats().num_allocs, static_cast<std::size_t>(kShortThreads) * 2);
  for (const Block& block : left) host->deallocate(block);
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
  host->empty_caches();
  EXPECT_EQ(host->extents().size(), 2u);
  host->validate();
}

TEST(ArenaThreads, OutliveAnArenaWhoseBlocksTheyCached) {
  auto arena = std::make_unique<HostArena>(ArenaOptions{.limit = 16_MiB});
  std::latch cached(1), destroyed(1);
  std::thread thread([&] {
    (*arena)->deallocate((*arena)->allocate(100'000));
    cached.count_down();
    destroyed.wait();
    HostArena next({.limit = 16_MiB});  // Likely under the number of the one that is gone.
    next->deallocate(next->allocate(100'000));
    EXPECT_EQ(next->stats().num_allocs, 1u);
    EXPECT_EQ(next->empty_caches(), LiveBlocks::rounded(100'000));
  });
  cached.wait();
  arena.reset();
  destroyed.count_down();
  thread.join();
}

TEST(ArenaThreads, MayMakeAndDestroyArenasWhileOthersEnd) {
  std::atomic<bool> done{false};
  HostArena shared({.limit = 16_MiB});
  std::thread ending([&] {
    while (!done) std::thread([&] { shared->deallocate(shared->allocate(100)); }).join();
  });
  FakePageSource pages;
  for (int i = 0; i < kRounds / 10; ++i) {
    Arena arena(pages, {.limit = 64_KiB});
    arena.deallocate(arena.allocate(100));
  }
  done = true;
  ending.join();
}

// Pages of which one thread gets none: the first one that commits after `wait` was set, and waits there for the test.
class WaitingPageSource final : public PageSource {
 public:
  std::size_t page_bytes() const noexcept override { return host_.page_bytes(); }
  std::size_t range_bytes(std::size_t limit) const noexcept override { return host_.range_bytes(limit); }
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t least) override {
    return std::make_unique<Range>(host_.reserve(wanted, least), *this);
  }

  std::atomic<bool> wait{false};
  std::latch reached{1}, go_on{1};

 private:
  class Range final : public PageRange {
   public:
    Range(std::unique_ptr<PageRange> range, WaitingPageSource& source)
        : PageRange(range->base(), range->bytes()), range_(std::move(range)), source_(source) {}
    bool commit(std::size_t offset, std::size_t bytes) noexcept override {
      if (source_.wait.exchange(false)) {
        source_.refused_ = std::this_thread::get_id();
        source_.reached.count_down();
        source_.go_on.wait();
      }
      return source_.refused_ != std::this_thread::get_id() && range_->commit(offset, bytes);
    }
    bool release(std::size_t offset, std::size_t bytes) noexcept override { return range_->release(offset, bytes); }
    std::size_t move(std::size_t from, std::size_t to, std::size_t bytes) noexcept override {
      return range_->move(from, to, bytes);
    }

   private:
    std::unique_ptr<PageRange> range_;
    WaitingPageSource& source_;
  };
  HostPageSource host_;
  std::thread::id refused_;
};

void refuse_one_beside_another(const Budget* budget) {
  WaitingPageSource pages;
  Arena arena(pages, {.limit = 16_MiB});
  const auto allocate = [&](std::size_t bytes) {
    std::optional<BudgetScope> scope;
    if (budget) scope.emplace(*budget);
    arena.deallocate(arena.allocate(bytes));
  };
  pages.wait = true;
  std::thread doomed([&] { EXPECT_THROW(allocate(12_MiB), OutOfMemory); });
  pages.reached.wait();  // It has charged 12 MiB and will not get them.
  std::atomic<bool> begun{false};
  std::thread fitting([&] {
    begun = true;
    EXPECT_NO_THROW(allocate(10_MiB)) << "refused because of a charge that was undone";
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // For it to meet the charge.
  pages.go_on.count_down();
  doomed.join();
  fitting.join();
  EXPECT_EQ(arena.stats().bytes_in_use, 0u);
}

TEST(ArenaThreads, ARequestThatFailsDoesNotMakeAnotherThreadsFail) { refuse_one_beside_another(nullptr); }

TEST(ArenaThreads, ARequestThatFailsDoesNotMakeAnotherThreadsFailInTheSameBudget) {
  const Budget budget("both", 16_MiB);
  refuse_one_beside_another(&budget);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ArenaThreads, WhatAlwaysFitsIsNeverRefusedBesideWhatNeverDoes) {
  HostArena host({.limit = 8_MiB});
  constexpr std::size_t kPages = 8_MiB / 4096, kPinned = kPages * 6 / 10;
  std::vector<Block> all, pins;  // One small block on each of 60 % of the pages.
  for (std::size_t i = 0; i < kPinned * 64; ++i) all.push_back(host->allocate(64));
  for (const Block& block : all)
    if (reinterpret_cast<std::uintptr_t>(block.data()) % 4096 == 0)
      pins.push_back(block);
    else
      host->deallocate(block);
  host->trim();
  std::atomic<bool> stop{false};
  std::size_t refused = 0;
  std::thread never_fits([&] {
    while (!stop) EXPECT_THROW(static_cast<void>(host->allocate(8_MiB * 6 / 10)), OutOfMemory);
  });
  for (int round = 0; round < kRounds; ++round) {
    try {
      host->deallocate(host->allocate((kPages - pins.size() - 2) * 4096));
    } catch (const OutOfMemory&) {
      ++refused;
    }
  }
  stop = true;
  never_fits.join();
  EXPECT_EQ(refused, 0u);
  for (const Block& block : pins) host->deallocate(block);
}

}  // namespace
}  // namespace plimsoll
