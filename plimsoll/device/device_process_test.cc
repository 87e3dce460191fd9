// Devices against the operating system: resident memory, threads, fork and RLIMIT_AS.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "plimsoll/device/allocate.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll {
namespace {

class DeviceProcess : public DeviceFixture {};

OwnedBlock touched(std::size_t bytes) {
  OwnedBlock block(bytes);
  std::memset(block.data(), 1, bytes);
  return block;
}

std::size_t difference(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

TEST_F(DeviceProcess, TrimReturnsTheBytesThatTheSystemGetsBack) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  set_limit(512_MiB);
  std::vector<OwnedBlock> blocks;
  for (int i = 0; i < 400; ++i) blocks.push_back(touched(100'000 + static_cast<std::size_t>(i) * 1000));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (i % 10 != 0) blocks[i].reset();  // 40 live extents remain.
  const std::size_t before = resident_bytes();
  const std::size_t given_back = trim();
  const std::size_t gone = before - resident_bytes();
  EXPECT_GT(given_back, 90_MiB);
  EXPECT_LE(difference(given_back, gone), 40 * 4_KiB);
  EXPECT_EQ(trim(), 0u);
  const MemoryStats stats = memory_stats();
  EXPECT_LE(stats.bytes_reserved - stats.bytes_in_use, 2 * 40 * 4_KiB);
}

TEST_F(DeviceProcess, LoadAndFreeLeaveResidentMemoryWhereItWas) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  const auto load_and_free = [] {
    std::vector<OwnedBlock> model;
    for (int i = 0; i < 20; ++i) model.push_back(touched(10'000'000));
    model.clear();
    trim();
  };
  load_and_free();
  const std::size_t before = resident_bytes();
  for (int cycle = 0; cycle < 5; ++cycle) load_and_free();
  EXPECT_LE(resident_bytes(), before + 256_KiB);
  EXPECT_EQ(memory_stats().bytes_reserved, 0u);
}

TEST_F(DeviceProcess, AccountsForResidentMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  set_limit(256_MiB);
  deallocate(allocate(64));
  const std::size_t before = resident_bytes(), overhead = memory_overhead();
  std::vector<OwnedBlock> blocks;
  blocks.reserve(20'000);
  for (int i = 0; i < 20'000; ++i) blocks.push_back(touched(4000));
  const std::size_t explained = memory_stats().bytes_reserved + memory_overhead() - overhead;
  EXPECT_LE(difference(resident_bytes() - before, explained), 2_MiB);
}

TEST_F(DeviceProcess, ThreadsThatEndLeaveNothingBehind) {
  constexpr int kThreads = kSanitized ? 100 : 1000;
  set_limit(256_MiB);
  const auto work = [] {
    for (int i = 1; i <= 20; ++i) touched(static_cast<std::size_t>(i) * 10'000);
  };
  for (int i = 0; i < 10; ++i) std::thread(work).join();
  const std::size_t before = resident_bytes(), reserved = memory_stats().bytes_reserved, overhead = memory_overhead();
  for (int i = 0; i < kThreads; ++i) std::thread(work).join();
  EXPECT_EQ(memory_stats().bytes_in_use, 0u);
  EXPECT_LE(memory_stats().bytes_reserved, reserved);
  EXPECT_LE(memory_overhead(), overhead);
  EXPECT_LE(resident_bytes(), before + (kSanitized ? 64_MiB : 512_KiB));
}

TEST_F(DeviceProcess, StartsOnceWhenManyThreadsComeAtTheSameTime) {
  for (int round = 0; round < 20; ++round) {
    config::reset_for_testing();
    set_limit(16_MiB);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([] {
        const OwnedBlock block(1_KiB);
        const std::pmr::vector<int> values(100, &memory_resource("CPU:0"));
        EXPECT_GE(memory_stats().bytes_in_use, 1_KiB);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(memory_stats().num_allocs, 8u);
    EXPECT_EQ(memory_stats().bytes_in_use, 0u);
  }
}

TEST_F(DeviceProcess, AForkedChildMayDeallocateAndEnd) {
  set_limit(64_MiB);
  OwnedBlock block = touched(8_MiB);
  std::pmr::vector<int> values(1000, 7, &memory_resource());
  const pid_t child = fork();
  if (child == 0) {
    block.reset();
    { const std::pmr::vector<int> gone(std::move(values)); }
    const bool empty = memory_stats().bytes_in_use == 0;
    trim();
    _exit(empty ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(static_cast<char*>(block.data())[8_MiB - 1], 1);  // The parent keeps its own bytes.
  EXPECT_EQ(values[999], 7);
  block.reset();
  touched(48_MiB);
}

TEST_F(DeviceProcess, DeallocatesInDestructorsOfStaticObjects) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // In a process of its own.
  const auto end_with_static_objects = [] {
    static const OwnedBlock kept(1_MiB);
    static const std::pmr::vector<int> values(1000, &memory_resource());
    std::exit(0);
  };
  EXPECT_EXIT(end_with_static_objects(), testing::ExitedWithCode(0), "^$");
}

// Ends the process with 0 when, under an address space limit, it allocates and touches memory until our error is
// thrown.
[[noreturn]] void use_all_under_address_limit(std::size_t addresses) {
  const rlimit limit{read_system_memory().address_space + addresses, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  const DefaultLimit expected = default_memory_limit();
  std::size_t taken = 0;
  try {
    std::vector<OwnedBlock> blocks;
    for (;;) {
      blocks.push_back(touched(1_MiB));
      taken += 1_MiB;
    }
  } catch (const OutOfMemory& error) {
    const bool explained = error.limit() == expected.bytes && std::strstr(error.what(), "CPU:0") != nullptr;
    std::fprintf(stderr, "took %zu of %zu from %s: %s\n", taken, expected.bytes, expected.from.c_str(), error.what());
    _exit(explained && expected.from == "RLIMIT_AS" && taken + 2_MiB > expected.bytes ? 0 : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unexpected: %s\n", error.what());
    _exit(2);
  }
}

TEST_F(DeviceProcess, EndsWithOurErrorUnderAnAddressSpaceLimit) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs all addresses";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(use_all_under_address_limit(600_MiB), testing::ExitedWithCode(0), "from RLIMIT_AS");
  EXPECT_EXIT(use_all_under_address_limit(96_MiB), testing::ExitedWithCode(0), "from RLIMIT_AS");
}

TEST_F(DeviceProcess, RefusesToStartWithALimitThatAddressesCannotHold) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs all addresses";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto start_too_large = [] {
    const rlimit limit{read_system_memory().address_space + 256_MiB, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    set_limit(1_GiB);
    try {
      (void)allocate(1);
    } catch (const OutOfMemory& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(Runtime::instance().started() ? 1 : 0);
    }
    _exit(2);
  };
  EXPECT_EXIT(start_too_large(), testing::ExitedWithCode(0), "raise RLIMIT_AS");
}

}  // namespace
}  // namespace plimsoll
