// Budgets charged by several threads at once: never past a limit, at any instant.
#include <atomic>
#include <latch>
#include <random>
#include <thread>

#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kRounds = 1500;
#else
constexpr int kRounds = 30'000;
#endif

// Bytes that the test itself knows to be live: counted before an allocation's caller can know, after a free has begun.
class Witness {
 public:
  void add(std::size_t bytes) { raise(live_.fetch_add(bytes) + bytes); }
  void remove(std::size_t bytes) { live_.fetch_sub(bytes); }
  std::size_t most() const { return most_; }
  std::size_t live() const { return live_; }

 private:
  void raise(std::size_t now) {
    std::size_t most = most_;
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
  }
  std::atomic<std::size_t> live_{0}, most_{0};
};

void charge_at_random(Arena& arena, const Budget& budget, Witness& witness, unsigned seed, std::size_t most) {
  std::mt19937 random(seed);
  const BudgetScope scope(budget);
  std::vector<Block> live;
  for (int i = 0; i < kRounds; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      std::swap(live[random() % live.size()], live.back());
      witness.remove(LiveBlocks::rounded(live.back().size()));
      arena.deallocate(live.back());
      live.pop_back();
      continue;
    }
    try {
      live.push_back(arena.allocate(1 + random() % most));
      witness.add(LiveBlocks::rounded(live.back().size()));
    } catch (const OutOfMemory& error) {
      EXPECT_LE(error.in_use(), error.limit());
    }
  }
  for (const Block& block : live) {
    witness.remove(LiveBlocks::rounded(block.size()));
    arena.deallocate(block);
  }
}

TEST(BudgetThreads, NeverPassALimitAtAnyInstant) {
  HostArena host({.limit = 64_MiB});
  const Budget process("process", 1_MiB), left("left", 700'000, process), right("right", 700'000, process);
  Witness all, in_left, in_right;
  std::atomic<bool> done{false};
  std::thread sampler([&] {
    while (!done) {
      EXPECT_LE(process.used(), process.limit());
      EXPECT_LE(left.used(), left.limit());
      EXPECT_LE(right.used(), right.limit());
      EXPECT_LE(process.peak(), process.limit());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back(
        [&, i] { charge_at_random(*host, i % 2 ? left : right, i % 2 ? in_left : in_right, i, 60'000); });
  for (std::thread& thread : threads) thread.join();
  done = true;
  sampler.join();
  EXPECT_LE(in_left.most(), left.limit());
  EXPECT_LE(in_right.most(), right.limit());
  EXPECT_GT(in_left.most() + in_right.most(), process.limit()) << "together they must have pressed";
  for (const Budget* budget : {&process, &left, &right}) EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
}

TEST(BudgetThreads, RefuseOnlyWhenTheBytesAreReallyTaken) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("shared", 8_MiB);
  std::atomic<int> turn{0};
  std::vector<std::thread> threads;
  for (int self = 0; self < 3; ++self)
    threads.emplace_back([&, self] {
      const BudgetScope scope(budget);
      for (int round = 0; round < kRounds / 30; ++round) {
        while (turn != self) std::this_thread::yield();
        const Block block = host->allocate(8_MiB);  // All of it, whatever quota the others kept.
        host->deallocate(block);
        turn = (self + 1) % 3;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0u);
}

TEST(BudgetThreads, PeakIsWithinTheStatedQuotaPerThread) {
  HostArena host({.limit = 256_MiB});
  constexpr int kThreads = 4, kTurns = 200;
  const Budget process("process", 32_MiB), budget("shared", 64_MiB, process);
  std::atomic<int> turn{0};  // One at a time holds 4 MiB, so that the true peak is known.
  std::latch looked(1);
  std::vector<std::thread> threads;
  for (int self = 0; self < kThreads; ++self)
    threads.emplace_back([&, self] {
      const BudgetScope scope(budget);
      for (int mine = self; mine < kTurns; mine += kThreads) {
        while (turn != mine) std::this_thread::yield();
        EXPECT_THROW(static_cast<void>(host->allocate(40_MiB)), OutOfMemory) << "the parent refuses";
        host->deallocate(host->allocate(4_MiB));
        ++turn;
      }
      looked.wait();
    });
  while (turn < kTurns) std::this_thread::yield();
  EXPECT_GE(budget.peak(), 4_MiB);
  EXPECT_LE(budget.peak(), 4_MiB + kThreads * (64_MiB / 128));
  EXPECT_LE(process.peak(), 4_MiB + kThreads * (32_MiB / 128));
  EXPECT_LE(host->stats().peak_bytes_in_use, 4_MiB + kThreads * (256_MiB / 128));
  looked.count_down();
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(budget.peak(), 4_MiB + kThreads * (64_MiB / 128));
  EXPECT_GE(budget.peak(), 4_MiB) << "the peak outlives the threads";
}

TEST(BudgetThreads, MayMakeAndEndBudgetsWhileOthersCharge) {
  HostArena host({.limit = 64_MiB});
  const Budget process("process", 32_MiB);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Block> left;
      for (int i = 0; i < kRounds / 20; ++i) {
        const Budget own("own", 4_MiB, process);
        const BudgetScope scope(own);
        left.push_back(host->allocate(1 + random() % 5000));
        if (left.size() > 10) {
          host->deallocate(left.front());
          left.erase(left.begin());
        }
        if (i % 50 == 0) {
          EXPECT_FALSE(process.report().empty());
        }
      }
      for (const Block& block : left) host->deallocate(block);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(process.used(), 0u);
}

}  // namespace
}  // namespace plimsoll
