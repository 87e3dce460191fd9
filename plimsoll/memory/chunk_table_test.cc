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

}  // namespace
}  // namespace plimsoll
