#include "plimsoll/io/npz.h"

#include <zlib.h>

#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/npy_header.h"
#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string npy(std::string_view dictionary, std::string_view data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, '\0'};
  if (version == 1)
    append_number(file, static_cast<std::uint16_t>(dictionary.size()));
  else
    append_number(file, static_cast<std::uint32_t>(dictionary.size()));
  return file + std::string(dictionary) + std::string(data);
}

// An archive of one deflated member, with a claimed size; the directory names it `times` times.
std::string deflated_zip(const std::string& name, const std::string& content, std::uint32_t claimed,
                         std::uint16_t times = 1) {
  std::string packed(content.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const auto crc = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
  const auto halves = [](std::string& out, std::initializer_list<std::uint16_t> values) {
    for (auto value : values) append_number(out, value);
  };
  const auto words = [](std::string& out, std::initializer_list<std::uint32_t> values) {
    for (auto value : values) append_number(out, value);
  };
  const auto packed_size = static_cast<std::uint32_t>(packed.size());
  const auto name_size = static_cast<std::uint16_t>(name.size());
  std::string file, central;
  words(file, {0x04034b50});
  halves(file, {20, 0, 8, 0, 33});
  words(file, {crc, packed_size, claimed});
  halves(file, {name_size, 0});
  file += name + packed;
  for (int time = 0; time < times; ++time) {
    words(central, {0x02014b50});
    halves(central, {20, 20, 0, 8, 0, 33});
    words(central, {crc, packed_size, claimed});
    halves(central, {name_size, 0, 0, 0, 0});
    words(central, {0, 0});
    std::string own = name;
    own[0] = static_cast<char>(own[0] + time);
    central += own;
  }
  const auto offset = static_cast<std::uint32_t>(file.size());
  file += central;
  words(file, {0x06054b50});
  halves(file, {0, 0, times, times});
  words(file, {static_cast<std::uint32_t>(central.size()), offset});
  halves(file, {0});
  return file;
}

class Npz : public FileFixture {};

TEST_F(Npz, KeepsEveryDtypeAndShape) {
  TensorTree tree;
  for (const DType dtype : kAllDTypes)
    for (const Shape& shape : {Shape::scalar(), Shape{0, 3}, Shape{5}, Shape{2, 3, 4}, Shape{100000}}) {
      const Tensor tensor = patterned(shape, dtype);
      tree.insert(to_string(dtype) + shape.to_string(), tensor);
      save_npy(directory_ / "one.npy", tensor);
      expect_same(load_npy(directory_ / "one.npy"), tensor);
    }
  save_npz(directory_ / "a.npz", tree);
  const TensorTree loaded = load_npz(directory_ / "a.npz");
  ASSERT_EQ(loaded.keys(), tree.keys());
  for (const std::string& name : tree.keys()) expect_same(loaded[name].tensor(), tree[name].tensor());
  EXPECT_THAT(names(), ElementsAre("a.npz", "one.npy"));
  EXPECT_EQ(NpzFile(directory_ / "a.npz").entry("float32[2, 3, 4]").size, 96u);
  save_npz(directory_ / "tree.npz", {{"layers", {tree[0], tree[1]}}});
  EXPECT_EQ(load_npz(directory_ / "tree.npz")["layers"].size(), 2u);
}

TEST_F(Npz, HeadersAreThoseOfNumpy) {
  const std::string header = format_npy_header(f32, {2, 3});
  EXPECT_EQ(header.size(), 128u);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00v\x00", 10));
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  "));
  EXPECT_EQ(header.back(), '\n');
}

TEST_F(Npz, ReadsAllVersionsOrdersAndSpellings) {
  const std::string ordered("\0\0\0\1\0\2\0\3\0\4\0\5", 12);
  const std::string big = npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }", ordered);
  EXPECT_EQ(load_npy(bytes_of(big)).to_vector<std::int16_t>(), (std::vector<std::int16_t>{0, 1, 2, 3, 4, 5}));
  for (const char version : {1, 2, 3}) {
    const std::string file =
        npy("{\"shape\":(2,3L),'fortran_order':True,'descr':'|u1'} \n", std::string("\0\3\1\4\2\5", 6), version);
    EXPECT_EQ(load_npy(bytes_of(file)).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5}));
  }
  const std::string flag = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "\x7f");
  EXPECT_EQ(load_npy(bytes_of(flag)).item<bool>(), true);
  // Three axes in Fortran order, more than one piece.
  std::string data;
  for (int k = 0; k < 50; ++k)
    for (int j = 0; j < 60; ++j)
      for (int i = 0; i < 40; ++i) append_number(data, i * 3000 + j * 50 + k);
  const std::string file = npy("{'descr': '<i4', 'fortran_order': True, 'shape': (40, 60, 50), }", data);
  const std::vector<int> read = load_npy(bytes_of(file)).to_vector<int>();
  for (int i = 0; i < 120000; ++i) ASSERT_EQ(read[static_cast<std::size_t>(i)], i);
}

TEST_F(Npz, ReadsDeflatedMembersAndRefusesBombs) {
  std::string content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (50000,), }", std::string(200000, '\0'));
  const auto size = static_cast<std::uint32_t>(content.size());
  const std::string good = deflated_zip("x.npy", content, size);
  EXPECT_EQ(NpzFile(bytes_of(good)).read("x").size(), 50000u);
  EXPECT_TRUE(NpzFile(bytes_of(good)).entry("x").deflated);
  const std::string lying = deflated_zip("x.npy", content, 0xfffffff0u);
  EXPECT_THROW(NpzFile(bytes_of(lying)).read("x"), Corruption);
  const std::string longer = deflated_zip("x.npy", content, size + 1000);
  EXPECT_THAT(message_of<Corruption>([&] { NpzFile(bytes_of(longer)).read("x"); }), HasSubstr("too early"));
  std::string varied;
  for (std::uint32_t i = 0; i < 400; ++i) varied.push_back(static_cast<char>(i * 2654435761u >> 24));
  content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (100,), }", varied);
  const std::string small = deflated_zip("x.npy", content, static_cast<std::uint32_t>(content.size()));
  EXPECT_EQ(NpzFile(bytes_of(small)).read("x").size(), 100u);
  for (std::size_t at = 35; at < small.size() - 75; ++at) {  // Its compressed bytes.
    std::string flipped = small;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    EXPECT_THROW(NpzFile(bytes_of(flipped)).read("x"), Error) << at;
  }
}

TEST_F(Npz, RefusesMembersThatOverlap) {
  const std::string content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4, ), }\n", std::string(16, 'x'));
  const auto size = static_cast<std::uint32_t>(content.size());
  EXPECT_NO_THROW(NpzFile(bytes_of(deflated_zip("a.npy", content, size))));
  EXPECT_THAT(message_of<Corruption>([&] { NpzFile(bytes_of(deflated_zip("a.npy", content, size, 2))); }),
              testing::AllOf(HasSubstr("begins at 0; they overlap"), HasSubstr("offset 0")));
  // A member whose own header makes its data reach into the directory.
  std::string longer = deflated_zip("a.npy", content, size);
  longer[28] = 1;  // An extra field with one byte.
  EXPECT_THAT(message_of<Corruption>([&] { NpzFile(bytes_of(longer)).read("a"); }), HasSubstr("where the next begins"));
}

TEST_F(Npz, RefusesObjectsAndOtherDtypes) {
  for (const char* descr : {"'|O'", "[('a', '<f4')]", "'<U8'", "'<c8'", "'<u4'"}) {
    const std::string file =
        npy(std::string("{'descr': ") + descr + ", 'fortran_order': False, 'shape': (1,), }", std::string(64, 'x'));
    EXPECT_THROW(load_npy(bytes_of(file)), Unsupported) << descr;
  }
  const Tensor x = tensor_of<float>({1}, {1});
  EXPECT_THROW(save_npz(directory_ / "a", x), InvalidArgument);
  EXPECT_THROW(save_npz(directory_ / "a", {{std::string(70000, 'n'), x}}), InvalidArgument);
  EXPECT_THROW(load_npz(directory_ / "a"), NotFound);
  save_npz(directory_ / "a", {{"x", x}});
  EXPECT_THROW(NpzFile(directory_ / "a").read("y"), NotFound);
  save_npz(directory_ / "two", {{"xx", x}, {"xy", x}});
  std::string twice = get(directory_ / "two");
  for (std::size_t at = twice.find("xy.npy"); at != std::string::npos; at = twice.find("xy.npy", at))
    twice[at + 1] = 'x';
  EXPECT_THAT(message_of<Corruption>([&] { NpzFile(bytes_of(twice)).names(); }), HasSubstr("\"xx.npy\" appears twice"));
}

TEST_F(Npz, DescribesAnArrayWithoutReadingIt) {
  save_npy(directory_ / "x.npy", patterned({3, 5}, i16));
  const NpyEntry entry = npy_entry(directory_ / "x.npy");
  EXPECT_EQ(entry.name, "x");
  EXPECT_EQ(entry.dtype, i16);
  EXPECT_EQ(entry.shape, (Shape{3, 5}));
  EXPECT_EQ(entry.size, 30u);
  put(directory_ / "c.npy", npy("{'descr': '<c8', 'fortran_order': True, 'shape': (2,), }", std::string(16, 'x')));
  EXPECT_EQ(npy_entry(directory_ / "c.npy").descr, "<c8");
  EXPECT_EQ(npy_entry(directory_ / "c.npy").size, 16u);
  EXPECT_THROW(npy_entry(directory_ / "absent.npy"), NotFound);
}

TEST_F(Npz, RefusesDamage) {
  const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  for (const std::string& dictionary :
       {head + "(3,), }", head + "(9999999999999999999,), }", head + "(4611686018427387904, 4611686018427387904), }",
        head + "(-1,), }", head + "(2,) ", head + "(2,), 'x': 1}", head + "(2,), 'shape': (2,)}", std::string("{}"),
        std::string(""), std::string("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}")}) {
    const std::string file = npy(dictionary, std::string(8, 'x'));
    EXPECT_THROW(load_npy(bytes_of(file)), Corruption) << dictionary;
  }
  const std::string whole = npy(head + "(2,), }", std::string(8, 'x'));
  EXPECT_EQ(load_npy(bytes_of(whole)).size(), 2u);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(load_npy(bytes_of(std::string_view(whole).substr(0, size))), Corruption) << size;

  save_npz(directory_ / "a.npz", {{"x", tensor_of<float>({2}, {1, 2})}, {"y", tensor_of<float>({1}, {3})}});
  const std::string archive = get(directory_ / "a.npz");
  const auto read_all = [](const std::string& bytes) {
    const NpzFile file(bytes_of(bytes));
    for (const std::string& name : file.names()) file.read(name);
    return file.names().size();
  };
  EXPECT_EQ(read_all(archive), 2u);
  for (std::size_t size = 0; size < archive.size(); ++size) EXPECT_THROW(read_all(archive.substr(0, size)), Corruption);
  for (std::size_t bit = 0; bit < 8 * archive.size(); ++bit) {  // Found, or in unused fields such as dates.
    std::string flipped = archive;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    try {
      read_all(flipped);
    } catch (const Error&) {
    }
  }
}

TEST_F(Npz, ReadsRealFiles) {
  const fs::path fetched = fs::path(SHARED_DATA) / "fetched";
  if (!fs::exists(fetched)) GTEST_SKIP() << "not available: " << fetched;
  const Tensor test = load_npy(fetched / "google_research/KNF/data/sample_data/test.npy");
  EXPECT_EQ(test.shape(), (Shape{10, 13}));
  EXPECT_NEAR(test.at<double>({0, 0}), 35397.16, 0.01);
  const Tensor embedding = load_npy(fetched / "google_research/fvlm/data/r50_bg_empty_embed.npy");
  EXPECT_EQ(embedding.shape(), (Shape{2, 1024}));
  EXPECT_NEAR(embedding.at<float>({0, 0}), 0.00871793, 1e-7);
  EXPECT_EQ(load_npy(fetched / "google_research/lila/splits/novel_cls.npy").at<std::int64_t>({0}), 20);
  const NpzFile archive(fetched / "google_research/bnn_hmc/notebooks/synth_reg_data.npz");
  for (const std::string& name : archive.names()) EXPECT_GT(archive.read(name).size(), 0u);
  std::size_t refused = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fetched / "npy")) {
    if (entry.path().extension() == ".npy") {
      EXPECT_THROW(load_npy(entry.path()), Unsupported) << entry.path();
      ++refused;
    }
    if (entry.path().extension() == ".npz") {
      EXPECT_THROW(load_npz(entry.path()), Unsupported) << entry.path();
      ++refused;
    }
  }
  EXPECT_EQ(refused, 5u);
}

}  // namespace
}  // namespace plimsoll
