#include "plimsoll/memory/pages/host_page_source.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

constexpr std::size_t kPage = 4096;

bool resident(const std::byte* page) {
  unsigned char there = 0;
  return mincore(const_cast<std::byte*>(page), kPage, &there) == 0 && (there & 1) != 0;
}

TEST(HostPageSource, ReservesAddressesAlignedTo2MiBThatCostNothing) {
  HostPageSource pages;
  const auto range = pages.reserve(1_GiB, 1_MiB);
  EXPECT_EQ(range->bytes(), 1_GiB);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(range->base()) % 2_MiB, 0u);
  EXPECT_FALSE(resident(range->base()));
  EXPECT_FALSE(resident(range->base() + 1_GiB - kPage));
}

TEST(HostPageSource, AsksForManyTimesTheLimitAndAtLeastAGibibyte) {
  const HostPageSource pages;
  EXPECT_EQ(pages.range_bytes(1_MiB), 1_GiB);
  EXPECT_EQ(pages.range_bytes(64_GiB), 1024_GiB);
  EXPECT_EQ(pages.range_bytes(128_GiB), 2048_GiB);
  EXPECT_GE(pages.range_bytes(SIZE_MAX), std::size_t{8} << 40);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(pages.range_bytes(64_MiB), 32_GiB) << "a place for every page of a block aligned to 2 MiB";
#endif
}

TEST(HostPageSource, ReservesLessWhenAddressesAreShortAndRefusesBelowTheLeast) {
  HostPageSource pages;
  EXPECT_THROW(static_cast<void>(pages.reserve(SIZE_MAX, SIZE_MAX)), OutOfMemory);
  EXPECT_THROW(static_cast<void>(pages.reserve(std::size_t{1} << 60, std::size_t{1} << 60)), OutOfMemory);
  const auto range = pages.reserve(std::size_t{1} << 60, 1_MiB);
  EXPECT_GE(range->bytes(), 1_MiB);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(HostPageSource, KeepsWithinTheLimitOnAddressSpaceAndLeavesRoomForOthers) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit low = before;
  low.rlim_cur = 16_GiB;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &low), 0);
  HostPageSource pages;
  const auto range = pages.reserve(64_GiB, 1_MiB);
  EXPECT_LE(range->bytes(), 8_GiB);
  EXPECT_GE(range->bytes(), 1_GiB);
  EXPECT_THROW(static_cast<void>(pages.reserve(64_GiB, 32_GiB)), OutOfMemory);
  void* others = mmap(nullptr, 1_GiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(others, MAP_FAILED);
  munmap(others, 1_GiB);
  setrlimit(RLIMIT_AS, &before);
}
#endif

TEST(HostPageSource, ReleaseGivesPagesBackAndTheyComeBackZero) {
  HostPageSource pages(PageMover::kNone);
  const auto range = pages.reserve(1_MiB, 1_MiB);
  ASSERT_TRUE(range->commit(0, 16 * kPage));
  std::memset(range->base(), 1, 16 * kPage);
  ASSERT_TRUE(range->release(4 * kPage, 8 * kPage));
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(resident(range->base() + i * kPage), i < 4 || i >= 12) << i;
  EXPECT_EQ(range->base()[5 * kPage], std::byte{0});
}

TEST(HostPageSource, TakesTheMoverFromTheEnvironmentOnlyWhenNoneWasAskedFor) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  setenv("PLIMSOLL_PAGE_MOVER", "remap", 1);
  EXPECT_EQ(HostPageSource().reserve(1_MiB, 1_MiB)->mover(), "remap");
  setenv("PLIMSOLL_PAGE_MOVER", "nonsense", 1);
  EXPECT_THROW(static_cast<void>(HostPageSource().reserve(1_MiB, 1_MiB)), InvalidArgument);
#endif
  setenv("PLIMSOLL_PAGE_MOVER", "remap", 1);
  EXPECT_EQ(HostPageSource(PageMover::kNone).reserve(1_MiB, 1_MiB)->mover(), "none");
  setenv("PLIMSOLL_PAGE_MOVER", "none", 1);
  EXPECT_EQ(HostPageSource().reserve(1_MiB, 1_MiB)->mover(), "none");
  unsetenv("PLIMSOLL_PAGE_MOVER");
}

class Movers : public testing::TestWithParam<PageMover> {};
INSTANTIATE_TEST_SUITE_P(Host, Movers, testing::Values(PageMover::kUserfault, PageMover::kRemap),
                         [](const auto& info) { return info.param == PageMover::kRemap ? "Remap" : "Userfault"; });

TEST_P(Movers, PutPagesWhereThereWereNoneAndLeaveNoneBehind) {
  HostPageSource pages(GetParam());
  const auto range = pages.reserve(4_MiB, 4_MiB);
  std::memset(range->base(), 1, 64 * kPage);
  const std::size_t moved = range->move(16 * kPage, 256 * kPage, 32 * kPage);
  ASSERT_EQ(moved, 32 * kPage);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_FALSE(resident(range->base() + (16 + i) * kPage)) << i;
    EXPECT_TRUE(resident(range->base() + (256 + i) * kPage)) << i;
  }
  EXPECT_EQ(range->base()[0], std::byte{1});
  EXPECT_EQ(range->base()[16 * kPage], std::byte{0}) << "fresh when touched again";
}

TEST_P(Movers, LeaveBothPlacesUsableWhateverTheyManage) {
  HostPageSource pages(GetParam());
  constexpr std::size_t kPages = 512;
  const auto range = pages.reserve(kPages * kPage, kPages * kPage);
  std::mt19937 random(6);
  for (int round = 0; round < 4000; ++round) {
    const std::size_t n = 1 + random() % 40, from = random() % (kPages - n), to = random() % (kPages - n);
    if (from < to + n && to < from + n) continue;
    for (std::size_t i = 0; i < n; ++i) {  // The source is there, in part never touched; the destination is not.
      if (random() % 4) std::memset(range->base() + (from + i) * kPage, 7, kPage);
    }
    (void)range->release(to * kPage, n * kPage);
    const std::size_t moved = range->move(from * kPage, to * kPage, n * kPage);
    ASSERT_LE(moved, n * kPage);
    ASSERT_EQ(moved % kPage, 0u);
    (void)range->release(from * kPage + moved, n * kPage - moved);
    for (std::size_t i = 0; i < n; ++i) {  // A place that lost its mapping ends the program here.
      std::memset(range->base() + (to + i) * kPage, 9, kPage);
      std::memset(range->base() + (from + i) * kPage, 3, 1);
    }
  }
}

constexpr std::size_t kPiece = 16 * kPage;  // The least that is worth a mapping.

// Moves pieces apart, each to a mapping of its own; returns how many moved.
std::size_t scatter(PageRange& range) {
  std::size_t moved = 0;
  for (std::size_t at = 0; at + 4 * kPiece < range.bytes(); at += 4 * kPiece) {
    range.base()[at] = std::byte{1};
    if (range.move(at, at + 2 * kPiece, kPiece) == kPiece) ++moved;
    range.base()[at + 2 * kPiece] = std::byte{1};
  }
  return moved;
}

std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

TEST(PageMover, ByRemapStopsWithinOneAllowanceOfMappingsForTheWholeProcess) {
  constexpr std::size_t kBytes = 60'000 * kPiece;
  std::size_t most = 65530;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  if (most > 100'000) GTEST_SKIP() << "vm.max_map_count is " << most << ": too many mappings to use up in a test";
  HostPageSource pages(PageMover::kRemap);
  auto first = pages.reserve(kBytes, kBytes);
  const auto second = pages.reserve(kBytes, kBytes), third = pages.reserve(kBytes, kBytes);
  const std::size_t alone = scatter(*first);
  EXPECT_GT(alone, 1000u);
  EXPECT_LT(alone, 10'000u) << "else a process with many moves runs out of mappings";
  EXPECT_EQ(scatter(*second) + scatter(*third), 0u) << "the allowance is the process's, not each range's";
  EXPECT_LT(count_mappings(), most / 2);
  first.reset();
  EXPECT_EQ(scatter(*second), alone) << "a range that goes returns its part";
}

}  // namespace
}  // namespace plimsoll
