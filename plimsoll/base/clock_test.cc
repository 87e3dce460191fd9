#include "plimsoll/base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace plimsoll {
namespace {

TEST(Clock, CountsSleepAsTimeButNotAsWork) {
  const std::int64_t cpu = thread_cpu_ns();
  Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(watch.ns(), 20'000'000);
  EXPECT_GE(watch.seconds(), 0.02);
  EXPECT_LT(thread_cpu_ns() - cpu, watch.ns());
  watch.restart();
  EXPECT_LT(watch.ns(), 20'000'000'000);
}

TEST(Clock, CountsWorkAndNeverGoesBack) {
  const std::int64_t cpu = thread_cpu_ns();
  std::int64_t last = monotonic_ns();
  for (int i = 0; i < 100000; ++i) {
    const std::int64_t now = monotonic_ns();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(thread_cpu_ns(), cpu);
}

}  // namespace
}  // namespace plimsoll
