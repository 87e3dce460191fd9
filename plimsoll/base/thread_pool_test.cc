#include "plimsoll/base/thread_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/processors.h"

namespace plimsoll {
namespace {

using Chunks = std::vector<std::pair<std::int64_t, std::int64_t>>;

Chunks chunks_of(ThreadPool& pool, std::int64_t n, std::int64_t grain) {
  Chunks chunks(n > 0 ? static_cast<std::size_t>((n - 1) / std::max<std::int64_t>(grain, 1) + 1) : 0);
  std::atomic<std::size_t> next{0};
  pool.parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) { chunks.at(next++) = {begin, end}; });
  EXPECT_EQ(next, chunks.size());
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

TEST(ThreadPool, CutsALoopTheSameForAnyNumberOfThreads) {
  ThreadPool one(1), four(4);
  for (const std::int64_t n : {0, 1, 2, 7, 64, 1000})
    for (const std::int64_t grain : {-1, 1, 3, 64, 2000})
      EXPECT_EQ(chunks_of(one, n, grain), chunks_of(four, n, grain));
  EXPECT_EQ(chunks_of(four, 7, 3), (Chunks{{0, 3}, {3, 6}, {6, 7}}));
  EXPECT_TRUE(chunks_of(four, -5, 1).empty());
}

TEST(ThreadPool, CutsLoopsNearTheLargestInteger) {
  ThreadPool pool(2);
  const std::int64_t grain = INT64_MAX / 2;
  EXPECT_EQ(chunks_of(pool, INT64_MAX, grain), (Chunks{{0, grain}, {grain, 2 * grain}, {2 * grain, INT64_MAX}}));
}

TEST(ThreadPool, VisitsEveryElementOnceOverManyLoops) {
  ThreadPool pool(4);
  std::vector<int> visits(10000);
  for (int round = 1; round <= 300; ++round) {
    pool.parallel_for(10000, 100, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // Workers fall asleep.
  }
  for (const int count : visits) ASSERT_EQ(count, 300);
}

TEST(ThreadPool, UsesSeveralThreadsAndTheCallerIsOne) {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int attempt = 0; attempt < 1000 && (seen.size() < 2 || !seen.contains(std::this_thread::get_id())); ++attempt)
    pool.parallel_for(16, 1, [&](std::int64_t, std::int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  EXPECT_GE(seen.size(), 2u);
  EXPECT_LE(seen.size(), 3u);
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
}

TEST(ThreadPool, RunsNestedLoopsInTheSameThread) {
  ThreadPool pool(4);
  std::atomic<int> inner{0};
  EXPECT_FALSE(in_parallel_region());
  pool.parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
    EXPECT_TRUE(in_parallel_region());
    const auto self = std::this_thread::get_id();
    pool.parallel_for(10, 2, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(inner, 80);
  EXPECT_FALSE(in_parallel_region());
}

TEST(ThreadPool, RethrowsAnExceptionInTheCallerAndStaysUsable) {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> ran{0};
      const auto loop = [&] {
        pool.parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t) {
          ++ran;
          if (begin == 5) throw std::runtime_error("chunk 5");
        });
      };
      EXPECT_THROW(loop(), std::runtime_error);
      EXPECT_GE(ran, 1);
      if (threads == 1) {
        EXPECT_EQ(ran, 6) << "chunks after the failed one are skipped";
      }
    }
    EXPECT_FALSE(in_parallel_region());
    EXPECT_EQ(chunks_of(pool, 100, 10).size(), 10u);
  }
}

TEST(ThreadPool, RethrowsOnlyTheFirstOfManyExceptions) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round)
    EXPECT_THROW(pool.parallel_for(64, 1, [](std::int64_t, std::int64_t) { throw InvalidArgument("each"); }),
                 InvalidArgument);
}

TEST(ThreadPool, ServesLoopsOfSeveralThreadsAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::vector<std::int64_t> sums(4, 0);
  for (std::int64_t& sum : sums)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::atomic<std::int64_t> total{0};
        pool.parallel_for(1000, 37, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
        sum += total;
      }
    });
  for (auto& caller : callers) caller.join();
  for (const std::int64_t sum : sums) EXPECT_EQ(sum, 100000);
}

TEST(ThreadPool, ChangesItsNumberOfThreadsWhileLoopsRun) {
  ThreadPool pool(2);
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) ASSERT_EQ(chunks_of(pool, 100, 3).size(), 34u);
  });
  for (int round = 0; round < 40; ++round) {
    pool.set_num_threads(round % 5 + 1);
    EXPECT_EQ(pool.num_threads(), round % 5 + 1);
    EXPECT_EQ(chunks_of(pool, 50, 1).size(), 50u);
  }
  stop = true;
  caller.join();
}

TEST(ThreadPool, RunsALoopWithoutAllocating) {
  ThreadPool pool(3);
  EXPECT_EQ(chunks_of(pool, 100, 1).size(), 100u);  // Starts the workers.
  std::vector<int> values(1000);
  const std::size_t before = heap_allocations();
  for (int round = 0; round < 20; ++round)
    pool.parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++values[static_cast<std::size_t>(i)];
    });
  EXPECT_EQ(heap_allocations(), before);
  EXPECT_EQ(values[999], 20);
}

TEST(ThreadPool, RefusesSenselessNumbersOfThreads) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.set_num_threads(0), InvalidArgument);
  EXPECT_THROW(pool.set_num_threads(1025), InvalidArgument);
  EXPECT_THROW(ThreadPool(-1), InvalidArgument);
  EXPECT_THROW(pool.parallel_for(4, 1, [&](std::int64_t, std::int64_t) { pool.set_num_threads(3); }),
               FailedPrecondition);
  EXPECT_EQ(pool.num_threads(), 2);
}

TEST(ThreadPool, BlocksSignalsInWorkers) {
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> checked{false};
  for (int attempt = 0; attempt < 1000 && !checked; ++attempt)
    pool.parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (std::this_thread::get_id() == caller) return;
      sigset_t mask;
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      EXPECT_TRUE(sigismember(&mask, SIGINT));
      checked = true;
    });
  EXPECT_TRUE(checked);
}

TEST(ProcessPool, StartsWithTheUsableProcessorsAndCanBeSet) {
  const int before = num_threads();
  EXPECT_EQ(before, usable_processors());
  set_num_threads(3);
  std::atomic<std::int64_t> total{0};
  parallel_for(100, 7, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
  parallel_for(3, 7, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
  parallel_for(0, 7, [&](std::int64_t, std::int64_t) { total += 1000; });
  EXPECT_EQ(total, 103);
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(before);
}

TEST(ProcessPool, WorksInTheChildOfAFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow threads started after a fork";
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer does not follow threads started after a fork";
#endif
#endif
  const int before = num_threads();
  set_num_threads(3);
  const auto sum_is_right = [] {
    std::atomic<std::int64_t> total{0};
    parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
    return total == 1000;
  };
  EXPECT_TRUE(sum_is_right());
  const pid_t child = fork();
  if (child == 0) _exit(sum_is_right() && num_threads() == 3 ? 0 : 1);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(sum_is_right());
  set_num_threads(before);
}

TEST(Processors, ReadsQuotas) {
  EXPECT_EQ(processors_of_quota("200000 100000"), 2);
  EXPECT_EQ(processors_of_quota("150000 100000"), 2);
  EXPECT_EQ(processors_of_quota("1000 100000"), 1);
  for (const char* text : {"max 100000", "", " ", "-1 100000", "5", "5 0", "x y"})
    EXPECT_EQ(processors_of_quota(text), 0);
  EXPECT_GE(usable_processors(), 1);
}

}  // namespace
}  // namespace plimsoll
