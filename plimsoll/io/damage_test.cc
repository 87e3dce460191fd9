// Damaged files and false claims: Corruption that names file and place, and no memory allocated for the claims.
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/internal/snappy.h"
#include "plimsoll/io/internal/table.h"
#include "plimsoll/io/internal/tensorflow_types.h"
#include "plimsoll/io/io_testing.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

struct EntryFields {
  std::string key;
  std::int64_t dtype = 1, shard = 0, offset = 0, size = 8;
  std::vector<std::int64_t> shape = {2};
};

// An index with a correct checksum and the given content.
std::string index_of(const std::vector<EntryFields>& entries, std::int64_t num_shards = 1) {
  WireWriter header;
  header.integer(1, num_shards);
  TableWriter table;
  table.add("", header.bytes());
  for (const EntryFields& fields : entries) {
    WireWriter entry, shape;
    for (const std::int64_t size : fields.shape) {
      WireWriter dimension;
      dimension.integer(1, size);
      shape.message(2, dimension);
    }
    entry.integer(1, fields.dtype);
    entry.message(2, shape);
    entry.integer(3, fields.shard);
    entry.integer(4, fields.offset);
    entry.integer(5, fields.size);
    table.add(fields.key, entry.bytes());
  }
  return table.finish();
}

class Damage : public FileFixture {
 protected:
  Damage() {
    BundleWriter writer(directory_ / "m");
    writer.add("first", patterned({3}, f32));
    writer.add("second", patterned({2, 2}, i16));
    writer.add_strings("third", {2}, std::vector<std::string>{"ab", "cde"});
    writer.commit();
    index_ = get(bundle_index_path(directory_ / "m"));
    data_ = get(bundle_data_path(directory_ / "m", 0, 1));
  }

  // Reads everything; false for Corruption.
  static bool reads(const std::string& index, const std::string& data) {
    const std::span<const std::byte> shard = bytes_of(data);
    try {
      const BundleReader reader(bytes_of(index), {&shard, 1});
      for (const BundleEntry& entry : reader.entries())
        entry.is_string() ? void(reader.read_strings(entry.key)) : void(reader.read(entry.key));
      return true;
    } catch (const Corruption& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("memory"), HasSubstr("offset ")));
      return false;
    }
  }
  static std::string refusal(const std::string& index, const std::string& data = std::string(1000, 'x')) {
    const std::span<const std::byte> shard = bytes_of(data);
    return message_of<Corruption>([&] { BundleReader(bytes_of(index), {&shard, 1}); });
  }

  std::string index_, data_;
};

TEST_F(Damage, TruncationAtEveryByteIsFound) {
  ASSERT_TRUE(reads(index_, data_));
  for (std::size_t size = 0; size < index_.size(); ++size) EXPECT_FALSE(reads(index_.substr(0, size), data_)) << size;
  for (std::size_t size = 0; size < data_.size(); ++size) EXPECT_FALSE(reads(index_, data_.substr(0, size))) << size;
}

TEST_F(Damage, EveryFlippedBitIsFound) {
  for (std::size_t bit = 0; bit < 8 * data_.size(); ++bit) {
    std::string flipped = data_;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(reads(index_, flipped)) << bit;
  }
  std::size_t harmless = 0;  // The padding of the footer and the unused, empty block do not matter.
  for (std::size_t bit = 0; bit < 8 * index_.size(); ++bit) {
    std::string flipped = index_;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    harmless += reads(flipped, data_) ? 1 : 0;
  }
  EXPECT_LE(harmless, 8 * (13 + 40));
}

TEST_F(Damage, FalseClaimsOfAnIndexAreRefusedBeforeMemoryIsAllocated) {
  const Budget budget("small", 64_KiB);
  const BudgetScope use(budget);
  EXPECT_THAT(
      refusal(index_of({{.key = "a", .size = 4000, .shape = {1000}}})),
      AllOf(HasSubstr("\"a\""), HasSubstr("expected 4000 bytes, the file ends at 1000"), HasSubstr("offset 0")));
  EXPECT_THAT(refusal(index_of({{.key = "a", .offset = 996}})), HasSubstr("offset 996"));
  EXPECT_THAT(refusal(index_of({{.key = "a", .offset = INT64_MAX}})), HasSubstr("ends at 1000"));
  EXPECT_THAT(refusal(index_of({{.key = "a", .size = 9}})), HasSubstr("9 bytes for float32 [2], which has 8"));
  EXPECT_THAT(refusal(index_of({{.key = "a", .offset = -8}})), HasSubstr("offset -8"));
  EXPECT_THAT(refusal(index_of({{.key = "a", .shape = {-2}}})), HasSubstr("size -2"));
  EXPECT_THAT(refusal(index_of({{.key = "a", .shape = {1LL << 40, 1LL << 40}}})), HasSubstr("than can exist"));
  EXPECT_THAT(refusal(index_of({{.key = "a", .shape = std::vector<std::int64_t>(33, 1)}})), HasSubstr("32 axes"));
  EXPECT_THAT(refusal(index_of({{.key = "a", .shard = 1}})), HasSubstr("shard 1 of 1"));
  EXPECT_THAT(refusal(index_of({}, 1 << 30)), HasSubstr("data files"));
  EXPECT_THAT(refusal(index_of({{.key = "a"}, {.key = "b", .offset = 4}})), HasSubstr("\"a\" and \"b\" overlap"));
  const std::string strings = index_of({{.key = "s", .dtype = 7, .size = 8, .shape = {1LL << 50}}});
  const std::string data(1000, 'x');
  const std::span<const std::byte> shard = bytes_of(data);
  const BundleReader reader(bytes_of(strings), {&shard, 1});
  EXPECT_THAT(message_of<Corruption>([&] { reader.read_strings("s"); }), HasSubstr("more strings than bytes"));
  EXPECT_EQ(budget.peak(), 0u);
}

TEST_F(Damage, WhatIsUnderstoodButNotOfferedIsUnsupported) {
  const std::string data(1000, '\0');
  const std::span<const std::byte> shard = bytes_of(data);
  const std::string index = index_of({{.key = "c", .dtype = 8, .size = 16}});
  const BundleReader reader(bytes_of(index), {&shard, 1});
  EXPECT_EQ(reader.entry("c").dtype_name, "complex64");
  EXPECT_THAT(message_of<Unsupported>([&] { reader.read("c"); }), HasSubstr("complex64"));
}

TEST(Table, EntriesOutOfOrderAreRefused) {
  TableWriter table;
  table.add("b", "1");
  table.add("a", "2");
  const std::string file = table.finish();
  EXPECT_THROW(read_table(InputFile("t", bytes_of(file))), Corruption);
}

TEST(Table, KeepsEntriesInBlocksOfAnySize) {
  for (const std::size_t block : {1u, 50u, 300u, 100000u}) {
    TableWriter table(block);
    for (int i = 100; i < 400; ++i)
      table.add("key" + std::to_string(i), std::string(static_cast<std::size_t>(i % 7), 'v'));
    const std::string file = table.finish();
    const auto entries = read_table(InputFile("t", bytes_of(file)));
    ASSERT_EQ(entries.size(), 300u) << block;
    EXPECT_EQ(entries[299].key, "key399");
    EXPECT_EQ(entries[6].value.size(), 106u % 7);
  }
}

TEST(Snappy, ReadsLiteralsAndCopiesAndRefusesTheRest) {
  EXPECT_EQ(snappy_uncompress(std::string("\x05\x10hello", 7), 100), "hello");
  EXPECT_EQ(snappy_uncompress(std::string("\x09\x00\x61\x11\x01", 5), 100), std::string(9, 'a'));
  EXPECT_EQ(snappy_uncompress(std::string("\x06\x04xy\x0e\x02\x00", 7), 100), "xyxyxy");
  for (const std::string& bad :
       {std::string("\x05\x10hell", 6), std::string("\x06\x10hello", 7), std::string("\x04\x10hello", 7),
        std::string("\x08\x00\x61\x11\x00", 5), std::string("\x08\x00\x61\x11\x02", 5), std::string("")})
    EXPECT_EQ(snappy_uncompress(bad, 100), std::nullopt);
  EXPECT_EQ(snappy_uncompress(std::string("\x05\x10hello", 7), 4), std::nullopt);
}

}  // namespace
}  // namespace plimsoll
