#include "plimsoll/memory/bfc/bfc_resource.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/memory_resource_testing.h"

namespace plimsoll {
namespace {

INSTANTIATE_TEST_SUITE_P(Bfc, MemoryResourceConformance,
                         testing::Values(ResourceUnderTest{"Fixed",
                                                           [](std::size_t limit) {
                                                             return std::make_shared<BfcResource>(
                                                                 BfcOptions{.limit = limit});
                                                           }},
                                         ResourceUnderTest{"Growth",
                                                           [](std::size_t limit) {
                                                             return std::make_shared<BfcResource>(
                                                                 BfcOptions{.limit = limit, .growth = true});
                                                           }}),
                         resource_name);

void free_all(BfcResource& bfc, const std::vector<Block>& blocks) {
  for (const Block& block : blocks) bfc.deallocate(block);
}

TEST(BfcResource, RoundsEverySizeTo256Bytes) {
  BfcResource bfc({.limit = 1_GiB});
  std::vector<Block> blocks;
  for (std::size_t bytes = 1; bytes <= 1023; ++bytes) blocks.push_back(bfc.allocate(bytes));
  EXPECT_EQ(bfc.stats().bytes_in_use, 654'336u);
  EXPECT_EQ(bfc.stats().num_allocs, 1023u);
  EXPECT_EQ(bfc.stats().largest_alloc_bytes, 1024u);
  free_all(bfc, blocks);
  EXPECT_EQ(bfc.stats().bytes_in_use, 0u);
  EXPECT_EQ(bfc.stats().peak_bytes_in_use, 654'336u);
}

TEST(BfcResource, TakesItsWholeLimitAtTheFirstRequestUnlessItMayGrow) {
  BfcResource fixed({.limit = 100_MiB});
  EXPECT_EQ(fixed.stats().bytes_reserved, 0u);
  fixed.deallocate(fixed.allocate(1));
  EXPECT_EQ(fixed.stats().bytes_reserved, 100_MiB);
  BfcResource growing({.limit = 100_MiB, .growth = true});
  growing.deallocate(growing.allocate(1));
  EXPECT_EQ(growing.stats().bytes_reserved, 2_MiB);
}

TEST(BfcResource, DoublesItsRegionsUpToTheLimit) {
  BfcResource bfc({.limit = 40_MiB, .growth = true});
  std::vector<Block> blocks;
  std::vector<std::size_t> pools;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(bfc.allocate(1_MiB));
    const std::size_t pool = bfc.stats().bytes_reserved;
    if (pools.empty() || pools.back() != pool) pools.push_back(pool);
  }
  EXPECT_EQ(pools, (std::vector<std::size_t>{2_MiB, 6_MiB, 14_MiB, 30_MiB, 40_MiB}));
  EXPECT_THROW(static_cast<void>(bfc.allocate(1)), OutOfMemory);
  free_all(bfc, blocks);
}

TEST(BfcResource, DoublesTheStepUntilALargeRequestFitsAndThenKeepsIt) {
  BfcResource bfc({.limit = 1_GiB, .growth = true});
  const Block first = bfc.allocate(5_MiB);  // 2, 4, 8 MiB.
  EXPECT_EQ(bfc.stats().bytes_reserved, 8_MiB);
  const Block second = bfc.allocate(7_MiB);  // The step is still 8 MiB, and doubles now.
  EXPECT_EQ(bfc.stats().bytes_reserved, 16_MiB);
  const Block third = bfc.allocate(9_MiB);
  EXPECT_EQ(bfc.stats().bytes_reserved, 32_MiB);
  free_all(bfc, {first, second, third});
}

TEST(BfcResource, CutsAChunkOnlyWhenTwiceTheRequestOrTooMuchIsWasted) {
  BfcResource bfc({.limit = 1000_MiB});
  const Block small = bfc.allocate(10_MiB), guard = bfc.allocate(256);
  bfc.deallocate(small);
  const Block most = bfc.allocate(6_MiB);  // 10 < 2 x 6: handed out whole.
  EXPECT_EQ(bfc.stats().bytes_in_use, 10_MiB + 256);
  bfc.deallocate(most);
  const Block half = bfc.allocate(5_MiB);  // 10 >= 2 x 5: cut.
  EXPECT_EQ(bfc.stats().bytes_in_use, 5_MiB + 256);
  free_all(bfc, {half, guard});
  const Block large = bfc.allocate(800_MiB);  // 200 MiB would be wasted: cut.
  EXPECT_EQ(bfc.stats().bytes_in_use, 800_MiB);
  bfc.deallocate(large);
  const Block whole = bfc.allocate(900_MiB);  // 100 MiB: not cut.
  EXPECT_EQ(bfc.stats().bytes_in_use, 1000_MiB);
  bfc.deallocate(whole);
}

TEST(BfcResource, PrefersTheBestFitAndTheLowestAddress) {
  BfcResource bfc({.limit = 64_MiB});
  std::vector<Block> holes, guards;
  for (const std::size_t bytes : {12_KiB, 8_KiB, 8_KiB, 40_KiB}) {
    holes.push_back(bfc.allocate(bytes));
    guards.push_back(bfc.allocate(256));
  }
  free_all(bfc, {holes[3], holes[2], holes[1], holes[0]});
  const Block block = bfc.allocate(7_KiB);
  EXPECT_EQ(block.data(), holes[1].data());
  free_all(bfc, guards);
  bfc.deallocate(block);
}

TEST(BfcResource, MergesNeighboursAtOnce) {
  BfcResource bfc({.limit = 1_GiB});
  void* first = nullptr;
  for (int round = 0; round < 1024; ++round) {
    std::vector<Block> blocks;
    for (const std::size_t bytes : {4_KiB, 8_MiB, 16_KiB, 40_MiB}) blocks.push_back(bfc.allocate(bytes));
    if (round == 0) first = blocks[0].data();
    free_all(bfc, blocks);
  }
  EXPECT_EQ(bfc.stats().peak_bytes_in_use, 4_KiB + 8_MiB + 16_KiB + 40_MiB);
  EXPECT_EQ(bfc.stats().num_allocs, 4096u);
  const Block again = bfc.allocate(1);
  EXPECT_EQ(again.data(), first);
  bfc.deallocate(again);
}

TEST(BfcResource, NeverMergesAcrossRegionsSoGrowthFailsWhereAPoolServes) {
  for (const bool growth : {false, true}) {
    BfcResource bfc({.limit = 512_MiB, .growth = growth});
    std::vector<Block> blocks;
    for (int i = 0; i < 128; ++i) blocks.push_back(bfc.allocate(4_MiB));
    const Block last = blocks.back();
    blocks.pop_back();
    free_all(bfc, blocks);
    if (growth) {
      EXPECT_THROW(static_cast<void>(bfc.allocate(508_MiB)), OutOfMemory);
    } else {
      const Block large = bfc.allocate(508_MiB);
      bfc.deallocate(large);
    }
    bfc.deallocate(last);
  }
}

TEST(BfcResource, GivesEmptyRegionsBackOnlyWhenAsked) {
  BfcResource bfc({.limit = 512_MiB, .growth = true});
  std::vector<Block> blocks;
  for (int i = 0; i < 128; ++i) blocks.push_back(bfc.allocate(4_MiB));
  const Block last = blocks.back();
  blocks.pop_back();
  free_all(bfc, blocks);
  EXPECT_GT(bfc.num_regions(), 1u);
  EXPECT_EQ(bfc.stats().bytes_reserved, 512_MiB);
  EXPECT_GT(bfc.collect_garbage(), 0u);
  EXPECT_EQ(bfc.num_regions(), 1u);
  bfc.deallocate(last);
}

TEST(BfcResource, CollectsEmptyRegionsBeforeItRefuses) {
  for (const bool collects : {true, false}) {
    BfcResource bfc({.limit = 32_MiB, .growth = true, .garbage_collection = collects});
    std::vector<Block> blocks;
    for (int i = 0; i < 30; ++i) blocks.push_back(bfc.allocate(1_MiB));
    free_all(bfc, blocks);
    if (collects) {
      bfc.deallocate(bfc.allocate(31_MiB));
    } else {
      EXPECT_THROW(static_cast<void>(bfc.allocate(31_MiB)), OutOfMemory);
    }
  }
}

TEST(BfcResource, SplitsOffWhatAnAlignmentLeavesInFront) {
  BfcResource bfc({.limit = 16_MiB});
  const Block first = bfc.allocate(256);
  const Block aligned = bfc.allocate(256, 4096);
  EXPECT_EQ(static_cast<char*>(aligned.data()) - static_cast<char*>(first.data()), 4096);
  const Block between = bfc.allocate(1024);  // From what was left in front.
  EXPECT_LT(between.data(), aligned.data());
  EXPECT_EQ(bfc.stats().bytes_in_use, 256u + 256u + 1024u);
  free_all(bfc, {first, aligned, between});
}

TEST(BfcResource, GoesOnAfterARequestBeyondItsLimit) {
  BfcResource bfc({.limit = 2_MiB});
  const Block small = bfc.allocate(256);
  EXPECT_THROW(static_cast<void>(bfc.allocate(8_MiB)), OutOfMemory);
  const Block other = bfc.allocate(256);
  EXPECT_EQ(bfc.stats().num_ooms, 1u);
  free_all(bfc, {small, other});
}

TEST(BfcResource, NamesALimitThatWouldServe) {
  BfcResource bfc({.name = "GPU:0", .limit = 16_MiB, .growth = true});
  const Block block = bfc.allocate(10_MiB);
  try {
    static_cast<void>(bfc.allocate(10_MiB));
    FAIL() << "it does not fit";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("bfc \"GPU:0\""), std::string::npos);
    BfcResource larger({.limit = error.smallest_sufficient_limit(), .growth = true});
    const Block first = larger.allocate(10_MiB), second = larger.allocate(10_MiB);
    free_all(larger, {first, second});
  }
  bfc.deallocate(block);
}

TEST(BfcResource, ListsItsChunksInOrder) {
  BfcResource bfc({.limit = 1_MiB});
  const Block first = bfc.allocate(1000), second = bfc.allocate(300);
  bfc.deallocate(first);
  const std::vector<BfcExtent> extents = bfc.extents();
  ASSERT_EQ(extents.size(), 3u);
  EXPECT_EQ(extents[0].size, 1024u);
  EXPECT_EQ(extents[0].requested, 0u);
  EXPECT_EQ(extents[1].offset, 1024u);
  EXPECT_EQ(extents[1].requested, 300u);
  EXPECT_EQ(extents[2].offset + extents[2].size, 1_MiB);
  bfc.deallocate(second);
}

TEST(BfcResource, RefusesALimitBelowOneChunk) {
  EXPECT_THROW(BfcResource({.limit = 0}), InvalidArgument);
  EXPECT_THROW(BfcResource({.limit = 255}), InvalidArgument);
}

TEST(BfcResource, SlowsDownWithSmallerHolesInTheSameBin) {
  // 300 KiB holes are in the bin of a 400 KiB request and are all walked over; the count of chunks proves the layout.
  BfcResource bfc({.limit = 1_GiB});
  std::vector<Block> holes, pins;
  for (int i = 0; i < 100; ++i) {
    holes.push_back(bfc.allocate(300_KiB));
    pins.push_back(bfc.allocate(256));
  }
  free_all(bfc, holes);
  const Block block = bfc.allocate(400_KiB);
  EXPECT_GT(block.data(), pins.back().data());
  EXPECT_EQ(BfcChunks::bin_of(300_KiB), BfcChunks::bin_of(400_KiB));
  bfc.deallocate(block);
  free_all(bfc, pins);
}

TEST(BfcResource, CatchesOneOfTwoThreadsThatReturnTheSameBlock) {
  BfcResource bfc({.limit = 1_MiB});
  for (int round = 0; round < 200; ++round) {
    const Block block = bfc.allocate(static_cast<std::size_t>(1 + round * 37));
    std::atomic<int> caught{0}, ready{0};
    const auto give_back = [&] {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      try {
        bfc.deallocate(block);
      } catch (const InvalidArgument&) {
        ++caught;
      }
    };
    std::thread other(give_back);
    give_back();
    other.join();
    ASSERT_EQ(caught, 1) << "round " << round;
  }
  EXPECT_EQ(bfc.stats().bytes_in_use, 0u);
}

}  // namespace
}  // namespace plimsoll
