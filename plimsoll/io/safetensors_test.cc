#include "plimsoll/io/safetensors.h"

#include "plimsoll/io/internal/wire.h"
#include "plimsoll/io/io_testing.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Safetensors : public FileFixture {
 protected:
  static std::string file_of(std::string_view header, std::size_t data_bytes) {
    std::string file;
    append_number(file, std::uint64_t{header.size()});
    return file + std::string(header) + std::string(data_bytes, '\1');
  }
  static std::string refusal(std::string_view header, std::size_t data_bytes) {
    const std::string file = file_of(header, data_bytes);
    return message_of<Corruption>([&] { SafetensorsFile read(std::as_bytes(std::span(file))); });
  }
};

TEST_F(Safetensors, KeepEveryDtypeShapeAndMetadata) {
  TensorTree tree;
  for (const DType dtype : kAllDTypes)
    for (const Shape& shape : {Shape::scalar(), Shape{0, 3}, Shape{5}, Shape{2, 3, 4}})
      tree.insert(to_string(dtype) + shape.to_string(), patterned(shape, dtype));
  save_safetensors(directory_ / "a.safetensors", tree, {{"format", "pt"}, {"note", "\"quoted\" \xc3\xa9"}});
  const TensorTree loaded = load_safetensors(directory_ / "a.safetensors");
  ASSERT_EQ(loaded.keys(), tree.keys());
  const SafetensorsFile file(directory_ / "a.safetensors");
  for (const std::string& name : tree.keys()) {
    SCOPED_TRACE(name);
    expect_same(loaded[name].tensor(), tree[name].tensor());
    expect_same(file.map(name), tree[name].tensor());
  }
  EXPECT_EQ(file.metadata().at("note"), "\"quoted\" \xc3\xa9");
  EXPECT_THAT(names(), ElementsAre("a.safetensors"));
}

TEST_F(Safetensors, MapWithoutMemory) {
  save_safetensors(directory_ / "a", {{"x", patterned({1024, 1024}, f32)}, {"y", patterned({3}, u8)}});
  const Budget budget("small", 64_KiB);
  const BudgetScope use(budget);
  Tensor mapped;
  {
    const SafetensorsFile file(directory_ / "a");
    EXPECT_THROW(file.read("x"), OutOfMemory);
    mapped = file.map("x");
  }
  fs::remove(directory_ / "a");
  EXPECT_EQ(mapped.view().bytes()[4096 * 1024 - 1], static_cast<std::byte>((4096 * 1024 - 1) * 37 + 11));
}

TEST_F(Safetensors, RefuseEveryBrokenRule) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string whole = file_of(good, 8);
  EXPECT_EQ(SafetensorsFile(std::as_bytes(std::span(whole))).entries().size(), 1u);
  const std::string padded = file_of(good + "   ", 8);
  EXPECT_EQ(SafetensorsFile(std::as_bytes(std::span(padded))).entries().size(), 1u);
  const std::pair<const char*, const char*> cases[] = {
      {R"( {})", "begin with {"},
      {R"({"a":)", "not JSON"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x)", "not JSON"},
      {"{\"\xff\":1}", "not JSON"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
       "twice"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "96 bits"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "begin and end"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "where 0 is next"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "where 8 is next"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "after the last tensor"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "expected 16 bytes"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,8]}})",
       "than can exist"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", "2^63"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "negative"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "not whole"},
      {R"({"a":{"dtype":"Q7","shape":[2],"data_offsets":[0,8]}})", "unknown dtype"},
      {R"({"a":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}})", "60 bits"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "no dtype"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", "unknown key"},
      {R"({"a":[1]})", "a list"},
      {R"({"__metadata__":{"a":1}})", "a number"},
      {R"([])", "begin with {"},
  };
  for (const auto& [header, expected] : cases) EXPECT_THAT(refusal(header, 8), HasSubstr(expected)) << header;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_THROW(SafetensorsFile(std::as_bytes(std::span(cut))), Corruption) << size;
  }
  std::string huge = whole;
  huge.replace(0, 8, std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
  EXPECT_THROW(SafetensorsFile(std::as_bytes(std::span(huge))), Corruption);
}

TEST_F(Safetensors, RefuseWhatCannotBeWrittenOrRead) {
  const Tensor x = tensor_of<float>({1}, {1});
  EXPECT_THROW(save_safetensors(directory_ / "a", x), InvalidArgument);
  EXPECT_THROW(save_safetensors(directory_ / "a", {{"__metadata__", x}}), InvalidArgument);
  EXPECT_THROW(save_safetensors(directory_ / "a", {{"\xff", x}}), InvalidArgument);
  EXPECT_THROW(save_safetensors(directory_ / "a", {{"x", x}}, {{"k", "\xff"}}), InvalidArgument);
  EXPECT_THROW(save_safetensors(directory_ / "none" / "a", {{"x", x}}), NotFound);
  EXPECT_THROW(load_safetensors(directory_ / "a"), NotFound);
  const std::string file = file_of(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", 8);
  const SafetensorsFile read(std::as_bytes(std::span(file)));
  EXPECT_THAT(message_of<Unsupported>([&] { read.read("a"); }), HasSubstr("F8_E4M3"));
  EXPECT_THROW(read.read("b"), NotFound);
}

TEST_F(Safetensors, ReadARealFile) {
  const fs::path path = fs::path(SHARED_DATA) /
                        "fetched/safetensors/burn/crates/burn-store/safetensors-tests/tests/multi_layer/"
                        "multi_layer.safetensors";
  if (!fs::exists(path)) GTEST_SKIP() << "not at hand: " << path;
  const TensorTree tree = load_safetensors(path);
  EXPECT_EQ(tree["conv1.weight"].tensor().shape(), (Shape{4, 3, 3, 3}));
  EXPECT_EQ(tree["fc1.weight"].tensor().shape(), (Shape{16, 256}));
  save_safetensors(directory_ / "again", tree);
  const TensorTree again = load_safetensors(directory_ / "again");
  ASSERT_TRUE(again.same_structure(tree));
  for (const std::string& name : tree.keys()) expect_same(again[name].tensor(), tree[name].tensor());
}

}  // namespace
}  // namespace plimsoll
