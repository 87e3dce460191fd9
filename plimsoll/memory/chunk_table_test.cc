#include "plimsoll/memory/chunk_table.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

TEST(ChunkTable, GivesEveryRecordANumberThatFindsIt) {
  ChunkTable table(1 << 20);
  std::vector<Chunk*> records;
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 20'000; ++i) {
    table.reserve(1);
    records.push_back(table.make());
    EXPECT_TRUE(numbers.insert(table.number(records.back())).second) << "two records with one number";
  }
  for (Chunk* record : records) ASSERT_EQ(table.find(table.number(record)), record);
}

TEST(ChunkTable, FindsNothingForNumbersThatNeverWere) {
  ChunkTable table(1 << 20);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(1), nullptr);
  table.reserve(1);
  const std::uint32_t number = table.number(table.make());
  EXPECT_NE(table.find(number), nullptr);
  EXPECT_EQ(table.find(number + 1), nullptr);
  EXPECT_EQ(table.find(UINT32_MAX), nullptr);
}

TEST(ChunkTable, ReusesDroppedRecordsInsteadOfGrowing) {
  ChunkTable table(1 << 20);
  for (int i = 0; i < 100'000; ++i) {
    table.reserve(2);
    Chunk* first = table.make();
    Chunk* second = table.make();
    table.drop(first);
    table.drop(second);
  }
  EXPECT_EQ(table.bytes(), 2 * sizeof(Chunk));
}

TEST(ChunkTable, KeepsTheGenerationOfADroppedRecordSoThatOldHandlesStayStale) {
  ChunkTable table(1 << 20);
  table.reserve(1);
  Chunk* record = table.make();
  record->generation = 7;
  table.drop(record);
  EXPECT_EQ(record->state, ChunkState::kSpare);
  table.reserve(1);
  ASSERT_EQ(table.make(), record);
  EXPECT_EQ(record->generation, 7u);
}

TEST(ChunkTable, PromisesAsManyRecordsAsWereReservedAndRefusesMore) {
  ChunkTable table(2000);
  table.reserve(2000);
  std::set<Chunk*> records;
  for (int i = 0; i < 2000; ++i) records.insert(table.make());
  EXPECT_EQ(records.size(), 2000u);
  EXPECT_EQ(table.bytes(), 2000 * sizeof(Chunk));
  EXPECT_THROW(table.reserve(1), OutOfMemory);
  table.drop(*records.begin());
  EXPECT_NO_THROW(table.reserve(1));
}

TEST(ChunkTable, TrimGivesPagesOfSpareRecordsBackAndTheyAreMadeAgain) {
  ChunkTable table(1 << 20);
  constexpr std::size_t kRecords = 32 * 1000, kKeptEach = 320;
  table.reserve(kRecords);
  std::vector<Chunk*> records;
  for (std::size_t i = 0; i < kRecords; ++i) {
    records.push_back(table.make());
    records.back()->state = ChunkState::kLive;
    records.back()->generation = 5;
  }
  for (std::size_t i = 0; i < kRecords; ++i)
    if (i % kKeptEach != 0) table.drop(records[i]);
  const std::size_t given_back = table.trim();
  EXPECT_EQ(given_back, (kRecords / 32 - kRecords / kKeptEach) * 4096);
  EXPECT_EQ(table.bytes(), kRecords * sizeof(Chunk) - given_back);
  EXPECT_EQ(table.trim(), 0u) << "nothing is left to give";
  EXPECT_EQ(table.find(33)->state, ChunkState::kSpare) << "an old number is not a live block";
  table.reserve((1 << 20) - kRecords / kKeptEach);
  std::set<Chunk*> made;
  for (std::size_t i = 0; i < kRecords - kRecords / kKeptEach; ++i) {
    Chunk* const chunk = table.make();
    ASSERT_TRUE(made.insert(chunk).second) << "made twice";
    ASSERT_TRUE(table.number(chunk) % kKeptEach != 0) << "in use";
    ASSERT_GE(chunk->generation, 5u);
    ASSERT_NE(chunk->state, ChunkState::kLive);
  }
  EXPECT_EQ(table.bytes(), kRecords * sizeof(Chunk)) << "no record beyond those there were";
}

TEST(ChunkTable, ARecordWhosePageWasAwayHasALaterGeneration) {
  ChunkTable table(1 << 20);
  table.reserve(64);
  std::vector<Chunk*> records;
  for (std::uint32_t i = 0; i < 64; ++i) {
    records.push_back(table.make());
    records.back()->generation = i;
  }
  for (Chunk* record : records) table.drop(record);
  EXPECT_EQ(table.trim(), 2 * 4096u);
  for (int i = 0; i < 64; ++i) ASSERT_GT(table.make()->generation, 63u);
}

}  // namespace
}  // namespace plimsoll
