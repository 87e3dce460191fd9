#include "plimsoll/io/safetensors.h"

#include <cmath>

#include "plimsoll/base/wire.h"
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
       "a repeated name"},
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

TEST_F(Safetensors, BytesOtherThan0And1BecomeBools) {
  put(directory_ / "a",
      file_of(R"({"a":{"dtype":"BOOL","shape":[8],"data_offsets":[0,8]}})", 0) + std::string("\0\1\2\377\0\1\0\0", 8));
  const SafetensorsFile file(directory_ / "a");
  for (const Tensor& tensor : {file.read("a"), file.map("a")})
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_EQ(HostRead(tensor).bytes()[i], static_cast<std::byte>(i == 1 || i == 2 || i == 3 || i == 5));
}

TEST_F(Safetensors, ReadARealFile) {
  const fs::path path = fs::path(SHARED_DATA) /
                        "fetched/safetensors/burn/crates/burn-store/safetensors-tests/tests/multi_layer/"
                        "multi_layer.safetensors";
  if (!fs::exists(path)) GTEST_SKIP() << "not available: " << path;
  const TensorTree tree = load_safetensors(path);
  EXPECT_EQ(tree["conv1.weight"].tensor().shape(), (Shape{4, 3, 3, 3}));
  EXPECT_EQ(tree["fc1.weight"].tensor().shape(), (Shape{16, 256}));
  // Convolution, normalization, relu and a linear layer on ones match PyTorch.
  const auto numbers = [&](const char* name) { return tree[name].tensor().to_vector<float>(); };
  const auto kernel = numbers("conv1.weight"), bias = numbers("conv1.bias"), scale = numbers("norm1.weight"),
             shift = numbers("norm1.bias"), mean = numbers("norm1.running_mean"),
             variance = numbers("norm1.running_var"), weights = numbers("fc1.weight"), outputs = numbers("fc1.bias");
  std::vector<float> hidden;
  for (std::size_t channel = 0; channel < 4; ++channel)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x) {
        float sum = bias[channel];
        for (std::size_t tap = 0; tap < 27; ++tap) {
          const int row = y + static_cast<int>(tap / 3 % 3) - 1, column = x + static_cast<int>(tap % 3) - 1;
          if (row >= 0 && row < 8 && column >= 0 && column < 8) sum += kernel[channel * 27 + tap];
        }
        const float deviation = std::sqrt(variance[channel] + 1e-5f);
        hidden.push_back(std::max(0.f, (sum - mean[channel]) / deviation * scale[channel] + shift[channel]));
      }
  const float expected[] = {0.04971555f,  -0.16849735f, 0.05182848f,  -0.18032673f, 0.23138367f,  0.05041867f,
                            0.13005908f,  -0.32202929f, -0.07915690f, -0.03232457f, -0.19790289f, -0.17476529f,
                            -0.19627589f, -0.21757686f, -0.31376451f, 0.08377837f};
  for (std::size_t i = 0; i < 16; ++i) {
    float sum = outputs[i];
    for (std::size_t j = 0; j < 256; ++j) sum += weights[i * 256 + j] * hidden[j];
    EXPECT_NEAR(sum, expected[i], 1e-5f) << i;
  }
  save_safetensors(directory_ / "again", tree);
  const TensorTree again = load_safetensors(directory_ / "again");
  ASSERT_TRUE(again.same_structure(tree));
  for (const std::string& name : tree.keys()) expect_same(again[name].tensor(), tree[name].tensor());
}

}  // namespace
}  // namespace plimsoll
