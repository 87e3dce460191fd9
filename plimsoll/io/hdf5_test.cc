#include "plimsoll/io/hdf5.h"

#include "plimsoll/base/wire.h"
#include "plimsoll/io/hdf5_writer.h"
#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

class Hdf5 : public FileFixture {
 protected:
  static std::string fixture(const std::string& name) { return std::string(TEST_DATA) + "/hdf5/" + name; }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  // What the file says when it is read whole: "" when that works.
  static std::string read_all(std::string_view bytes) {
    try {
      const Hdf5File file(std::as_bytes(std::span(bytes)));
      for (const Hdf5Entry& entry : file.entries()) file.read(entry.name);
    } catch (const Corruption& error) {
      return error.what();
    } catch (const Unsupported& error) {
      return error.what();
    }
    return "";
  }
};

// tools/golden_keras3 fills arrays with these.
float value_at(std::size_t i) { return static_cast<float>(static_cast<int>(i * 7 % 23) - 11); }

TEST_F(Hdf5, RestoresEveryDTypeAndShape) {
  TensorTree tree;
  for (const DType dtype : kAllDTypes) tree.insert(dtype_name(dtype), patterned({3, 5}, dtype));
  tree.insert("scalar", patterned(Shape::scalar(), f32));
  tree.insert("empty", patterned({0, 4}, f64));
  TensorTree inner;
  inner.insert("deep", patterned({2, 1, 3}, i64));
  tree.insert("group", inner);
  save_hdf5(path("all.h5"), tree);
  const TensorTree back = load_hdf5(path("all.h5"));
  ASSERT_TRUE(back.same_structure(tree));
  const std::vector<Tensor> expected = tree.flatten(), actual = back.flatten();
  for (std::size_t i = 0; i < expected.size(); ++i) expect_same(actual[i], expected[i]);
  EXPECT_EQ(names(), std::vector<std::string>{"all.h5"});
}

TEST_F(Hdf5, KeepsManyNamesInOneGroup) {
  Hdf5Writer writer("test");
  for (int i = 0; i < 1000; ++i) writer.add("optimizer/vars/" + std::to_string(i), patterned({1}, i32));
  AtomicFile file(path("many.h5"));
  writer.for_each_part([&](std::span<const std::byte> part) { file.write(part); });
  file.commit();
  const Hdf5File back(path("many.h5"));
  EXPECT_EQ(back.entries().size(), 1000u);
  EXPECT_TRUE(back.has("optimizer/vars/999"));
  EXPECT_FALSE(back.has("optimizer/vars/1000"));
}

TEST_F(Hdf5, KeepsTextOfGroups) {
  Hdf5Writer writer("test");
  writer.add("vars/0", patterned({2}, f32));
  writer.add_group("nothing");
  writer.set_text("vars", "name", "dense_1");
  writer.set_text("", "empty", "");
  AtomicFile file(path("text.h5"));
  writer.for_each_part([&](std::span<const std::byte> part) { file.write(part); });
  file.commit();
  const Hdf5File back(path("text.h5"));
  EXPECT_EQ(back.text("vars", "name"), "dense_1");
  EXPECT_EQ(back.text("", "empty"), "");
  EXPECT_EQ(back.groups(), (std::vector<std::string>{"nothing", "vars"}));
  EXPECT_EQ(back.text_names("vars"), std::vector<std::string>{"name"});
  EXPECT_TRUE(back.text_names("nothing").empty());
  EXPECT_THAT(message_of<NotFound>([&] { back.text("vars", "other"); }), testing::HasSubstr("no attribute \"other\""));
  EXPECT_THAT(message_of<NotFound>([&] { back.read("vars/1"); }), testing::HasSubstr("no dataset \"vars/1\""));
}

TEST_F(Hdf5, RefusesNamesThatAreNone) {
  Hdf5Writer writer("save");
  const Tensor x = patterned({2}, f32);
  writer.add("a/b", x);
  for (const char* name : {"", "a", "a/b", "a/b/c", "a//c", "/a"})
    EXPECT_THROW(writer.add(name, x), InvalidArgument) << name;
  EXPECT_THROW(writer.set_text("", "long", std::string(70'000, 'x')), InvalidArgument);
  EXPECT_THROW(save_hdf5(path("no.h5"), x), InvalidArgument);
  EXPECT_TRUE(names().empty());
}

TEST_F(Hdf5, MapsInPlaceWithoutACharge) {
  save_hdf5(path("map.h5"), {{"w", patterned({64, 1024}, f32)}});
  const std::size_t before = memory().num_bytes;
  const Tensor mapped = Hdf5File(path("map.h5")).map("w");  // The file is closed; the pages stay.
  EXPECT_EQ(memory().num_bytes, before);
  expect_same(mapped, patterned({64, 1024}, f32));
  EXPECT_EQ(memory().num_bytes, before);
}

TEST_F(Hdf5, ReadsWhatH5pyWrites) {
  const Hdf5File file(fixture("plain.h5"));
  for (const char* entry :
       {"f4", "group/chunked", "group/deflated", "group/shuffled", "group/checked", "compact", "big"}) {
    SCOPED_TRACE(entry);
    const Tensor x = file.read(entry);
    ASSERT_EQ(x.dtype(), f32);
    ASSERT_EQ(x.shape(), Shape({7, 5}));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x.data<float>()[i], value_at(i)) << i;
    expect_same(file.map(entry), x);
  }
  EXPECT_EQ(file.read("bools").data<bool>()[1], true);
  EXPECT_EQ(file.read("i8").dtype(), i8);
  EXPECT_EQ(file.read("f16").dtype(), f16);
  EXPECT_EQ(file.read("bf16").dtype(), bf16);
  EXPECT_EQ(file.read("scalar").shape(), Shape::scalar());
  EXPECT_EQ(file.read("empty").shape(), Shape({0, 3}));
  EXPECT_EQ(file.text("", "long").size(), 5000u);
  EXPECT_EQ(file.text("group", "short"), "n\xc3\xa9");
  EXPECT_EQ(file.texts("", "list"), (std::vector<std::string>{"a", "bcd", ""}));
  EXPECT_THROW(file.text("", "list"), NotFound);
  EXPECT_EQ(file.texts("", "long list"), (std::vector<std::string>{"first", "second"}));
  EXPECT_FALSE(file.has_text("", "number"));
  EXPECT_THROW(file.read("u64"), Unsupported);
  EXPECT_THROW(file.read("complex"), Unsupported);
}

TEST_F(Hdf5, ReadsSmallFilesInTheNewestForm) {
  const Hdf5File file(fixture("latest.h5"));
  const Tensor x = file.read("f4");
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x.data<float>()[i], value_at(i)) << i;
  EXPECT_EQ(file.read("bools").data<bool>()[1], true);
  EXPECT_EQ(file.text("", "long").size(), 5000u);
}

TEST_F(Hdf5, RefusesWhatIsNotRead) {
  for (const char* name : {"soft_link.h5", "unwritten.h5", "dense.h5", "typed.h5", "user_block.h5", "lzf.h5"}) {
    const std::string said = read_all(get(fixture(name)));
    EXPECT_NE(said, "") << name;
    EXPECT_THAT(said, testing::HasSubstr("file \"memory\"")) << name;
  }
}

TEST_F(Hdf5, NamesTheOffsetOfDamage) {
  const std::string whole = get(fixture("plain.h5"));
  EXPECT_EQ(read_all(whole), std::string("file \"memory\": dataset \"complex\": its type of class 6 is not supported"));
  EXPECT_THAT(read_all("PK"), testing::HasSubstr("is not an HDF5 file (offset 0)"));
  EXPECT_THAT(read_all(""), testing::HasSubstr("is not an HDF5 file (offset 0)"));
  std::string other = whole;
  other[8] = 9;
  EXPECT_THAT(read_all(other), testing::HasSubstr("superblock of version 9"));
  other = whole;
  other[13] = 4;
  EXPECT_THAT(read_all(other), testing::HasSubstr("addresses of 4"));
  EXPECT_THAT(read_all(whole.substr(0, 200)), testing::HasSubstr("offset"));
}

// Every byte changed, every length: read or refused, never more memory than the file could hold.
TEST_F(Hdf5, SurvivesDamageAnywhere) {
  save_hdf5(path("small.h5"),
            {{"a", patterned({4}, f32)}, {"g", {{"b", patterned({2, 2}, i64)}, {"c", patterned({3}, boolean)}}}});
  for (const std::string& whole : {get(path("small.h5")), get(fixture("small.h5"))}) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ change);
        read_all(damaged);
      }
      if (i % 7 == 0) read_all(whole.substr(0, i));
    }
  }
}

// A group whose only link leads back to it, and one whose tree has itself as its child.
TEST_F(Hdf5, RefusesCycles) {
  save_hdf5(path("x.h5"), {{"g", {{"x", patterned({1}, f32)}}}});
  const std::string whole = get(path("x.h5"));
  const auto number = [&](std::size_t at) { return load_number<std::uint64_t>(whole.data() + at); };
  const std::uint64_t root = number(64), tree = number(80);
  std::string looped = whole;
  const std::uint64_t list = number(tree + 32);
  std::memcpy(looped.data() + list + 16, &root, 8);
  EXPECT_THAT(read_all(looped), testing::HasSubstr("used twice"));
  looped = whole;
  looped[tree + 5] = 1;  // A level above the lists.
  std::memcpy(looped.data() + tree + 32, &tree, 8);
  EXPECT_THAT(read_all(looped), testing::HasSubstr("used twice"));
}

// A dataset in a form that is not read claims 768 PiB: it is refused before memory is asked for.
TEST_F(Hdf5, TakesNoMemoryForALayoutThatIsNotRead) {
  const Hdf5File file(std::string(TEST_DATA) + "/fuzz/hdf5_fuzz/huge_unread_layout.h5");
  std::size_t refused = 0;
  for (const Hdf5Entry& entry : file.entries()) {
    try {
      file.read(entry.name);
    } catch (const Unsupported&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace plimsoll
