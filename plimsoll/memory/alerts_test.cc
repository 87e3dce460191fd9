#include "plimsoll/memory/alerts.h"

#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>

#include "plimsoll/base/log.h"
#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/pages/fake_pages_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;

TEST(Alerts, RequireAFractionAndACallback) {
  const auto nothing = [](const MemoryAlert&) {};
  for (const double fraction : {0.0, -0.1, 1.0001, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(static_cast<void>(on_memory_alert(fraction, nothing)), InvalidArgument) << fraction;
  EXPECT_THROW(static_cast<void>(on_memory_alert(0.5, nullptr)), InvalidArgument);
  EXPECT_NO_THROW(static_cast<void>(on_memory_alert(1.0, nothing)));
}

TEST(Alerts, FireOncePerCrossingAndAreArmedAgainBelow) {
  HostArena host({.name = "CPU:3", .limit = 10_MiB});
  std::vector<MemoryAlert> fired;
  const auto handle = on_memory_alert(0.8, [&](const MemoryAlert& alert) { fired.push_back(alert); });
  const Block below = host->allocate(8_MiB - 64);
  EXPECT_TRUE(fired.empty()) << "one line below the threshold";
  const Block crossing = host->allocate(64);
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].device, "CPU:3");
  EXPECT_EQ(fired[0].bytes_in_use, 8_MiB);
  EXPECT_EQ(fired[0].bytes_limit, 10_MiB);
  EXPECT_EQ(fired[0].fraction, 0.8);
  const Block above = host->allocate(64);
  EXPECT_EQ(fired.size(), 1u) << "still above";
  host->deallocate(above);
  EXPECT_EQ(fired.size(), 1u) << "at the threshold";
  host->deallocate(crossing);
  const Block again = host->allocate(64);
  EXPECT_EQ(fired.size(), 2u) << "armed again below";
  host->deallocate(again);
  host->deallocate(below);
}

TEST(Alerts, AreExactWithOneThreadOverManySmallSteps) {
  HostArena host({.limit = 10_MiB});
  int fired = 0;
  const auto handle = on_memory_alert(0.25, [&](const MemoryAlert&) { ++fired; });
  for (int round = 1; round <= 5; ++round) {
    std::vector<Block> blocks;
    for (std::size_t used = 0; used < 5_MiB / 2; used += 4096) {
      ASSERT_EQ(fired, round - 1) << used;
      blocks.push_back(host->allocate(4096));
    }
    ASSERT_EQ(fired, round);
    for (const Block& block : blocks) host->deallocate(block);
    ASSERT_EQ(fired, round);
  }
}

TEST(Alerts, OfSeveralThresholdsEachFireOnce) {
  HostArena host({.limit = 10_MiB});
  std::vector<double> fired;
  const auto note = [&](const MemoryAlert& alert) { fired.push_back(alert.fraction); };
  const auto high = on_memory_alert(0.9, note), low = on_memory_alert(0.3, note), middle = on_memory_alert(0.5, note);
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(host->allocate(1_MiB));
  EXPECT_THAT(fired, ElementsAre(0.3, 0.5, 0.9));
  for (int i = 0; i < 6; ++i) {
    host->deallocate(blocks.back());
    blocks.pop_back();
  }
  for (int i = 0; i < 6; ++i) blocks.push_back(host->allocate(1_MiB));
  EXPECT_THAT(fired, ElementsAre(0.3, 0.5, 0.9, 0.5, 0.9)) << "0.3 was never left";
  for (const Block& block : blocks) host->deallocate(block);
  const Block all = host->allocate(10_MiB);
  EXPECT_EQ(fired.size(), 8u) << "one request may cross them all";
  host->deallocate(all);
}

TEST(Alerts, FireAtOnceWhenUseIsAlreadyAbove) {
  HostArena host({.limit = 10_MiB});
  const Block block = host->allocate(6_MiB);
  int fired = 0;
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert&) { ++fired; });
  EXPECT_EQ(fired, 1);
  host->deallocate(block);
}

TEST(Alerts, FireForEachDevice) {
  HostArena first({.name = "CPU:0", .limit = 10_MiB}), second({.name = "CPU:1", .limit = 10_MiB});
  std::vector<std::string> fired;
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert& alert) { fired.push_back(alert.device); });
  const Block one = first->allocate(6_MiB), two = second->allocate(6_MiB);
  EXPECT_THAT(fired, ElementsAre("CPU:0", "CPU:1"));
  HostArena third({.name = "CPU:2", .limit = 10_MiB});
  const Block three = third->allocate(6_MiB);
  EXPECT_EQ(fired.back(), "CPU:2") << "also for a device that came later";
  first->deallocate(one);
  second->deallocate(two);
  third->deallocate(three);
}

TEST(Alerts, AreFreshForAnArenaThatTakesAnothersPlace) {
  int fired = 0;
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert&) { ++fired; });
  for (int i = 1; i <= 3; ++i) {
    HostArena host({.limit = 10_MiB});
    static_cast<void>(host->allocate(6_MiB));  // Ends with the arena.
    EXPECT_EQ(fired, i);
  }
}

TEST(Alerts, EndWithTheirHandle) {
  HostArena host({.limit = 10_MiB});
  int fired = 0;
  std::optional<MemoryAlertHandle> handle = on_memory_alert(0.5, [&](const MemoryAlert&) { ++fired; });
  handle.reset();
  host->deallocate(host->allocate(6_MiB));
  EXPECT_EQ(fired, 0);
}

TEST(Alerts, MoveWithTheirHandle) {
  HostArena host({.limit = 10_MiB});
  std::vector<int> fired;
  MemoryAlertHandle first = on_memory_alert(0.5, [&](const MemoryAlert&) { fired.push_back(1); });
  MemoryAlertHandle second = on_memory_alert(0.5, [&](const MemoryAlert&) { fired.push_back(2); });
  first = std::move(second);
  host->deallocate(host->allocate(6_MiB));
  EXPECT_THAT(fired, ElementsAre(2)) << "the alert that was assigned over has ended";
  MemoryAlertHandle third(std::move(first));
  host->deallocate(host->allocate(6_MiB));
  EXPECT_THAT(fired, ElementsAre(2, 2));
}

TEST(Alerts, LetTheirCallbackAllocateFreeAndCrossAgain) {
  HostArena host({.limit = 10_MiB});
  std::vector<Block> ballast;
  for (int i = 0; i < 4; ++i) ballast.push_back(host->allocate(1_MiB));
  int fired = 0;
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert&) {
    ++fired;
    host->deallocate(host->allocate(100'000));
    if (!ballast.empty()) host->deallocate(ballast.back()), ballast.pop_back();  // Below again: armed.
    host->stats();
  });
  const Block first = host->allocate(1_MiB);
  EXPECT_EQ(fired, 1);
  const Block second = host->allocate(1_MiB);
  EXPECT_EQ(fired, 2);
  host->deallocate(first);
  host->deallocate(second);
  for (const Block& block : ballast) host->deallocate(block);
}

TEST(Alerts, LetTheirCallbackEndThemselvesAndMakeOthers) {
  HostArena host({.limit = 10_MiB});
  int fired = 0, later = 0;
  std::optional<MemoryAlertHandle> handle, other;
  handle = on_memory_alert(0.5, [&](const MemoryAlert&) {
    ++fired;
    other = on_memory_alert(0.9, [&](const MemoryAlert&) { ++later; });
    handle.reset();
  });
  const Block first = host->allocate(6_MiB);
  EXPECT_EQ(fired, 1);
  const Block second = host->allocate(4_MiB);
  EXPECT_EQ(later, 1);
  host->deallocate(first);
  host->deallocate(second);
  host->deallocate(host->allocate(6_MiB));
  EXPECT_EQ(fired, 1);
}

TEST(Alerts, LetTheirCallbackMakeAndDestroyArenas) {
  HostArena host({.limit = 10_MiB});
  int fired = 0;
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert& alert) {
    if (alert.bytes_limit != 10_MiB) return;
    ++fired;
    HostArena inner({.limit = 1_MiB});
    inner->deallocate(inner->allocate(100));
  });
  host->deallocate(host->allocate(6_MiB));
  EXPECT_EQ(fired, 1);
  std::thread([&] {  // Also when what crosses is a thread's end.
    host->set_deferred_release(true);
    host->deallocate(host->allocate(6_MiB));
  })
      .join();
  EXPECT_EQ(fired, 2);
}

TEST(Alerts, WhoseCallbackThrowsLeaveTheAllocationAsItIs) {
  HostArena host({.limit = 10_MiB});
  const auto handle = on_memory_alert(0.5, [](const MemoryAlert&) { throw std::runtime_error("boom"); });
  Block block;
  EXPECT_NO_THROW(block = host->allocate(6_MiB));
  host->deallocate(block);
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
}

TEST(Alerts, AreNotMissedAfterARequestThatABudgetRefused) {
  HostArena host({.limit = 10_MiB});
  int fired = 0;
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert&) { ++fired; });
  const Budget small("small", 1_MiB);
  host->deallocate(host->allocate(2_MiB));  // Stays cached.
  const Block kept = host->allocate(4_MiB);
  {
    const BudgetScope scope(small);
    EXPECT_THROW(static_cast<void>(host->allocate(5_MiB)), OutOfMemory);
  }
  EXPECT_EQ(fired, 0) << "nothing was allocated";
  const Block again = host->allocate(2_MiB);
  EXPECT_EQ(fired, 1);
  host->deallocate(again);
  host->deallocate(kept);
}

TEST(Alerts, FireOncePerCrossingWithManyThreads) {
  HostArena host({.limit = 64_MiB});
  std::atomic<int> fired{0};
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert&) { ++fired; });
  std::vector<std::thread> threads;
  std::vector<std::vector<Block>> blocks(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 150; ++i) blocks[t].push_back(host->allocate(100'000));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fired, 1);
  for (const auto& some : blocks)
    for (const Block& block : some) host->deallocate(block);
  EXPECT_EQ(fired, 1);
}

TEST(Alerts, MayComeAndGoWhileArenasDoAndOthersAllocate) {
  HostArena host({.limit = 16_MiB});
  std::atomic<bool> done{false};
  std::atomic<int> fired{0};
  std::thread allocating([&] {
    while (!done) host->deallocate(host->allocate(10_MiB));
  });
  std::thread making([&] {
    FakePageSource pages;
    while (!done) Arena(pages, {.limit = 64_KiB});
  });
  for (int i = 0; i < 100 || fired == 0; ++i) {
    const auto handle = on_memory_alert(0.5, [&](const MemoryAlert&) { ++fired; });
    std::this_thread::yield();
  }
  done = true;
  allocating.join();
  making.join();
}

TEST(BudgetAlerts, FireOncePerCrossingAndAreArmedAgainBelow) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("ranker", 10_MiB);
  std::vector<MemoryAlert> fired;
  const auto handle = budget.on_alert(0.8, [&](const MemoryAlert& alert) { fired.push_back(alert); });
  const BudgetScope scope(budget);
  const Block below = host->allocate(8_MiB - 64);
  EXPECT_TRUE(fired.empty()) << "one line below the threshold";
  const Block crossing = host->allocate(64);
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].budget, "ranker");
  EXPECT_EQ(fired[0].device, "");
  EXPECT_EQ(fired[0].bytes_in_use, 8_MiB);
  EXPECT_EQ(fired[0].bytes_limit, 10_MiB);
  EXPECT_EQ(fired[0].fraction, 0.8);
  host->deallocate(host->allocate(64));
  EXPECT_EQ(fired.size(), 1u) << "still above";
  host->deallocate(crossing);
  host->deallocate(host->allocate(64));
  EXPECT_EQ(fired.size(), 2u) << "armed again below";
  host->deallocate(below);
}

TEST(BudgetAlerts, AreExactOverManySmallStepsAndCountOnlyTheirBudget) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("small", 10_MiB), other("other", 10_MiB);
  int fired = 0, of_devices = 0;
  const auto handle = budget.on_alert(0.25, [&](const MemoryAlert&) { ++fired; });
  const auto device = on_memory_alert(1.0, [&](const MemoryAlert&) { ++of_devices; });
  const Block beside = host->allocate(20_MiB);
  std::vector<Block> blocks;
  {
    const BudgetScope scope(other);
    blocks.push_back(host->allocate(9_MiB));
  }
  const BudgetScope scope(budget);
  for (std::size_t used = 0; used < 5_MiB / 2; used += 4096) {
    ASSERT_EQ(fired, 0) << used;
    blocks.push_back(host->allocate(4096));
  }
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(of_devices, 0);
  for (const Block& block : blocks) host->deallocate(block);
  host->deallocate(beside);
}

TEST(BudgetAlerts, OfParentsCountWhatIsChargedBelowThem) {
  HostArena host({.limit = 64_MiB});
  const Budget process("process", 16_MiB), left("left", 12_MiB, process), right("right", 12_MiB, process);
  std::vector<std::string> fired;
  const auto note = [&](const MemoryAlert& alert) { fired.push_back(alert.budget); };
  const auto of_process = process.on_alert(0.5, note);
  const auto of_left = left.on_alert(0.5, note);
  const auto of_right = right.on_alert(0.5, note);
  const auto allocate = [&](const Budget& budget, std::size_t bytes) {
    const BudgetScope scope(budget);
    return host->allocate(bytes);
  };
  const Block first = allocate(left, 5_MiB);
  EXPECT_TRUE(fired.empty());
  const Block second = allocate(right, 3_MiB);
  EXPECT_THAT(fired, ElementsAre("process")) << "8 of 16 MiB together, neither half of its own";
  const Block third = allocate(left, 1_MiB);
  EXPECT_THAT(fired, ElementsAre("process", "left"));
  for (const Block& block : {first, second, third}) host->deallocate(block);
}

TEST(BudgetAlerts, FireAtOnceWhenUseIsAboveAlready) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("full", 4_MiB);
  const BudgetScope scope(budget);
  const Block block = host->allocate(4_MiB);
  int fired = 0;
  const auto handle = budget.on_alert(0.9, [&](const MemoryAlert&) { ++fired; });
  EXPECT_EQ(fired, 1);
  host->deallocate(block);
}

TEST(BudgetAlerts, EndWithTheirHandleAndLeaveNoMarkBehind) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("b", 4_MiB);
  const BudgetScope scope(budget);
  int fired = 0, others = 0;
  const auto other = budget.on_alert(1.0, [&](const MemoryAlert&) { ++others; });
  {
    const auto handle = budget.on_alert(0.5, [&](const MemoryAlert&) { ++fired; });
    host->deallocate(host->allocate(3_MiB));
    EXPECT_EQ(fired, 1);
  }
  host->deallocate(host->allocate(3_MiB));
  EXPECT_EQ(fired, 1);
  host->deallocate(host->allocate(4_MiB));
  EXPECT_EQ(others, 1) << "the other one stays";
}

TEST(BudgetAlerts, KeepTheirBudgetAliveAndThenLetItGo) {
  HostArena host({.limit = 64_MiB});
  std::weak_ptr<BudgetNode> node;
  {
    std::optional<Budget> budget(std::in_place, "gone", 4_MiB);
    node = budget->node();
    const auto handle = budget->on_alert(0.5, [](const MemoryAlert&) {});
    budget.reset();
    EXPECT_FALSE(node.expired());
  }
  EXPECT_TRUE(node.expired());
}

TEST(BudgetAlerts, MayAllocateFreeAndThrowInTheCallback) {
  HostArena host({.limit = 64_MiB});
  const Budget budget("busy", 8_MiB);
  const BudgetScope scope(budget);
  Block ballast = host->allocate(3_MiB), extra;
  int fired = 0;
  const auto handle = budget.on_alert(0.5, [&](const MemoryAlert& alert) {
    ++fired;
    EXPECT_EQ(alert.bytes_in_use, 5_MiB);
    host->deallocate(std::exchange(ballast, {}));  // Below again, and so armed.
    extra = host->allocate(64);
    throw std::runtime_error("no matter");
  });
  std::string logged;
  LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged = text; });
  const Block block = host->allocate(2_MiB);
  set_log_sink(std::move(before));
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(logged, "memory alert at 0.5 of budget \"busy\": the callback threw: no matter");
  EXPECT_EQ(budget.used(), 2_MiB + 64);
  host->deallocate(block);
  host->deallocate(extra);
}

TEST(BudgetAlerts, FireAtTheTrueCrossingWhenThreadsShareTheBudget) {
  constexpr std::size_t kThreads = 4, kBlock = 1024, kThreshold = 12_MiB;
  HostArena host({.limit = 64_MiB});
  const Budget budget("shared", 16_MiB);
  for (int round = 0; round < 3; ++round) {
    std::atomic<std::size_t> asked{0}, granted{0}, fired{0}, least{SIZE_MAX}, most{0};
    const auto handle = budget.on_alert(0.75, [&](const MemoryAlert& alert) {
      ++fired;
      EXPECT_GE(alert.bytes_in_use, kThreshold);
      EXPECT_GE(asked.load(), kThreshold) << "too early";
      most = std::max(most.load(), granted.load());
    });
    std::vector<std::thread> threads;
    std::vector<std::vector<Block>> blocks(kThreads);
    for (std::size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        const BudgetScope scope(budget);
        for (std::size_t bytes = 0; bytes < 3_MiB + 64_KiB; bytes += kBlock) {
          asked += kBlock;
          blocks[i].push_back(host->allocate(kBlock));
          granted += kBlock;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fired, 1u) << "12.25 MiB are charged, with quotas of threads in between";
    EXPECT_LE(most.load(), kThreshold + 256_KiB) << "too late";
    for (const auto& list : blocks)
      for (const Block& block : list) host->deallocate(block);
  }
}

TEST(BudgetAlerts, RequireAFractionAndACallback) {
  const Budget budget("b", 1_MiB);
  const auto nothing = [](const MemoryAlert&) {};
  EXPECT_THROW(static_cast<void>(budget.on_alert(0, nothing)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(budget.on_alert(1.1, nothing)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(budget.on_alert(0.5, nullptr)), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
