#include "plimsoll/io/bundle.h"

#include <unistd.h>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/io/internal/slices.h"
#include "plimsoll/io/internal/table.h"
#include "plimsoll/io/internal/tensorflow_types.h"
#include "plimsoll/io/io_testing.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Bundle : public FileFixture {
 protected:
  fs::path prefix() const { return directory_ / "model.ckpt"; }
  void save(float value, std::size_t elements = 3) {
    Tensor tensor = patterned({static_cast<std::int64_t>(elements)}, f32);
    HostWrite to(tensor);
    for (float& element : to.span<float>()) element = value;
    to.finish();
    BundleWriter writer(prefix());
    writer.add("w", tensor);
    writer.commit();
  }
};

TEST_F(Bundle, KeepsEveryDtypeAndShape) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const DType dtype : kAllDTypes)
    for (const Shape& shape : {Shape::scalar(), Shape{0}, Shape{3, 0, 2}, Shape{5}, Shape{2, 3, 4}, Shape{300, 301}})
      tensors.emplace_back(to_string(dtype) + shape.to_string(), patterned(shape, dtype));
  BundleWriter writer(prefix(), {.num_shards = 3});
  std::size_t shard = 0;
  for (const auto& [name, tensor] : tensors) writer.add(name, tensor, shard++ % 3);
  EXPECT_FALSE(fs::exists(bundle_index_path(prefix())));
  writer.commit();
  const BundleReader reader(prefix());
  EXPECT_EQ(reader.entries().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    expect_same(reader.read(name), tensor);
    reader.verify(name);
  }
}

TEST_F(Bundle, KeepsStrings) {
  const std::vector<std::string> strings = {"", "hello", std::string(300, 'x'), std::string("\0\n", 2)};
  BundleWriter writer(prefix());
  writer.add_strings("s", {2, 2}, strings);
  writer.add_strings("none", {0}, {});
  writer.add_strings("one", Shape::scalar(), std::vector<std::string>{"graph"});
  EXPECT_THROW(writer.add_strings("bad", {3}, strings), InvalidArgument);
  writer.commit();
  const BundleReader reader(prefix());
  EXPECT_EQ(reader.read_strings("s"), strings);
  EXPECT_EQ(reader.read_strings("none"), std::vector<std::string>{});
  EXPECT_THAT(reader.read_strings("one"), ElementsAre("graph"));
  EXPECT_THAT(message_of<Unsupported>([&] { reader.read("s"); }), HasSubstr("read_strings"));
}

TEST_F(Bundle, ManyTensorsMakeAnIndexOfManyBlocks) {
  BundleWriter writer(prefix());
  const Tensor tensor = patterned({2}, i32);
  for (int i = 0; i < 20000; ++i) writer.add("layer_" + std::to_string(i) + "/a_rather_long_name/kernel", tensor);
  writer.commit();
  EXPECT_GT(fs::file_size(bundle_index_path(prefix())), 2 * 256_KiB);
  const BundleReader reader(prefix());
  EXPECT_EQ(reader.entries().size(), 20000u);
  expect_same(reader.read("layer_19999/a_rather_long_name/kernel"), tensor);
}

TEST_F(Bundle, RefusesWrongKeysShardsAndDestinations) {
  const Tensor tensor = patterned({2}, f32);
  BundleWriter writer(prefix());
  writer.add("w", tensor);
  EXPECT_THROW(writer.add("w", tensor), InvalidArgument);
  EXPECT_THROW(writer.add("", tensor), InvalidArgument);
  EXPECT_THROW(writer.add("v", tensor, 1), InvalidArgument);
  EXPECT_THROW(writer.add("v", Tensor()), InvalidArgument);
  writer.commit();
  EXPECT_THROW(writer.commit(), FailedPrecondition);
  EXPECT_THROW(writer.add("v", tensor), FailedPrecondition);
  EXPECT_THROW(BundleWriter(directory_ / "x", {.num_shards = 0}), InvalidArgument);
  EXPECT_THROW(BundleWriter(directory_.string() + "/"), InvalidArgument);
  const BundleReader reader(prefix());
  EXPECT_THAT(message_of<NotFound>([&] { reader.read("v"); }), HasSubstr("no tensor \"v\""));
  EXPECT_THROW(reader.read_into("w", writable(patterned({2}, i32))), InvalidArgument);
  EXPECT_THROW(reader.read_into("w", writable(patterned({3}, f32))), InvalidArgument);
  EXPECT_THROW(reader.read_strings("w"), InvalidArgument);
  EXPECT_THAT(message_of<NotFound>([&] { BundleReader(directory_ / "absent"); }), HasSubstr("absent"));
  fs::remove(bundle_data_path(prefix(), 0, 1));
  EXPECT_THAT(message_of<NotFound>([&] { BundleReader(prefix()).read("w"); }), HasSubstr("data-00000-of-00001"));
}

// The old data stay until the new index is in place.
TEST_F(Bundle, ReplacesACheckpointOfTheSameName) {
  save(1.f);
  EXPECT_THAT(names(), ElementsAre("model.ckpt.data-00000-of-00001", "model.ckpt.index"));
  {
    BundleWriter given_up(prefix());
    given_up.add("w", patterned({3}, f32));
  }
  EXPECT_EQ(BundleReader(prefix()).read("w").at<float>({0}), 1.f);
  save(2.f);
  EXPECT_THAT(names(),
              ElementsAre("model.ckpt.data-00000-of-00002", "model.ckpt.data-00001-of-00002", "model.ckpt.index"));
  EXPECT_EQ(BundleReader(prefix()).read("w").at<float>({0}), 2.f);
  save(3.f);
  EXPECT_THAT(names(), ElementsAre("model.ckpt.data-00000-of-00001", "model.ckpt.index"));
  EXPECT_EQ(BundleReader(prefix()).read("w").at<float>({0}), 3.f);
  remove_bundle(prefix());
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(Bundle, RemovesWhatKilledWritersLeft) {
  put(directory_ / "model.ckpt.data-00000-of-00001.tmp-999-3", "half");
  put(directory_ / "model.ckpt.index.tmp-999-4", "half");
  put(directory_ / "model.ckpt-7.index", "another's");
  save(1.f);
  EXPECT_THAT(names(), ElementsAre("model.ckpt-7.index", "model.ckpt.data-00000-of-00001", "model.ckpt.index"));
}

// The memory of the tensors and a small buffer, nothing else.
TEST_F(Bundle, HoldsNoSecondCopy) {
  const Budget budget("model", 20_MiB);
  const BudgetScope use(budget);
  {
    const Tensor tensor = patterned({4, 1024, 1024}, f32);
    BundleWriter writer(prefix());
    writer.add("w", tensor);
    writer.commit();
  }
  EXPECT_LE(budget.peak(), 16_MiB + 64_KiB);
  const Tensor loaded = BundleReader(prefix()).read("w");
  EXPECT_LE(budget.peak(), 16_MiB + 64_KiB);
  Budget(budget).reset_peak();
  BundleReader(prefix()).verify("w");
  EXPECT_LE(budget.peak(), 16_MiB + 64_KiB + 20_MiB / 16);
}

// Keys, and what is between them, are TensorFlow's: bytes that sort by name and place.
TEST(BundleSlices, KeysAreThoseOfTensorflow) {
  const BundleSlice rows{{2, 0}, {1, 2}, {false, true}};
  EXPECT_EQ(slice_key("p", rows), std::string("\0p\0\1\1\2\x82\x81\x80\x7f", 10));
  const BundleSlice far{{64}, {100000}, {false}};
  EXPECT_EQ(slice_key("a\xff", far), std::string("\0a\xff\0\0\1\1\1\xc0\x40\xe1\x86\xa0", 13));
  EXPECT_EQ(slice_key(std::string_view("\0", 1), {{}, {}, {}}), std::string("\0\0\xff\0\1\0", 6));
  std::string last;
  for (const long long start : {0LL, 1LL, 63LL, 64LL, 8191LL, 8192LL, 1LL << 40, 1LL << 62, (1LL << 62) + 1}) {
    const std::string key = slice_key("v", {{start}, {1}, {false}});
    EXPECT_LT(last, key) << start;
    last = key;
  }
}

TEST(BundleSlices, MustLieInsideAndCoverTheTensorOnce) {
  const Shape shape{3, 2};
  const auto slice = [](std::int64_t row, std::int64_t rows) {
    return BundleSlice{{row, 0}, {rows, 2}, {false, true}};
  };
  EXPECT_EQ(fault_of_slices(shape, std::vector{slice(0, 2), slice(2, 1)}), "");
  EXPECT_THAT(fault_of_slices(shape, std::vector{slice(0, 2), slice(1, 2)}), HasSubstr("overlap"));
  EXPECT_THAT(fault_of_slices(shape, std::vector{slice(0, 2)}), HasSubstr("4 of its 6"));
  EXPECT_EQ(fault_of_slices(shape, std::vector{slice(0, 3), slice(1, 0)}), "");
  EXPECT_THROW(parse_slice(std::string_view("\x0a\x04\x08\x02\x10\x02\x0a\0", 8), shape), WireError) << "2 from 2 on";
  EXPECT_THROW(parse_slice(std::string_view("\x0a\0", 2), shape), WireError) << "one axis";
  EXPECT_THROW(parse_slice(std::string_view("\x0a\0\x0a\0\x0a\0", 6), shape), WireError) << "three";
  EXPECT_EQ(parse_slice(std::string_view("\x0a\x04\x08\x02\x10\x01\x0a\0", 8), shape).sizes,
            (std::vector<std::int64_t>{1, 2}));
}

// A bundle as TensorFlow 1 writes a partitioned variable: [3, 4], cut into columns [0, 1) and [1, 4) and so on.
TEST_F(Bundle, ReadsPartitionedTensors) {
  const Tensor whole = patterned({3, 4}, f32);
  const auto part = [&](std::int64_t first, std::int64_t columns) {
    Tensor made = patterned({3, columns}, f32);
    const HostRead from(whole);
    const HostWrite to(made);
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        to.span<float>()[static_cast<std::size_t>(row * columns + column)] =
            from.span<float>()[static_cast<std::size_t>(row * 4 + first + column)];
    return made;
  };
  const BundleSlice left{{0, 0}, {3, 1}, {true, false}}, right{{0, 1}, {3, 3}, {true, false}};
  BundleWriter writer(prefix());
  writer.add(slice_key("v", left), part(0, 1));
  writer.add(slice_key("v", right), part(1, 3));
  writer.add("plain", tensor_of<float>({1}, {7}));
  writer.commit();
  // The entry of the whole: dtype, shape and slices.
  WireWriter entry;
  entry.integer(1, 1);
  entry.message(2, tensorflow_shape({3, 4}));
  for (const BundleSlice& slice : {left, right}) {
    WireWriter message, all, columns;
    columns.integer(1, slice.starts[1]);
    columns.integer(2, slice.sizes[1]);
    message.message(1, all);
    message.message(1, columns);
    entry.message(7, message);
  }
  const auto rewrite = [&](std::string_view dropped) {
    TableWriter table;
    bool added = false;
    for (const TableEntry& one : read_table(InputFile(bundle_index_path(prefix())))) {
      if (one.key > "v" && !std::exchange(added, true)) table.add("v", entry.bytes());
      if (one.key != dropped && one.key != "v") table.add(one.key, one.value);
    }
    if (!added) table.add("v", entry.bytes());
    put(bundle_index_path(prefix()), table.finish());
  };
  rewrite("nothing");
  {
    const BundleReader reader(prefix());
    expect_same(reader.read("v"), whole);
    reader.verify("v");
    EXPECT_TRUE(reader.entry("v").is_partitioned());
    const Tensor target = patterned({3, 4}, f32);
    HostWrite(target, HostWrite::Elements::kKept).span<float>()[5] = 0;
    restore_checkpoint(reader, std::vector<RestoreTarget>{target_of("v", target)});
    expect_same(target, whole);
  }
  std::string data = get(bundle_data_path(prefix(), 0, 1));
  data[14] = static_cast<char>(data[14] ^ 1);
  put(bundle_data_path(prefix(), 0, 1), data);
  EXPECT_THROW(BundleReader(prefix()).read("v"), Corruption);
  rewrite(slice_key("v", right));
  EXPECT_THAT(message_of<NotFound>([&] { BundleReader(prefix()).read("v"); }), HasSubstr("a slice of it is missing"));
}

// More than one chunk for each thread, and a rest; threads make no difference.
TEST_F(Bundle, ReadsLargeTensorsOnAllThreads) {
  const Tensor large = patterned({9 * 1024 * 1024 + 77}, u8);
  BundleWriter writer(prefix());
  writer.add("large", large);
  writer.commit();
  const int before = num_threads();
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    const BundleReader reader(prefix());
    expect_same(reader.read("large"), large);
    reader.verify("large");
    const Budget small("small", 2_MiB);  // Staging of less than a piece for each thread.
    const BudgetScope use(small);
    reader.verify("large");
    EXPECT_LE(small.peak(), 2_MiB / 16);
  }
  std::string data = get(bundle_data_path(prefix(), 0, 1));
  data[8'000'000] = static_cast<char>(data[8'000'000] ^ 1);
  put(bundle_data_path(prefix(), 0, 1), data);
  EXPECT_THROW(BundleReader(prefix()).verify("large"), Corruption);
  EXPECT_THROW(BundleReader(prefix()).read("large"), Corruption);
  const BundleReader reader(prefix());
  fs::resize_file(bundle_data_path(prefix(), 0, 1), 5'000'000);  // Truncated while it is open.
  EXPECT_THROW(reader.verify("large"), Corruption);
  EXPECT_THROW(reader.read("large"), Corruption);
  set_num_threads(before);
}

TEST_F(Bundle, LeavesNothingWhenTheTensorDoesNotFit) {
  save(1.f, 1'000'000);
  const MemoryInfo before = memory();
  const Budget small("small", 1_MiB);
  {
    const BudgetScope use(small);
    EXPECT_THROW(BundleReader(prefix()).read("w"), OutOfMemory);
  }
  EXPECT_EQ(small.used(), 0u);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

}  // namespace
}  // namespace plimsoll
