#include "plimsoll/observe/process_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/pages/host_page_source.h"
#include "plimsoll/observe/memory_monitor.h"

namespace plimsoll {
namespace {

TEST(ProcessMemory, AgreesWithTheSystem) {
  const ProcessMemory before = process_memory();
  EXPECT_GT(before.resident, 1_MiB);
  EXPECT_GE(before.peak_resident, before.resident);
  EXPECT_GE(before.threads, 1u);
  EXPECT_GT(before.address_space, before.resident);
  std::vector<char> more(32_MiB, 1);
  const ProcessMemory after = process_memory();
  EXPECT_GE(after.resident - before.resident, 31_MiB);
  EXPECT_LE(after.resident - before.resident, kSanitized ? 1_GiB : 33_MiB);
  EXPECT_EQ(more[12345], 1);
}

TEST(ProcessMemory, ReadsAnotherSystemsFiles) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "plimsoll_process_memory";
  std::filesystem::create_directories(root / "proc/self");
  std::ofstream(root / "proc/self/status") << "VmSize:\t 100 kB\nVmHWM:\t 30 kB\nRssAnon:\t 12 kB\nRssFile:\t 8 kB\n"
                                              "RssShmem:\t 1 kB\nVmSwap:\t 5 kB\nThreads:\t3\n";
  std::ofstream(root / "proc/self/smaps_rollup") << "Rss: 21 kB\n";
  const ProcessMemory memory = process_memory(root.string());
  EXPECT_EQ(memory.resident, 21_KiB);
  EXPECT_EQ(memory.peak_resident, 30_KiB);
  EXPECT_EQ(memory.anonymous, 12_KiB);
  EXPECT_EQ(memory.file_backed, 9_KiB);
  EXPECT_EQ(memory.swapped, 5_KiB);
  EXPECT_EQ(memory.address_space, 100_KiB);
  EXPECT_EQ(memory.threads, 3u);
  std::filesystem::remove_all(root);
  EXPECT_EQ(process_memory("/nonexistent").resident, 0u);
}

TEST(ResidentParts, AddUpToTheByteAndLeaveASmallRemainder) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  HostPageSource pages;
  Arena arena(pages, {.name = "test", .limit = 128_MiB});
  const Block tensor = arena.allocate(24_MiB, 64, {.op = "tensor", .category = Category::kActivations});
  const Block scratch = arena.allocate(8_MiB, 64, {.op = "scratch", .category = Category::kWorkspace});
  const Block freed = arena.allocate(4_MiB);
  for (const Block* block : {&tensor, &scratch, &freed}) std::memset(block->data(), 1, block->size());
  arena.deallocate(freed);
  malloc_trim(0);
  const ResidentParts parts = resident_parts();
  EXPECT_EQ(parts.resident, parts.tensors + parts.workspaces + parts.caches + parts.metadata + parts.libraries +
                                parts.heap + parts.remainder);
  EXPECT_GE(parts.tensors, 24_MiB);
  EXPECT_LE(parts.tensors, 25_MiB);
  EXPECT_EQ(parts.workspaces, 8_MiB);
  EXPECT_GE(parts.caches, 4_MiB);
  EXPECT_LE(parts.caches, 6_MiB);
  EXPECT_GT(parts.libraries, 1_MiB);
  const std::size_t free_heap = mallinfo2().fordblks;  // Kept by malloc, above all after other tests of this program.
  EXPECT_LE(parts.remainder, free_heap + 2_MiB) << parts.to_string();
  EXPECT_THAT(parts.to_string(),
              testing::ContainsRegex("resident .* = tensors 2[45]\\.[0-9] MiB \\+ workspaces 8.0 MiB"));
  arena.deallocate(tensor);
  arena.deallocate(scratch);
}

TEST(ResidentParts, LeaveOutWhatWasNeverWritten) {
  HostPageSource pages;
  Arena arena(pages, {.name = "test", .limit = 512_MiB});
  const Block untouched = arena.allocate(256_MiB);
  EXPECT_LT(resident_parts().tensors, 64_MiB);
  arena.deallocate(untouched);
}

TEST(MemoryMonitor, SkipsIntervalsThatAreNotDue) {
  std::atomic<int> asked = 0, called = 0;
  {
    const MemoryMonitor monitor(
        {.every = std::chrono::milliseconds(1), .reads_system = false, .is_due = [&] { return ++asked % 5 == 0; }},
        [&](const MemorySample&) { ++called; });
    while (asked < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(called, asked / 5);
}

TEST(MemoryMonitor, CallsBackUntilItIsDestroyed) {
  std::atomic<int> calls{0};
  {
    const MemoryMonitor monitor({.every = std::chrono::milliseconds(5)}, [&](const MemorySample& sample) {
      EXPECT_GT(sample.process.resident, 0u);
      EXPECT_GT(sample.system.total, 0u);
      ++calls;
    });
    while (calls < 3) std::this_thread::yield();
  }
  const int last = calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(calls, last);
}

TEST(MemoryMonitor, SurvivesACallbackThatThrows) {
  std::atomic<int> calls{0};
  const MemoryMonitor monitor({.every = std::chrono::milliseconds(1)}, [&](const MemorySample&) {
    ++calls;
    throw Error("no");
  });
  while (calls < 2) std::this_thread::yield();
}

TEST(MemoryMonitor, RefusesInvalidIntervalsAndEmptyCallbacks) {
  EXPECT_THROW(MemoryMonitor({.every = std::chrono::milliseconds(0)}, [](const MemorySample&) {}), InvalidArgument);
  EXPECT_THROW(MemoryMonitor({}, nullptr), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
