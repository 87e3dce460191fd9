#include "plimsoll/memory/pmr_resource.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <list>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/block_map.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll {
namespace {

class PmrResourceTest : public testing::Test {
 protected:
  HostPageSource pages_;
  Arena arena_{pages_, {.name = "CPU:0", .limit = 64_MiB}};
  PmrResource memory_{arena_};
  std::size_t in_use() const { return arena_.stats().bytes_in_use; }
};

TEST_F(PmrResourceTest, FeedsStandardContainers) {
  {
    std::pmr::vector<float> values(1000, 1.5f, &memory_);
    EXPECT_EQ(in_use(), 4032u);  // 4000 bytes in units of 64.
    std::pmr::map<int, std::pmr::string> names(&memory_);
    for (int i = 0; i < 1000; ++i) names[i] = "a name that is too long for the string itself " + std::to_string(i);
    EXPECT_EQ(names.at(999).substr(46), "999");
    EXPECT_EQ(values.back(), 1.5f);
    EXPECT_GT(arena_.stats().num_allocs, 2000u);
  }
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(PmrResourceTest, AlignsAsAsked) {
  for (const std::size_t alignment : {std::size_t{1}, 8_KiB, 1_MiB, 2_MiB}) {
    void* const data = memory_.allocate(100, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % std::max<std::size_t>(alignment, 64), 0u);
    memory_.deallocate(data, 100, alignment);
  }
  EXPECT_THROW((void)memory_.allocate(1, 4_MiB), InvalidArgument);
  EXPECT_THROW((void)memory_.allocate(1, 24), InvalidArgument);
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(PmrResourceTest, GivesEmptyAllocationsAnAddressOfTheirOwn) {
  void* const first = memory_.allocate(0);
  void* const second = memory_.allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
  memory_.deallocate(first, 0);
  memory_.deallocate(second, 0);
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(PmrResourceTest, RefusesPastTheLimitWithoutLosingAnything) {
  std::pmr::vector<char> half(32_MiB, 'x', &memory_);
  const MemoryStats before = arena_.stats();
  EXPECT_THROW(half.resize(48_MiB), PmrOutOfMemory);
  EXPECT_EQ(in_use(), before.bytes_in_use);
  EXPECT_EQ(half.size(), 32_MiB);
  EXPECT_EQ(half.back(), 'x');
}

TEST_F(PmrResourceTest, ARefusalIsABadAllocWithTheDetailsOfAnOutOfMemory) {
  try {
    (void)memory_.allocate(1_GiB);
    FAIL();
  } catch (const std::exception& error) {  // Also those who catch the most general kind get it.
    const auto* const refused = dynamic_cast<const PmrOutOfMemory*>(&error);
    ASSERT_NE(refused, nullptr);
    EXPECT_NE(dynamic_cast<const std::bad_alloc*>(&error), nullptr);
    EXPECT_EQ(refused->refusal().requested(), 1_GiB);
    EXPECT_EQ(std::string(error.what()), refused->refusal().what());
  }
}

TEST_F(PmrResourceTest, RefusesAForeignPointerAndChangesNothing) {
  std::array<std::byte, 256> other{};
  const Block block = arena_.allocate(1000);
  char* const mine = static_cast<char*>(memory_.allocate(1000));
  const std::size_t before = in_use();
  EXPECT_THROW(memory_.deallocate(other.data(), 256), InvalidArgument);
  EXPECT_THROW(memory_.deallocate(mine + 64, 1000), InvalidArgument);  // Inside a block.
  EXPECT_THROW(memory_.deallocate(mine + 1, 1000), InvalidArgument);
  EXPECT_THROW(memory_.deallocate(block.data(), 1000), InvalidArgument);  // Has a handle: goes back by that.
  EXPECT_THROW(memory_.deallocate(arena_.base() + arena_.range_bytes() - 64, 64), InvalidArgument);
  EXPECT_THROW(memory_.deallocate(mine, 999), InvalidArgument);
  EXPECT_EQ(in_use(), before);
  memory_.deallocate(mine, 1000);
  arena_.deallocate(block);
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(PmrResourceTest, RefusesASecondDeallocation) {
  void* const data = memory_.allocate(100_KiB);
  void* const kept = memory_.allocate(100_KiB);
  memory_.deallocate(data, 100_KiB);
  EXPECT_THROW(memory_.deallocate(data, 100_KiB), InvalidArgument);
  EXPECT_GE(in_use(), 100_KiB);
  memory_.deallocate(kept, 100_KiB);
  arena_.validate();
}

TEST_F(PmrResourceTest, ChargesTheBudgetOfTheScopeAndTellsTheLedger) {
  const Budget budget("lookup", 1_MiB);
  std::pmr::vector<int> table(&memory_);
  {
    const BudgetScope use(budget);
    table.resize(1000);
    EXPECT_THROW((void)memory_.allocate(2_MiB), std::bad_alloc);
  }
  EXPECT_EQ(budget.used(), 4032u);
  std::string op;
  arena_.for_each_live([&](const Chunk& chunk) { op = chunk.label.op; });
  EXPECT_EQ(op, "pmr");
}

TEST_F(PmrResourceTest, EqualsOnlyItself) {
  PmrResource other(arena_);
  EXPECT_TRUE(memory_ == memory_);
  EXPECT_FALSE(memory_ == other);
}

TEST_F(PmrResourceTest, AgreesWithAModelOverRandomCalls) {
  std::mt19937 random(7);
  std::unordered_map<void*, std::size_t> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() < 200 && random() % 5 < 3) {
      const std::size_t bytes = std::size_t{1} << random() % 15;
      EXPECT_TRUE(live.emplace(memory_.allocate(bytes), bytes).second);
    } else if (!live.empty()) {
      memory_.deallocate(live.begin()->first, live.begin()->second);
      live.erase(live.begin());
    }
  }
  std::size_t sum = 0;
  for (const auto& [data, bytes] : live) sum += (bytes + 63) / 64 * 64;
  EXPECT_EQ(in_use(), sum);
  for (const auto& [data, bytes] : live) memory_.deallocate(data, bytes);
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(PmrResourceTest, LetsOneOfManyThreadsGiveABlockBack) {
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    void* const data = memory_.allocate(256);
    std::atomic<int> done{0}, refused{0};
    const auto give = [&] {
      try {
        memory_.deallocate(data, 256);
        ++done;
      } catch (const InvalidArgument&) {
        ++refused;
      }
    };
    std::thread first(give), second(give);
    first.join();
    second.join();
    ASSERT_EQ(done, 1);
    ASSERT_EQ(refused, 1);
  }
  EXPECT_EQ(in_use(), 0u);
}

TEST_F(PmrResourceTest, HoldsLittleBesideTheBlocks) {
  constexpr std::size_t kNodes = 100'000;
  {
    std::pmr::list<std::array<char, 48>> nodes(&memory_);
    for (std::size_t i = 0; i < kNodes; ++i) nodes.emplace_back();
    EXPECT_LE(memory_.overhead_bytes(), kNodes * 64 / 8 + 64_KiB);
  }
  EXPECT_GE(memory_.trim(), kNodes * 64 / 8 - 64_KiB);
  EXPECT_LE(memory_.overhead_bytes(), 16_KiB);
}

TEST(BlockMap, GivesPagesBackBeforeTheyPileUp) {
  BlockMap map(16_GiB);
  Chunk chunk{};
  for (std::size_t offset = 0; offset < 16_GiB; offset += 1_MiB) {  // Wanders over all addresses, one block at a time.
    map.put(offset, &chunk);
    EXPECT_EQ(map.find(offset), &chunk);
    EXPECT_TRUE(map.take(offset, &chunk));
    EXPECT_FALSE(map.take(offset, &chunk));
    ASSERT_LE(map.bytes(), (BlockMap::kSpareLeaves + 4) * 4096 + 16_GiB / (32_KiB / 4) + 4096);
  }
}

TEST(BlockMap, KeepsEntriesWhileOtherThreadsReleasePages) {
  BlockMap map(1_GiB);
  std::atomic<bool> stop{false};
  std::thread sweeper([&] {
    while (!stop) map.release_empty();
  });
  std::vector<std::thread> users;
  for (std::size_t number = 0; number < 2; ++number)
    users.emplace_back([&, number] {
      Chunk chunk{};
      for (int i = 0; i < 5000; ++i) {
        const std::size_t offset = (static_cast<std::size_t>(i % 40) * 2 + number) * 64;
        map.put(offset, &chunk);
        ASSERT_TRUE(map.take(offset, &chunk));
      }
    });
  for (std::thread& user : users) user.join();
  stop = true;
  sweeper.join();
}

TEST_F(PmrResourceTest, LetsAForkedChildGiveBackAndEnd) {
  auto* const values = new std::pmr::vector<int>(1000, 7, &memory_);
  const pid_t child = fork();
  if (child == 0) {
    delete values;
    _exit(arena_.stats().bytes_in_use == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ((*values)[999], 7);
  delete values;
}

}  // namespace
}  // namespace plimsoll
