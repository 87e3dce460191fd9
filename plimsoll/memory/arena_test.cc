#include "plimsoll/memory/arena.h"

#include <gmock/gmock.h>

#include <fstream>
#include <random>
#include <set>

#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/pages/fake_pages_testing.h"

namespace plimsoll {
namespace {

ResourceUnderTest host(std::string name, PageMover mover, bool growth) {
  return {std::move(name), [=](std::size_t limit) -> std::shared_ptr<MemoryResource> {
            auto both = std::make_shared<HostArena>(ArenaOptions{.limit = limit, .growth = growth}, mover);
            return {both, &both->arena};
          }};
}

ResourceUnderTest fake(std::string name, const FakePagesOptions& options) {
  struct Both {
    Both(const FakePagesOptions& fake, std::size_t limit) : pages(fake), arena(pages, {.limit = limit}) {}
    FakePageSource pages;
    Arena arena;
  };
  return {std::move(name), [=](std::size_t limit) -> std::shared_ptr<MemoryResource> {
            auto both = std::make_shared<Both>(options, limit);
            return {both, &both->arena};
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Arena, MemoryResourceConformance,
    testing::Values(host("Userfault", PageMover::kUserfault, false),
                    host("UserfaultGrowth", PageMover::kUserfault, true), host("Remap", PageMover::kRemap, false),
                    host("RemapGrowth", PageMover::kRemap, true), host("NoMover", PageMover::kNone, false),
                    host("NoMoverGrowth", PageMover::kNone, true), fake("FakePages", {.range_factor = 8}),
                    fake("FakePagesOfTheLimitOnly", {.range_factor = 1}),
                    fake("FakeLargePages", {.page_bytes = 64_KiB, .moves = FakeMoves::kNone})),
    resource_name);

TEST(Arena, RequiresALimitOfAtLeastOnePage) {
  HostPageSource pages;
  EXPECT_THROW(Arena(pages, {.limit = 0}), InvalidArgument);
  EXPECT_THROW(Arena(pages, {.limit = 4095}), InvalidArgument);
  Arena smallest(pages, {.limit = 4096});
  const Block block = smallest.allocate(4096);
  EXPECT_THROW(static_cast<void>(smallest.allocate(1)), OutOfMemory);
  smallest.deallocate(block);
  smallest.deallocate(smallest.allocate(1));
}

// Remembers what it was asked for and has nothing.
class NoPages final : public PageSource {
 public:
  explicit NoPages(std::size_t page_bytes) : page_bytes_(page_bytes) {}
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  std::size_t range_bytes(std::size_t limit) const noexcept override { return limit * 16; }
  std::unique_ptr<PageRange> reserve(std::size_t bytes, std::size_t) override {
    wanted = bytes;
    throw OutOfMemory({});
  }
  std::size_t wanted = 0;

 private:
  const std::size_t page_bytes_;
};

TEST(Arena, RefusesALimitOf2To32PagesBeforeAnythingIsReserved) {
  NoPages pages(4096);
  constexpr std::size_t kTooMuch = std::size_t{16} << 40;
  try {
    Arena arena(pages, {.name = "huge", .limit = kTooMuch});
    FAIL() << "expected a refusal";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "arena \"huge\": a limit of 16.0 TiB (17592186044416 bytes) is more than 4294967295 pages of 4096 "
                 "bytes; set one below 16.0 TiB");
  }
  EXPECT_THROW(Arena(pages, {.limit = SIZE_MAX}), InvalidArgument);
  EXPECT_EQ(pages.wanted, 0u);
  EXPECT_THROW(Arena(pages, {.limit = kTooMuch - 4096}), OutOfMemory);
  EXPECT_EQ(pages.wanted, kTooMuch - 4096) << "as many addresses as can be counted";
  NoPages small(64);
  EXPECT_THROW(Arena(small, {.limit = 256_GiB}), InvalidArgument);
}

TEST(Arena, RoundsItsLimitDownToPages) {
  HostArena host({.limit = 3 * 4096 + 4095});
  EXPECT_EQ(host->limit(), 3 * 4096u);
  const Block block = host->allocate(3 * 4096);
  EXPECT_THROW(static_cast<void>(host->allocate(64)), OutOfMemory);
  host->deallocate(block);
  FakePageSource fake({.range_factor = 1});
  Arena over_fake(fake, {.limit = 3 * 4096 + 100});
  over_fake.deallocate(over_fake.allocate(3 * 4096));
  over_fake.validate();
}

TEST(Arena, ServesEveryAlignmentFrom1To2MiBAndEverySizeAroundIt) {
  HostArena host({.limit = 64_MiB});
  std::vector<Block> pins;
  for (std::size_t alignment = 1; alignment <= 2_MiB; alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{128}, std::size_t{130},
                                    std::size_t{4096}, std::size_t{100'000}}) {
      const Block block = host->allocate(bytes, alignment);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % alignment, 0u) << bytes << " at " << alignment;
      if (bytes <= 130)
        pins.push_back(block);
      else
        host->deallocate(block);
    }
    host->validate();
  }
  EXPECT_THROW(static_cast<void>(host->allocate(64, 4_MiB)), InvalidArgument);
  for (const Block& block : pins) host->deallocate(block);
  EXPECT_EQ(sum_of_ledger(*host).blocks, 0u);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Arena, HasAPlaceForEveryPageOfSmallBlocksAlignedTo2MiB) {
  HostArena host({.limit = 16_MiB});
  std::size_t blocks = 0;
  const OutOfMemory error = refusal_of([&] {
    for (;; ++blocks) (void)host->allocate(64, 2_MiB);
  });
  EXPECT_GE(blocks, 16_MiB / 4096 - 2);  // One for each page; the ends of the zones may miss one.
  EXPECT_EQ(error.smallest_sufficient_limit(), (blocks + 1) * 4096);
}
#endif

TEST(Arena, SaysWhenAddressesAreShortAndWhichLimitReservesMore) {
  FakePageSource pages({.range_factor = 16});
  std::size_t blocks = 0;
  const auto fill = [&](Arena& arena) {
    return refusal_of([&] {
      for (blocks = 0;; ++blocks) (void)arena.allocate(64, 2_MiB);
    });
  };
  Arena arena(pages, {.limit = 2_MiB});
  const OutOfMemory error = fill(arena);
  EXPECT_EQ(blocks, 16u) << "32 MiB of addresses";
  EXPECT_THAT(error.what(), testing::HasSubstr("of the 32.0 MiB reserved now no free stretch holds 64 B"));
  EXPECT_THAT(error.what(), testing::HasSubstr("aligned to 2.0 MiB; or free blocks, align them to less"));
  Arena larger(pages, {.limit = error.smallest_sufficient_limit()});
  fill(larger);
  EXPECT_GE(blocks, 17u) << "the limit that was named serves one more";
  EXPECT_LT(error.smallest_sufficient_limit(), 3_MiB);
}

TEST(Arena, NeverGivesASmallerHoleForASmallAlignment) {
  HostArena host({.limit = 4_MiB});
  std::vector<Block> small, pins;
  for (int i = 0; i < 300; ++i) {
    small.push_back(host->allocate(64));
    pins.push_back(host->allocate(64));
  }
  for (const Block& block : small) host->deallocate(block);
  host->empty_caches();
  for (const std::size_t alignment : {1, 2, 8, 32}) {
    std::set<void*> taken;
    for (const std::size_t bytes : {65, 128, 500}) {
      const Block block = host->allocate(bytes, alignment);
      std::size_t size = 0;
      host->for_each_live([&](const Chunk& chunk) {
        if (host->address(&chunk) == block.data()) size = chunk.size;
      });
      EXPECT_GE(size, bytes) << "at " << alignment;
      host->deallocate(block);
      host->empty_caches();
    }
  }
}

TEST(Arena, AlignsAddressesOverARangeWhoseBaseIsNotAlignedMuch) {
  FakePageSource pages({.page_bytes = 256, .base_offset = 256});
  Arena arena(pages, {.limit = 1_MiB});
  for (std::size_t alignment = 1; alignment <= 2_MiB; alignment *= 2) {
    try {
      const Block block = arena.allocate(100, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % alignment, 0u) << alignment;
      arena.deallocate(block);
    } catch (const InvalidArgument&) {
      EXPECT_GT(alignment, 256u) << "what the base offers must be served";
    }
  }
}

TEST(Arena, RefusesTheTwoHundredAndFiftySeventhArena) {
  FakePageSource pages;
  std::vector<std::unique_ptr<Arena>> arenas;
  EXPECT_THROW(
      for (int i = 0; i <= 256; ++i) arenas.push_back(std::make_unique<Arena>(pages, ArenaOptions{.limit = 64_KiB})),
      Unsupported);
  EXPECT_GE(arenas.size(), 250u) << "other arenas of this process count too";
  EXPECT_LE(arenas.size(), 256u);
  const Block block = arenas.back()->allocate(100);
  arenas.back()->deallocate(block);
  arenas.front().reset();
  EXPECT_NO_THROW(Arena(pages, {.limit = 64_KiB}));
}

TEST(Arena, CachesWhatAThreadFreesAndCountsItAsReserved) {
  HostArena host({.limit = 64_MiB});
  const Block block = host->allocate(1_MiB);
  host->deallocate(block);
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
  EXPECT_EQ(host->stats().bytes_reserved, 1_MiB);
  const Block again = host->allocate(1_MiB);
  EXPECT_EQ(again.data(), block.data());
  host->deallocate(again);
  EXPECT_EQ(host->empty_caches(), 1_MiB);
  EXPECT_EQ(host->empty_caches(), 0u);
  EXPECT_EQ(host->stats().bytes_reserved, 1_MiB) << "the pages stay for reuse";
}

TEST(Arena, TrimGivesBackWhatIsCommittedAndNotLive) {
  HostArena host({.limit = 64_MiB});
  LiveBlocks live;
  for (std::size_t i = 0; i < 400; ++i) live.add(host->allocate(100 + i * 150));
  for (std::size_t i = 0; i < 300; ++i) host->deallocate(live.remove(i * 7));
  const std::size_t reserved = host->stats().bytes_reserved;
  EXPECT_EQ(host->trim(), reserved - live.pages() * 4096);
  EXPECT_EQ(host->stats().bytes_reserved, live.pages() * 4096);
  EXPECT_EQ(host->trim(), 0u);
  host->validate();
  while (!live.empty()) host->deallocate(live.remove(0));
  host->trim();
  EXPECT_EQ(host->stats().bytes_reserved, 0u);
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

TEST(Arena, TrimReallyReturnsPagesToTheSystem) {
  HostArena host({.limit = 128_MiB});
  MarkedBlock block(host->allocate(64_MiB), 1);
  const std::size_t before = resident_bytes();
  host->deallocate(block.block());
  EXPECT_GE(host->trim(), 64_MiB);
  EXPECT_LT(resident_bytes(), before - 60_MiB);
}

TEST(Arena, CollectKeepsSmallHolesForReuse) {
  HostArena host({.limit = 64_MiB});
  const Block large = host->allocate(4_MiB), pin = host->allocate(8_KiB), small = host->allocate(64_KiB),
              end = host->allocate(8_KiB);
  host->deallocate(large);
  host->deallocate(small);
  host->collect();
  EXPECT_EQ(host->stats().bytes_reserved, 80_KiB);
  host->deallocate(pin);
  host->deallocate(end);
}

TEST(Arena, ResetPeaksLetsThemFallToWhatIsInUse) {
  HostArena host({.limit = 64_MiB});
  const Block kept = host->allocate(1_MiB);
  host->deallocate(host->allocate(8_MiB));
  EXPECT_EQ(host->stats().peak_bytes_in_use, 9_MiB);
  EXPECT_EQ(host->stats().peak_bytes_reserved, 9_MiB);
  host->trim();
  host->reset_peaks();
  EXPECT_EQ(host->stats().peak_bytes_in_use, 1_MiB);
  EXPECT_EQ(host->stats().peak_bytes_reserved, 1_MiB);
  host->deallocate(kept);
}

TEST(Arena, DeferredFreesTakeEffectWhenFlushed) {
  HostArena host({.limit = 8_MiB});
  host->set_deferred_release(true);
  const Block block = host->allocate(1_MiB);
  host->deallocate(block);
  EXPECT_EQ(host->stats().bytes_in_use, 1_MiB);
  EXPECT_EQ(sum_of_ledger(*host).bytes, 1_MiB);
  EXPECT_THROW(host->deallocate(block), InvalidArgument) << "a second time";
  EXPECT_NE(host->allocate(1_MiB).data(), block.data()) << "not reusable yet";
  EXPECT_EQ(host->flush_deferred(), 1_MiB);
  EXPECT_EQ(host->flush_deferred(), 0u);
  EXPECT_EQ(host->stats().bytes_in_use, 1_MiB);
  EXPECT_EQ(host->trim(), 1_MiB);
}

TEST(Arena, FlushesDeferredFreesRatherThanRefuse) {
  HostArena host({.limit = 8_MiB});
  host->set_deferred_release(true);
  for (int i = 0; i < 50; ++i) host->deallocate(host->allocate(3_MiB));
  EXPECT_EQ(host->stats().num_ooms, 0u);
  host->collect();
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
}

TEST(Arena, PretouchedPagesAreResidentFromTheStart) {
  const std::size_t before = resident_bytes();
  HostArena host({.limit = 32_MiB, .pretouch = true});
  EXPECT_EQ(host->stats().bytes_reserved, 32_MiB);
  EXPECT_EQ(host->stats().bytes_in_use, 0u);
  EXPECT_EQ(host->stats().num_allocs, 0u);
  EXPECT_GT(resident_bytes(), before + 30_MiB);
  host->deallocate(host->allocate(32_MiB));
}

TEST(Arena, ExtentsTileTheRangeAndTellWhatIsUsed) {
  HostArena host({.limit = 8_MiB});
  const Block used = host->allocate(100'000), cached = host->allocate(50'000);
  host->deallocate(cached);
  std::size_t end = 0, used_bytes = 0, cached_bytes = 0, resident = 0;
  for (const ArenaExtent& extent : host->extents()) {
    EXPECT_EQ(extent.offset, end);
    end += extent.size;
    if (extent.state == ExtentState::kUsed) used_bytes += extent.requested;
    if (extent.state == ExtentState::kCached) cached_bytes += extent.size;
    resident += extent.resident_bytes;
  }
  EXPECT_EQ(used_bytes, 100'000u);
  EXPECT_EQ(cached_bytes, LiveBlocks::rounded(50'000));
  EXPECT_EQ(resident, host->stats().bytes_reserved);
  host->deallocate(used);
}

TEST(Arena, KeepsTheLabelOfEveryLiveBlock) {
  HostArena host({.limit = 8_MiB});
  BlockLabel label;
  label.op = "conv2d";
  label.scope = "encoder";
  label.name = "kernel";
  label.step = 7;
  label.category = Category::kParameters;
  const Block block = host->allocate(1000, 64, label);
  std::size_t seen = 0;
  host->for_each_live([&](const Chunk& chunk) {
    ++seen;
    EXPECT_STREQ(chunk.label.op, "conv2d");
    EXPECT_STREQ(chunk.label.scope, "encoder");
    EXPECT_STREQ(chunk.label.name, "kernel");
    EXPECT_EQ(chunk.label.step, 7u);
    EXPECT_EQ(chunk.label.category, Category::kParameters);
    EXPECT_EQ(chunk.requested, 1000u);
    EXPECT_NE(chunk.label.id, 0u);
  });
  EXPECT_EQ(seen, 1u);
  host->deallocate(block);
}

TEST(Arena, TrimGivesRecordsOfChunksBackToo) {
  HostArena host({.limit = 64_MiB});
  host->deallocate(host->allocate(64));
  host->trim();
  const std::size_t before = host->overhead_bytes();
  std::vector<Block> blocks;
  for (int i = 0; i < 100'000; ++i) blocks.push_back(host->allocate(64));
  constexpr std::size_t kLogBytes = 256_KiB;  // The log of requests has ended meanwhile.
  EXPECT_GE(host->overhead_bytes() + kLogBytes + 8192, before + 100'000 * sizeof(Chunk));
  const Block stale = blocks[50'000];
  for (const Block& block : blocks) host->deallocate(block);
  EXPECT_GE(host->trim(), 99'000 * (sizeof(Chunk) + 64));
  EXPECT_LE(host->overhead_bytes(), before + 16_KiB);
  EXPECT_THROW(host->deallocate(stale), InvalidArgument) << "its record is gone";
  blocks.clear();
  for (int i = 0; i < 100'000; ++i) blocks.push_back(host->allocate(64));
  EXPECT_THROW(host->deallocate(stale), InvalidArgument) << "its record is another block's";
  host->validate();
  for (const Block& block : blocks) host->deallocate(block);
}

TEST(Arena, ChargesOverheadToItsLimitWhenAsked) {
  HostArena host({.limit = 8_MiB, .charge_overhead = true});
  std::vector<Block> blocks;
  const OutOfMemory error = refusal_of([&] {
    for (;;) {
      blocks.push_back(host->allocate(64));
      ASSERT_LE(host->stats().bytes_reserved + host->overhead_bytes(), 8_MiB);
    }
  });
  EXPECT_GT(blocks.size(), 8_MiB * 9 / 10 / (64 + sizeof(Chunk)));
  EXPECT_LE(blocks.size(), 8_MiB / (64 + sizeof(Chunk)));
  EXPECT_GT(error.smallest_sufficient_limit(), 8_MiB);
  EXPECT_LE(error.smallest_sufficient_limit(), 8_MiB + 64_KiB);
  for (const Block& block : blocks) host->deallocate(block);
  host->deallocate(host->allocate(7_MiB));  // What records took is pages' again.
  EXPECT_THROW(host->add_overhead(8_MiB), OutOfMemory);
  host->add_overhead(4_MiB);
  EXPECT_THROW(static_cast<void>(host->allocate(4_MiB)), OutOfMemory);
  host->remove_overhead(4_MiB);
  host->deallocate(host->allocate(7_MiB));
  host->validate();
}

// What the arena held at most, against what it says of growth.
void expect_growth_bound(Arena& arena, std::size_t most_pages_with_a_live_byte) {
  const MemoryStats stats = arena.stats();
  const double by_use = 1.05 * static_cast<double>(stats.peak_bytes_in_use) + static_cast<double>(2_MiB);
  EXPECT_LE(static_cast<double>(stats.peak_bytes_reserved),
            std::max(by_use, static_cast<double>(most_pages_with_a_live_byte * LiveBlocks::kPage)));
}

TEST(ArenaGrowth, HoldsNoMoreThanThePagesInUseWhenSmallBlocksPinThem) {
  HostArena host({.limit = 256_MiB, .growth = true});
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 16_MiB / 64; ++i) blocks.push_back(host->allocate(64));
  std::size_t pinned = 0;
  for (const Block& block : blocks) {
    if (reinterpret_cast<std::uintptr_t>(block.data()) % LiveBlocks::kPage == 0)
      ++pinned;  // One on each page stays.
    else
      host->deallocate(block);
  }
  for (int i = 0; i < 15; ++i) blocks.push_back(host->allocate(1_MiB));
  expect_growth_bound(*host, pinned + 15_MiB / LiveBlocks::kPage);
  EXPECT_EQ(host->stats().peak_bytes_in_use, 16_MiB);
  EXPECT_GT(host->stats().peak_bytes_reserved, 22_MiB) << "no case where the bytes in use are not the bound";
}

TEST(ArenaGrowth, HoldsItsBoundOverRandomRunsWithPins) {
  for (unsigned seed = 1; seed <= 2; ++seed) {
    std::mt19937 random(seed);
    HostArena host({.limit = 64_MiB, .growth = true});
    LiveBlocks live;
    std::size_t most_pages = 0;
    for (int step = 0; step < 8'000; ++step) {
      const bool fills = step / 2000 % 2 == 0;  // Small blocks, then large ones in place of most of them.
      if (!live.empty() && random() % 100 < (fills ? 30u : 60u)) {
        host->deallocate(live.remove(random()));
        continue;
      }
      try {
        live.add(host->allocate(fills ? 64 + random() % 700 : 1 + random() % 400'000));
        most_pages = std::max(most_pages, live.pages());
      } catch (const OutOfMemory&) {
        for (std::size_t n = live.size() / 2; n > 0; --n) host->deallocate(live.remove(random()));
      }
    }
    expect_growth_bound(*host, most_pages);
    while (!live.empty()) host->deallocate(live.remove(0));
  }
}

TEST(ArenaGrowth, IsNotWidenedByARequestThatIsRefused) {
  HostArena host({.limit = 64_MiB, .growth = true});
  std::vector<Block> pins;
  for (std::size_t i = 0; i < 32_MiB / 4096; ++i) pins.push_back(host->allocate(64, 4096));
  EXPECT_THROW((void)host->allocate(60_MiB), OutOfMemory) << "32 MiB of pages hold a live byte";
  for (const Block& pin : pins) host->deallocate(pin);
  host->trim();
  std::size_t most = 0;
  for (int i = 0; i < 400; ++i) {  // Ever new sizes: holes and cached blocks pile up where growing is allowed.
    std::vector<Block> blocks;
    for (int j = 0; j < 10; ++j) blocks.push_back(host->allocate(10'000 + static_cast<std::size_t>(i) * 64));
    for (const Block& block : blocks) host->deallocate(block);
    most = std::max(most, host->stats().bytes_reserved);
  }
  EXPECT_LE(most, host->stats().peak_bytes_in_use * 22 / 21 + 2_MiB);
}

}  // namespace
}  // namespace plimsoll
