#include "plimsoll/base/internal/thread_placement.h"

#include <atomic>
#include <functional>
#include <thread>

namespace plimsoll::internal {
namespace {

cpu_set_t processors_of(pthread_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  pthread_getaffinity_np(thread, sizeof set, &set);
  return set;
}

int num_processors() {
  const cpu_set_t set = processors_of(pthread_self());
  return CPU_COUNT(&set);
}

void run_in_thread(const std::function<void()>& f) { std::thread(f).join(); }

TEST(ThreadPlacement, AThreadLeavesTheProcessorItAvoids) {
  if (num_processors() < 2) GTEST_SKIP() << "one processor";
  run_in_thread([] {
    AvoidedProcessor avoided;
    for (int i = 0; i < 4; ++i) {
      const int before = current_processor();
      avoided.avoid(before);
      EXPECT_NE(current_processor(), before);
    }
  });
}

TEST(ThreadPlacement, OnlyTheNewestProcessorIsAvoided) {
  if (num_processors() < 2) GTEST_SKIP() << "one processor";
  run_in_thread([] {
    const int all = num_processors(), first = current_processor();
    AvoidedProcessor avoided;
    avoided.avoid(first);
    EXPECT_EQ(num_processors(), all - 1);
    avoided.avoid(current_processor());
    EXPECT_EQ(num_processors(), all - 1);
    const cpu_set_t now = processors_of(pthread_self());
    EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(first), &now));
  });
}

TEST(ThreadPlacement, WhatOthersSetIsObeyed) {
  if (num_processors() < 2) GTEST_SKIP() << "one processor";
  run_in_thread([] {
    AvoidedProcessor avoided;
    const int here = current_processor();
    avoided.avoid(here);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(here), &only);
    pthread_setaffinity_np(pthread_self(), sizeof only, &only);
    avoided.avoid(current_processor() + 1);  // Not one of ours.
    EXPECT_EQ(num_processors(), 1);
    EXPECT_EQ(current_processor(), here);
  });
}

TEST(ThreadPlacement, TheOnlyProcessorIsNotLeft) {
  run_in_thread([] {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(current_processor()), &only);
    pthread_setaffinity_np(pthread_self(), sizeof only, &only);
    AvoidedProcessor avoided;
    avoided.avoid(current_processor());
    EXPECT_EQ(num_processors(), 1);
  });
}

TEST(ThreadPlacement, AnotherThreadMayUseWhatItsMoverMay) {
  std::atomic<bool> done{false};
  std::thread other([&] { done.wait(false); });
  move_off_mine(other.native_handle());
  const cpu_set_t mine = processors_of(pthread_self()), its = processors_of(other.native_handle());
  EXPECT_TRUE(CPU_EQUAL(&mine, &its));
  done = true;
  done.notify_all();
  other.join();
}

}  // namespace
}  // namespace plimsoll::internal
