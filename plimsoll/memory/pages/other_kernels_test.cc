// Arenas on kernels, in containers and under settings that this machine does not have: the three ways to move pages,
// mremap that fails halfway, no userfaultfd, huge pages everywhere, locked and swapped memory.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/pages/other_kernel_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

constexpr std::size_t kPage = 4096;

std::size_t resident_in(Arena& arena) {
  std::size_t bytes = 0;  // Only where chunks are or were: the rest of the range has never been touched.
  for (const ArenaExtent& extent : arena.extents()) {
    const std::size_t first = extent.offset / kPage, last = (extent.offset + extent.size + kPage - 1) / kPage;
    const std::size_t some = std::min<std::size_t>(last - first, 1024);
    bytes += resident_bytes_in(arena.base() + first * kPage, some * kPage);
  }
  return bytes;
}

// Blocks of many sizes at a limit that they fill, so that pages of holes must move all the time; contents are checked.
void work_at_the_limit(Arena& arena, int steps) {
  std::mt19937 random(1);
  LiveBlocks live;
  for (int step = 0; step < steps; ++step) {
    if (!live.empty() && random() % 100 < 45) {
      arena.deallocate(live.remove(random()));
      continue;
    }
    const std::size_t bytes = 1 + random() % (std::size_t{1} << (12 + random() % 8));
    try {
      const Block block = arena.allocate(bytes);
      live.add(block);
    } catch (const OutOfMemory&) {
      for (std::size_t n = live.size() / 2; n > 0; --n) arena.deallocate(live.remove(random()));
    }
  }
  arena.validate();
  EXPECT_LE(arena.stats().peak_bytes_reserved, arena.limit());
  while (!live.empty()) arena.deallocate(live.remove(0));
}

bool offers_userfault() { return HostPageSource(PageMover::kUserfault).reserve(1_MiB, 1_MiB)->mover() == "userfault"; }

TEST(EveryMover, ServesATightLimitByUserfault) {
  if (!offers_userfault()) GTEST_SKIP() << "userfaultfd cannot move pages here (Linux 6.8, or a container's rules)";
  HostArena host({.limit = 4_MiB}, PageMover::kUserfault);
  work_at_the_limit(*host, 5000);
  EXPECT_EQ(host->mover(), "userfault");
  EXPECT_GT(host->move_counters().pages_moved, 1000u);
  EXPECT_EQ(host->move_counters().pages_refaulted, 0u);
}

TEST(EveryMover, ServesATightLimitByRemap) {
  HostArena host({.limit = 4_MiB}, PageMover::kRemap);
  work_at_the_limit(*host, 5000);
  EXPECT_EQ(host->mover(), "remap");
  EXPECT_LT(host->move_counters().pages_refaulted, host->move_counters().pages_moved) << "some moves must succeed";
  EXPECT_EQ(host->note(), "");
}

TEST(EveryMover, ServesATightLimitByGivingBackAndFaulting) {
  HostArena host({.limit = 4_MiB}, PageMover::kNone);
  work_at_the_limit(*host, 5000);
  EXPECT_EQ(host->mover(), "none");
  EXPECT_GT(host->move_counters().pages_moved, 1000u);
  EXPECT_EQ(host->move_counters().pages_refaulted, host->move_counters().pages_moved);
}

TEST(OlderKernel, NeverUnmapsAPartOfTheArenaWhenItCannotMove) {
  SKIP_UNLESS_EMULATED();
  in_own_process([] {
    become(OtherKernel::kUnmapsBeforeItFails);
    HostArena host({.limit = 4_MiB}, PageMover::kRemap);
    work_at_the_limit(*host, 3000);
    EXPECT_GT(host->move_counters().pages_refaulted, 0u) << "no source was more than one mapping";
    EXPECT_GT(host->move_counters().pages_moved, host->move_counters().pages_refaulted);
    EXPECT_EQ(mappings_of_others(), 0u) << "another thread's memory came to lie in the arena";
  });
}

TEST(OlderKernel, GivesUpAStretchThatMayBeAnotherThreads) {
  SKIP_UNLESS_EMULATED();
  in_own_process([] {
    become(OtherKernel::kFailsHalfway);
    {
      HostArena host({.limit = 4_MiB}, PageMover::kRemap);
      work_at_the_limit(*host, 3000);
      EXPECT_EQ(mappings_of_others(), 1u) << "it moves no more after the first failure";
      EXPECT_TRUE(mappings_of_others_intact());
      EXPECT_EQ(host->mover(), "none");
      EXPECT_THAT(host->note(), HasSubstr("mremap failed halfway"));
      const std::size_t reserved = host->stats().bytes_reserved;
      EXPECT_GE(host->trim(), reserved);  // And records.
      EXPECT_EQ(host->stats().bytes_reserved, 0u);
    }
    EXPECT_TRUE(mappings_of_others_intact()) << "the arena's end unmapped another thread's memory";
  });
}

TEST(NoUserfault, MovesByRemapWhereUserfaultfdIsForbidden) {
  SKIP_UNLESS_EMULATED();
  in_own_process([] {
    become(OtherKernel::kForbidsUserfault);
    HostArena host({.limit = 4_MiB}, kSanitized ? PageMover::kUserfault : PageMover::kBest);
    EXPECT_EQ(host->mover(), "remap");
    work_at_the_limit(*host, 3000);
  });
}

bool has_huge_pages() {
  std::string setting;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), setting);
  return !setting.empty() && setting.find("[never]") == std::string::npos;
}

// The thread sanitizer blocks signals around its own calls of madvise, and the one that emulates a kernel is lost.
#if defined(__SANITIZE_THREAD__)
#define SKIP_WHERE_MADVISE_IS_NOT_EMULATED() GTEST_SKIP() << "madvise cannot be emulated under the thread sanitizer"
#else
#define SKIP_WHERE_MADVISE_IS_NOT_EMULATED() SKIP_UNLESS_EMULATED()
#endif

TEST(HugePages, AreNotTakenForABlockThatNeedsOnePage) {
  SKIP_WHERE_MADVISE_IS_NOT_EMULATED();
  if (!has_huge_pages()) GTEST_SKIP() << "this kernel has no transparent huge pages, or never uses them";
  in_own_process([] {
    become(OtherKernel::kPrefersHugePages);
    void* const other = mmap(nullptr, 8_MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(other, MAP_FAILED);
    auto* const aligned = static_cast<char*>(other) + (-reinterpret_cast<std::uintptr_t>(other) & (2_MiB - 1));
    *aligned = 1;
    EXPECT_EQ(resident_bytes_in(aligned, 2_MiB), 2_MiB) << "huge pages are not preferred: the test shows nothing";
    HostArena host({.limit = 16_MiB});
    for (int i = 0; i < 100; ++i) {
      const Block block = host->allocate(64, 2_MiB);
      *static_cast<char*>(block.data()) = 1;
      ASSERT_EQ(resident_bytes_in(block.data(), 2_MiB), kPage) << "block " << i;
    }
    EXPECT_EQ(host->note(), "");
  });
}

TEST(SwappedPages, CountAsHeldWhenTheirHoleGivesThemAway) {
  SKIP_UNLESS_EMULATED();
  for (const PageMover mover : {PageMover::kUserfault, PageMover::kRemap})
    in_own_process([mover] {
      HostPageSource pages(mover);
      const auto range = pages.reserve(4_MiB, 4_MiB);
      std::memset(range->base(), 1, 32 * kPage);
      become(OtherKernel::kHasSwappedEverything);
      EXPECT_EQ(range->move(0, 64 * kPage, 32 * kPage), 32 * kPage);
      EXPECT_EQ(resident_bytes_in(range->base(), 32 * kPage), 0u) << "the hole kept what was to be given away";
    });
}

TEST(KeptPages, AreNeverReportedAsGivenBack) {
  SKIP_WHERE_MADVISE_IS_NOT_EMULATED();
  in_own_process([] {
    HostArena host({.limit = 8_MiB}, PageMover::kNone);
    become(OtherKernel::kKeepsPages);
    const Block block = host->allocate(4_MiB), pin = host->allocate(4_MiB / 64);
    std::memset(block.data(), 1, 4_MiB);
    host->deallocate(block);
    EXPECT_LT(host->trim(), 64_KiB) << "nothing but records";
    EXPECT_EQ(host->stats().bytes_reserved, 4_MiB + 64_KiB);
    EXPECT_THAT(host->note(), HasSubstr("would not take free pages back"));
    EXPECT_THROW((void)host->allocate(4_MiB + 64), OutOfMemory) << "these pages and those of the hole pass the limit";
    host->deallocate(host->allocate(4_MiB));  // In the hole.
    host->deallocate(pin);
    host->validate();
  });
}

// A reason not to run tests that lock memory.
std::string why_not_locked() {
  if (kSanitized) return "a sanitizer's own memory would be locked too";
  const pid_t child = fork();
  if (child == 0) {
    const bool locks = mlockall(MCL_FUTURE) == 0;
    _exit(locks && mmap(nullptr, 4_GiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ? 0 : 1);
  }
  int status = 0;
  const bool works = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return works ? "" : "this process may not lock memory (RLIMIT_MEMLOCK)";
}

void fill_and_trim(Arena& arena, std::size_t bytes) {
  const Block block = arena.allocate(bytes);
  std::memset(block.data(), 1, bytes);
  arena.deallocate(block);
  EXPECT_EQ(resident_in(arena), bytes);
  EXPECT_GE(arena.trim(), bytes);  // And records.
  EXPECT_EQ(resident_in(arena), 0u);
  EXPECT_EQ(arena.stats().bytes_reserved, 0u);
}

TEST(LockedMemory, HoldsOnlyWhatIsTouchedAndGivesItBack) {
  if (const std::string why = why_not_locked(); !why.empty()) GTEST_SKIP() << why;
  for (const int later : {0, int{MCL_ONFAULT}})
    in_own_process([later] {
      ASSERT_EQ(mlockall(MCL_FUTURE | later), 0);
      HostArena host({.limit = 32_MiB});
      EXPECT_THAT(host->note(), HasSubstr("mlockall"));
      fill_and_trim(*host, 2_MiB);
      work_at_the_limit(*host, 2000);
      long all = 0, resident = 0;  // The tables beside the pages, too.
      std::ifstream("/proc/self/statm") >> all >> resident;
      EXPECT_LT(static_cast<std::size_t>(resident) * kPage, 200_MiB);
    });
}

TEST(LockedMemory, GivesBackWhatTheProgramLockedItself) {
  if (const std::string why = why_not_locked(); !why.empty()) GTEST_SKIP() << why;
  for (const bool older : {false, true}) {
    if (older) SKIP_UNLESS_EMULATED();
    in_own_process([older] {
      if (older) become(OtherKernel::kCannotDropLockedPages);
      HostArena host({.limit = 32_MiB});
      const Block block = host->allocate(2_MiB);
      ASSERT_EQ(mlock(block.data(), 2_MiB), 0);
      host->deallocate(block);
      EXPECT_GE(host->trim(), 2_MiB);
      EXPECT_EQ(resident_in(*host), 0u);
      EXPECT_EQ(host->note(), "");
    });
  }
}

TEST(LockedMemory, IsRefusedWithTheAdviceThatHelpsWhenTooLittleMayBeLocked) {
  if (const std::string why = why_not_locked(); !why.empty()) GTEST_SKIP() << why;
  in_own_process([] {
    const rlimit low{1_MiB, 1_MiB};
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    if (geteuid() == 0) {
      ASSERT_EQ(setuid(65534), 0);
    }
    if (mlockall(MCL_FUTURE) != 0) return;
    HostPageSource pages;
    const OutOfMemory error = refusal_of([&] { (void)pages.reserve(1_GiB, 64_MiB); });
    EXPECT_THAT(error.what(), HasSubstr("RLIMIT_MEMLOCK"));
  });
}

}  // namespace
}  // namespace plimsoll
