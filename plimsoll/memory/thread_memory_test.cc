#include "plimsoll/memory/thread_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <set>
#include <thread>

namespace plimsoll {
namespace {

TEST(ThreadMemory, IsOnePerThreadAndHasAnIdOfItsOwn) {
  constexpr std::size_t kThreads = 8;
  std::latch all_there(kThreads);
  std::vector<ThreadMemory*> memories(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      memories[i] = &ThreadMemory::current();
      EXPECT_EQ(&ThreadMemory::current(), memories[i]);
      all_there.arrive_and_wait();
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint16_t> ids;
  for (const ThreadMemory* memory : memories) {
    EXPECT_NE(memory->id, 0);
    ids.insert(memory->id);
  }
  EXPECT_EQ(ids.size(), kThreads);
}

TEST(ThreadMemory, IsTakenOverByALaterThread) {
  ThreadMemory* first = nullptr;
  ThreadMemory* second = nullptr;
  std::thread([&] { first = &ThreadMemory::current(); }).join();
  std::thread([&] { second = &ThreadMemory::current(); }).join();
  EXPECT_EQ(first, second);
}

TEST(StopThreads, HoldsOthersOutsideTheirGate) {
  std::atomic<bool> done{false};
  std::int64_t left = 0, right = 0;  // Plain: only the gate keeps them together.
  std::latch started(1);
  std::thread worker([&] {
    ThreadMemory& memory = ThreadMemory::current();
    started.count_down();
    while (!done) {
      const EnterThread inside(memory);
      ++left;
      ++right;
    }
  });
  started.wait();
  std::int64_t seen = 0;
  for (int i = 0; i < 500; ++i) {
    {
      const StopThreads stopped;
      ASSERT_EQ(left, right) << "seen in the middle of a step";
      seen = std::max(seen, left);
      left += 5;
      right += 5;
    }
    std::this_thread::yield();
  }
  done = true;
  worker.join();
  EXPECT_EQ(left, right);
  EXPECT_GT(seen, 0);
}

TEST(StopThreads, ListsTheStoppedOnesAndTheCaller) {
  ThreadMemory* self = &ThreadMemory::current();
  std::latch there(1), may_end(1);
  ThreadMemory* other = nullptr;
  std::thread thread([&] {
    other = &ThreadMemory::current();
    there.count_down();
    may_end.wait();
  });
  there.wait();
  {
    const StopThreads all;
    EXPECT_NE(std::find(all.begin(), all.end(), self), all.end());
    EXPECT_NE(std::find(all.begin(), all.end(), other), all.end());
  }
  {
    const StopThreads one([&](const ThreadMemory& memory) { return &memory == other; });
    EXPECT_EQ(std::distance(one.begin(), one.end()), 1);
    const EnterThread inside(*self);  // Not stopped.
  }
  may_end.count_down();
  thread.join();
}

}  // namespace
}  // namespace plimsoll
