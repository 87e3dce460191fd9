// The single-threaded cases of the conformance suite.
#include <rapidcheck.h>

#include <array>
#include <random>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/memory_resource_testing.h"

namespace plimsoll {
namespace {

TEST_P(MemoryResourceConformance, IsEmptyWhenFresh) {
  const MemoryStats stats = memory().stats();
  EXPECT_EQ(stats.bytes_in_use, 0u);
  EXPECT_EQ(stats.peak_bytes_in_use, 0u);
  EXPECT_EQ(stats.num_allocs, 0u);
  EXPECT_EQ(stats.num_ooms, 0u);
  EXPECT_EQ(stats.bytes_limit, kLimit);
}

TEST_P(MemoryResourceConformance, GivesAnEmptyBlockForZeroBytesAndCountsNothing) {
  const MemoryStats before = memory().stats();
  const Block block = memory().allocate(0);
  EXPECT_FALSE(block);
  EXPECT_EQ(block.size(), 0u);
  EXPECT_TRUE(same_use(memory().stats(), before));
  EXPECT_NO_THROW(memory().deallocate(block));
  EXPECT_NO_THROW(memory().deallocate(Block()));
}

TEST_P(MemoryResourceConformance, AlignsToWhatIsAskedAndNeverBelow64) {
  std::vector<Block> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t alignment = 1; alignment <= 64_KiB; alignment *= 2) {
      for (const std::size_t bytes : {1u, 65u, 5000u}) {
        blocks.push_back(memory().allocate(bytes, alignment));
        const auto address = reinterpret_cast<std::uintptr_t>(blocks.back().data());
        EXPECT_EQ(address % std::max(alignment, kDefaultAlignment), 0u) << bytes << " bytes at " << alignment;
      }
    }
  }
  for (const Block& block : blocks) memory().deallocate(block);
  EXPECT_EQ(memory().stats().bytes_in_use, 0u);
}

TEST_P(MemoryResourceConformance, RefusesAnAlignmentThatIsNoPowerOfTwo) {
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{48}, SIZE_MAX}) {
    EXPECT_THROW(static_cast<void>(memory().allocate(100, alignment)), InvalidArgument) << alignment;
  }
  EXPECT_EQ(memory().stats().bytes_in_use, 0u);
  EXPECT_EQ(memory().stats().num_allocs, 0u);
}

TEST_P(MemoryResourceConformance, SurvivesAnAbsurdAlignment) {
  for (const int shift : {30, 46, 62, 63}) {
    try {
      const Block block = memory().allocate(100, std::size_t{1} << shift);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) & ((std::size_t{1} << shift) - 1), 0u);
      memory().deallocate(block);
    } catch (const Error&) {
    }
    EXPECT_EQ(memory().stats().bytes_in_use, 0u);
  }
}

TEST_P(MemoryResourceConformance, HandsOutBlocksThatDoNotOverlap) {
  std::vector<MarkedBlock> blocks;
  for (std::size_t bytes = 1; bytes < 1024; ++bytes) blocks.push_back(marked(bytes));
  for (std::size_t bytes = 4096; bytes <= 4_MiB; bytes *= 2) blocks.push_back(marked(bytes + 13));
  for (const MarkedBlock& block : blocks) ASSERT_TRUE(block.intact()) << block.block().size();
  for (const MarkedBlock& block : blocks) memory().deallocate(block.block());
}

TEST_P(MemoryResourceConformance, CountsWhatItHandsOut) {
  std::vector<Block> blocks;
  std::size_t requested = 0;
  for (std::size_t bytes = 1; bytes <= 1023; ++bytes) {
    blocks.push_back(memory().allocate(bytes));
    EXPECT_EQ(blocks.back().size(), bytes);
    requested += bytes;
  }
  const MemoryStats full = memory().stats();
  EXPECT_EQ(full.num_allocs, 1023u);
  EXPECT_GE(full.bytes_in_use, requested);
  EXPECT_GE(full.largest_alloc_bytes, 1023u);
  EXPECT_LE(full.bytes_in_use, full.bytes_reserved);
  for (const Block& block : blocks) memory().deallocate(block);
  const MemoryStats none = memory().stats();
  EXPECT_EQ(none.bytes_in_use, 0u);
  EXPECT_EQ(none.num_allocs, 1023u);
  EXPECT_GE(none.peak_bytes_in_use, full.bytes_in_use);
}

TEST_P(MemoryResourceConformance, RefusesSizesThatOverflowAndStaysIntact) {
  const MarkedBlock kept = marked(100'000);
  const MemoryStats before = memory().stats();
  for (const std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 63, SIZE_MAX - 4095, SIZE_MAX / 2 + 1, std::size_t{1} << 48, kLimit + 1}) {
    for (const std::size_t alignment : {std::size_t{64}, std::size_t{4096}}) {
      EXPECT_THROW(static_cast<void>(memory().allocate(bytes, alignment)), Error) << bytes;
    }
  }
  EXPECT_TRUE(same_use(memory().stats(), before));
  EXPECT_TRUE(kept.intact());
  memory().deallocate(kept.block());
}

TEST_P(MemoryResourceConformance, RefusalSaysTheNumbersAndLeavesNothingBehind) {
  std::vector<MarkedBlock> blocks;
  try {
    for (;;) blocks.push_back(marked(3_MiB));
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.requested(), 3_MiB);
    EXPECT_EQ(error.limit(), kLimit);
    EXPECT_GE(error.in_use(), blocks.size() * 3_MiB);
    EXPECT_GT(error.smallest_sufficient_limit(), kLimit);
    EXPECT_NE(std::string(error.what()).find("3.0 MiB"), std::string::npos) << error.what();
  }
  ASSERT_GE(blocks.size(), 15u);
  const MemoryStats before = memory().stats();
  EXPECT_EQ(before.num_ooms, 1u);
  EXPECT_THROW(static_cast<void>(memory().allocate(kLimit)), OutOfMemory);
  EXPECT_TRUE(same_use(memory().stats(), before));
  EXPECT_EQ(memory().stats().num_ooms, 2u);
  for (const MarkedBlock& block : blocks) EXPECT_TRUE(block.intact());
  memory().deallocate(blocks.back().block());
  blocks.back() = marked(3_MiB);
  for (const MarkedBlock& block : blocks) memory().deallocate(block.block());
  EXPECT_EQ(memory().stats().bytes_in_use, 0u);
}

TEST_P(MemoryResourceConformance, DetectsABlockGivenBackTwice) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{10'000}, 2_MiB}) {
    const MarkedBlock neighbour = marked(bytes);
    const Block block = memory().allocate(bytes);
    memory().deallocate(block);
    const MemoryStats before = memory().stats();
    EXPECT_THROW(memory().deallocate(block), InvalidArgument) << bytes;
    EXPECT_TRUE(same_use(memory().stats(), before));
    EXPECT_TRUE(neighbour.intact());
    memory().deallocate(neighbour.block());
  }
}

TEST_P(MemoryResourceConformance, DetectsASecondReturnAfterTheMemoryWasHandedOutAgain) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{10'000}, 2_MiB}) {
    const Block old = memory().allocate(bytes);
    memory().deallocate(old);
    std::vector<MarkedBlock> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(marked(bytes));
    EXPECT_THROW(memory().deallocate(old), InvalidArgument) << bytes;
    for (const MarkedBlock& block : blocks) {
      EXPECT_TRUE(block.intact());
      EXPECT_NO_THROW(memory().deallocate(block.block()));
    }
  }
  EXPECT_EQ(memory().stats().bytes_in_use, 0u);
}

TEST_P(MemoryResourceConformance, DetectsABlockItDidNotHandOut) {
  const MarkedBlock mine = marked(10'000);
  const auto other = GetParam().make(kLimit);
  const Block theirs = other->allocate(10'000);
  std::array<char, 256> local{};
  char* const inside = static_cast<char*>(mine.block().data()) + 4096;
  const MemoryStats before = memory().stats();
  EXPECT_THROW(memory().deallocate(theirs), InvalidArgument);
  EXPECT_THROW(memory().deallocate(Block(theirs.data(), theirs.size(), &memory(), theirs.token())), InvalidArgument);
  EXPECT_THROW(memory().deallocate(Block(local.data(), local.size(), &memory(), 1)), InvalidArgument);
  EXPECT_THROW(memory().deallocate(Block(inside, 100, &memory(), mine.block().token())), InvalidArgument);
  EXPECT_TRUE(same_use(memory().stats(), before));
  EXPECT_NO_THROW(other->deallocate(theirs));
  EXPECT_TRUE(mine.intact());
  memory().deallocate(mine.block());
}

TEST_P(MemoryResourceConformance, IsOnePieceAgainWhenAllIsFree) {
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 500; ++i)
      blocks.push_back(memory().allocate(1 + random() % (random() % 4 == 0 ? 200'000 : 2'000)));
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (const Block& block : blocks) memory().deallocate(block);
    EXPECT_EQ(memory().stats().bytes_in_use, 0u);
    memory().deallocate(memory().allocate(kLimit / 10 * 9));
  }
}

TEST_P(MemoryResourceConformance, AgreesWithAMapOverALongRandomRun) {
  std::mt19937 random(11);
  std::vector<std::uint32_t> commands(20'000);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    commands[i] = static_cast<std::uint32_t>(random());
    if (i / 1000 % 2 == 0 && random() % 4 == 0) commands[i] &= ~1u;  // Fills for a while, then drains.
    if (i / 1000 % 2 == 1 && random() % 4 == 0) commands[i] |= 1u;
  }
  run_against_model(commands);
}

TEST_P(MemoryResourceConformance, AgreesWithAMapOverAnyCommands) {
  EXPECT_TRUE(rc::check([this](const std::vector<std::uint32_t>& commands) {
    run_against_model(commands);
    RC_ASSERT(!HasFailure());
  }));
}

}  // namespace
}  // namespace plimsoll
