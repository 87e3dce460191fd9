// A page source that a user brings gets limits, statistics, budgets, alerts and the ledger without doing anything for
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/pmr_resource.h"

namespace plimsoll {
namespace {

using testing::SizeIs;

// Memory of a file without a name, that another process could map as well.
class SharedPages final : public PageSource {
 public:
  std::size_t page_bytes() const noexcept override { return static_cast<std::size_t>(getpagesize()); }
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t) override {
    file_ = memfd_create("plimsoll", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(wanted)), 0);
    void* const data = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    EXPECT_NE(data, MAP_FAILED);
    return std::make_unique<Range>(static_cast<std::byte*>(data), wanted);
  }
  ~SharedPages() override { close(file_); }

  std::size_t bytes_held() const {
    struct stat status {};
    fstat(file_, &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

 private:
  class Range final : public PageRange {
   public:
    using PageRange::PageRange;
    ~Range() override { munmap(base(), bytes()); }
    bool commit(std::size_t, std::size_t) noexcept override { return true; }
    bool release(std::size_t offset, std::size_t bytes) noexcept override {
      return madvise(base() + offset, bytes, MADV_REMOVE) == 0;
    }
  };
  int file_ = -1;
};

// A device whose memory this process can neither read nor move, with pages of 64 KiB, and fewer than the arena may
// want.
class FarPages final : public PageSource {
 public:
  explicit FarPages(std::size_t pages) : pages_left(pages) {}
  std::size_t page_bytes() const noexcept override { return 64_KiB; }
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t) override {
    return std::make_unique<Range>(*this, wanted);
  }

  std::size_t pages_left;
  std::set<std::size_t> committed;

 private:
  class Range final : public PageRange {
   public:
    Range(FarPages& source, std::size_t bytes)
        : PageRange(reinterpret_cast<std::byte*>(0x40'0000'0000), bytes), source_(source) {}
    bool commit(std::size_t offset, std::size_t bytes) noexcept override {
      if (bytes / 64_KiB > source_.pages_left) return false;
      source_.pages_left -= bytes / 64_KiB;
      for (std::size_t at = offset; at < offset + bytes; at += 64_KiB) EXPECT_TRUE(source_.committed.insert(at).second);
      return true;
    }
    bool release(std::size_t offset, std::size_t bytes) noexcept override {
      source_.pages_left += bytes / 64_KiB;
      for (std::size_t at = offset; at < offset + bytes; at += 64_KiB) EXPECT_EQ(source_.committed.erase(at), 1u);
      return true;
    }

   private:
    FarPages& source_;
  };
};

TEST(UserPageSource, GetsLimitsStatisticsBudgetsAlertsAndTheLedger) {
  SharedPages pages;
  Arena arena(pages, {.name = "shared", .limit = 16_MiB});
  std::vector<std::string> alerts;
  const auto handle = on_memory_alert(0.5, [&](const MemoryAlert& alert) { alerts.push_back(alert.device); });
  const Budget budget("reader", 12_MiB);
  {
    const BudgetScope use(budget);
    const Block block = arena.allocate(10_MiB, 64, {.op = "frames"});
    std::memset(block.data(), 1, block.size());
    EXPECT_EQ(pages.bytes_held(), 10_MiB);
    EXPECT_THROW((void)arena.allocate(4_MiB), OutOfMemory);  // The budget's.
    EXPECT_EQ(budget.used(), 10_MiB);
    EXPECT_THAT(alerts, testing::ElementsAre("shared"));
    arena.for_each_live([](const Chunk& chunk) { EXPECT_STREQ(chunk.label.op, "frames"); });
    try {
      (void)arena.allocate(20_MiB);
      FAIL() << "expected a refusal";
    } catch (const OutOfMemory& error) {
      ASSERT_THAT(error.holders(), SizeIs(1));
      EXPECT_EQ(error.holders()[0].op, "frames");
    }
    arena.deallocate(block);
  }
  EXPECT_EQ(arena.stats().bytes_in_use, 0u);
  EXPECT_EQ(arena.stats().peak_bytes_in_use, 10_MiB);
  EXPECT_EQ(arena.mover(), "none");
  EXPECT_EQ(arena.trim(), 10_MiB);
  EXPECT_EQ(pages.bytes_held(), 0u);
  arena.validate();
}

TEST(UserPageSource, FeedsStandardContainers) {
  SharedPages pages;
  Arena arena(pages, {.name = "shared", .limit = 16_MiB});
  PmrResource memory(arena);
  std::pmr::vector<int> values(100'000, 7, &memory);
  EXPECT_EQ(values[99'999], 7);
  EXPECT_GE(pages.bytes_held(), 400'000u);
  for (std::size_t alignment = 64; alignment <= 4_MiB; alignment *= 2) {  // As its base allows: a page at least.
    try {
      void* const data = memory.allocate(100, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0u);
      memory.deallocate(data, 100, alignment);
    } catch (const InvalidArgument&) {
      EXPECT_GT(alignment, pages.page_bytes());
    }
  }
}

TEST(UserPageSource, NeedNotBeReadableOrMovable) {
  FarPages pages(100);
  Arena arena(pages, {.name = "far", .limit = 4_MiB});
  std::vector<Block> blocks;
  EXPECT_THROW(for (;;) blocks.push_back(arena.allocate(100'000)), OutOfMemory);
  EXPECT_GE(blocks.size(), 40u);
  EXPECT_EQ(pages.committed.size() * 64_KiB, arena.stats().bytes_reserved);
  EXPECT_LE(arena.stats().peak_bytes_reserved, 4_MiB);
  for (const Block& block : blocks) arena.deallocate(block);
  EXPECT_GT(arena.trim(), 3_MiB);
  EXPECT_TRUE(pages.committed.empty());
  EXPECT_EQ(pages.pages_left, 100u);
  arena.validate();
}

TEST(UserPageSource, MayRefuseBeforeTheLimit) {
  FarPages pages(10);
  Arena arena(pages, {.name = "far", .limit = 4_MiB});
  const Block block = arena.allocate(512_KiB);
  EXPECT_THROW((void)arena.allocate(512_KiB), OutOfMemory);
  EXPECT_EQ(arena.stats().bytes_in_use, 512_KiB);
  arena.deallocate(block);
  arena.validate();
  arena.deallocate(arena.allocate(640_KiB));
}

}  // namespace
}  // namespace plimsoll
