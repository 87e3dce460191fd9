#include "plimsoll/memory/chunk_table.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace plimsoll {
namespace {

TEST(ChunkTable, GivesEveryRecordANumberThatFindsIt) {
  ChunkTable table;
  std::vector<Chunk*> records;
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 20'000; ++i) {
    table.reserve(1);
    records.push_back(table.make());
    EXPECT_TRUE(numbers.insert(ChunkTable::number(records.back())).second) << "two records with one number";
  }
  for (Chunk* record : records) ASSERT_EQ(table.find(ChunkTable::number(record)), record);
}

TEST(ChunkTable, FindsNothingForNumbersThatNeverWere) {
  ChunkTable table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(1), nullptr);
  table.reserve(1);
  const std::uint32_t number = ChunkTable::number(table.make());
  EXPECT_NE(table.find(number), nullptr);
  EXPECT_EQ(table.find(0), nullptr) << "the slab's own record is no chunk";
  EXPECT_EQ(table.find(512), nullptr);
  EXPECT_EQ(table.find(513), nullptr);
  EXPECT_EQ(table.find(UINT32_MAX), nullptr);
}

TEST(ChunkTable, ReusesDroppedRecordsInsteadOfGrowing) {
  ChunkTable table;
  for (int i = 0; i < 100'000; ++i) {
    table.reserve(2);
    Chunk* first = table.make();
    Chunk* second = table.make();
    table.drop(first);
    table.drop(second);
  }
  EXPECT_EQ(table.bytes(), 65536u);
}

TEST(ChunkTable, KeepsTheGenerationOfADroppedRecordSoThatOldHandlesStayStale) {
  ChunkTable table;
  table.reserve(1);
  Chunk* record = table.make();
  record->generation = 7;
  table.drop(record);
  EXPECT_EQ(record->state, ChunkState::kSpare);
  table.reserve(1);
  ASSERT_EQ(table.make(), record);
  EXPECT_EQ(record->generation, 7u);
}

TEST(ChunkTable, PromisesAsManyRecordsAsWereReserved) {
  ChunkTable table;
  table.reserve(2000);
  const std::size_t bytes = table.bytes();
  std::set<Chunk*> records;
  for (int i = 0; i < 2000; ++i) records.insert(table.make());
  EXPECT_EQ(records.size(), 2000u);
  EXPECT_EQ(table.bytes(), bytes) << "make() must not have to grow";
  EXPECT_LE(bytes, 2 * 2000 * sizeof(Chunk));
}

}  // namespace
}  // namespace plimsoll
