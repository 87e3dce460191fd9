#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "plimsoll/base/error.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/data/example_proto.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/leak_check.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(directory_); }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string write_gzip(const std::string& name, const std::string& text) const {
    gzFile file = gzopen(path(name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path(name);
  }

  fs::path directory_ = fs::temp_directory_path() / ("plimsoll_file_datasets_test_" + std::to_string(getpid()));
};

using Csv = Files;
using Idx = Files;
using TfRecord = Files;
using Npz = Files;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Corruption& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(Csv, ReadsNumbersTextAndQuotes) {
  const std::string text =
      "\xEF\xBB\xBFsize,\"town, or city\",new,price\r\n1.5,Bern,true,10\r\n\r\n+2,\"Aar\"\"au\",false,2e1\r\n"
      "-3,Bern,TRUE,30";
  for (const std::string& file : {write("a.csv", text), write_gzip("a.csv.gz", text)}) {
    const CsvTable table = load_csv(file, {.categorical = {"town, or city"}});
    EXPECT_EQ(table.feature_names, (std::vector<std::string>{"size", "town, or city", "new"}));
    EXPECT_EQ(table.target_names, std::vector<std::string>{"price"});
    EXPECT_EQ(table.features.to_vector<float>(), (std::vector<float>{1.5f, 1, 1, 2, 0, 0, -3, 1, 1}));
    EXPECT_EQ(table.targets.to_vector<float>(), (std::vector<float>{10, 20, 30}));
    EXPECT_EQ(table.categories[0].second, (std::vector<std::string>{"Aar\"au", "Bern"}));
  }
}

TEST_F(Csv, KnowsAHeaderAndTakesColumnsByNameOrNumber) {
  const std::string plain = write("plain.csv", "1;2;3\n4;5;6\n");
  const CsvTable table = load_csv(plain, {.targets = {"0", "2"}, .delimiter = ';'});
  EXPECT_EQ(table.features.to_vector<float>(), (std::vector<float>{2, 5}));
  EXPECT_EQ(table.targets.to_vector<float>(), (std::vector<float>{1, 3, 4, 6}));
  const std::string named = write("named.csv", "a,b,c\n1,2,3\n");
  EXPECT_EQ(load_csv(named, {.targets = {"a"}, .features = {"c"}}).features.to_vector<float>(),
            (std::vector<float>{3}));
  EXPECT_EQ(load_csv(write("one.csv", "7\n8\n")).features.shape(), (Shape{2, 1}));
  EXPECT_THROW(load_csv(named, {.targets = {"d"}}), NotFound);
  EXPECT_THROW(load_csv(named, {.targets = {"a", "b", "c"}}), InvalidArgument);
  EXPECT_THROW(load_csv(named, {.missing = "guess"}), InvalidArgument);
  EXPECT_THROW(load_csv(named, {.delimiter = '"'}), InvalidArgument);
  EXPECT_THROW(load_csv(path("absent.csv")), NotFound);
}

TEST_F(Csv, NumbersTheCategoriesOfOneFileAsThoseOfAnother) {
  const std::string train = write("train.csv", "town,price\nBonn,1\nEssen,2\nAachen,3\n");
  const CsvOptions options{.categorical = {"town"}};
  const CsvTable learned = load_csv(train, options);
  EXPECT_EQ(learned.features.to_vector<float>(), (std::vector<float>{1, 2, 0}));
  EXPECT_EQ(load_csv_categories(train, options), learned.categories);
  const CsvOptions known{.categories = learned.categories};
  const std::string test = write("test.csv", "town,price\nEssen,1\n");
  EXPECT_EQ(load_csv(test, known).features.to_vector<float>(), (std::vector<float>{2}));
  EXPECT_EQ(load_csv(test, known).categories, learned.categories);
  CsvOptions streamed = known;
  streamed.stream = true;
  EXPECT_EQ((*Dataset::from_csv(test, streamed).begin()).x().to_vector<float>(), (std::vector<float>{2}));
  // Columns that are not there, or only there as a number, do no harm.
  EXPECT_EQ(load_csv(write("inputs.csv", "town\nAachen\n"), {.categories = learned.categories, .all_features = true})
                .features.to_vector<float>(),
            (std::vector<float>{0}));
  EXPECT_EQ(
      load_csv(write("plain.csv", "Essen,4\n"), {.categories = {{"0", {"Essen", "Bonn"}}}}).features.to_vector<float>(),
      (std::vector<float>{0}));
  const std::string unknown = write("unknown.csv", "town,price\nEssen,1\nParis,2\n");
  EXPECT_NE(error_of([&] {
              load_csv(unknown, known);
            }).find("line 3: column 1 (\"town\"): \"Paris\" is not a known category; known are: Aachen, Bonn, Essen"),
            std::string::npos);
  EXPECT_THROW(load_csv(test, {.categories = {{"town", {"Essen", "Essen"}}}}), InvalidArgument);
}

TEST_F(Csv, TellsAHeaderByNamesAndByTextOverNumbers) {
  const auto header = [&](const std::string& text, const CsvOptions& options = {}) {
    return load_csv(write("header.csv", text), options).has_header;
  };
  EXPECT_TRUE(header("a,b\n1,2\n"));
  EXPECT_TRUE(header("a,b\n,2\n", {.missing = "zero"}));
  EXPECT_TRUE(header("a,b\n"));
  EXPECT_FALSE(header("1,2\n3,4\n"));
  EXPECT_TRUE(header("town,price\nBonn,2\n", {.categorical = {"0"}}));
  EXPECT_FALSE(header("Bonn,2\nEssen,4\n", {.categorical = {"0"}}));
  EXPECT_TRUE(header("town,kind\nBonn,flat\n", {.categorical = {"town", "kind"}}));
  // Text in a column that nobody asked for says nothing.
  EXPECT_FALSE(header("first,1,2\nsecond,3,4\n", {.targets = {"2"}, .features = {"1"}}));
  EXPECT_EQ(load_csv(path("header.csv"), {.targets = {"2"}, .features = {"1"}}).features.to_vector<float>(),
            (std::vector<float>{1, 3}));
  EXPECT_FALSE(header("1,2\n3,4\n", {.header = false}));
  EXPECT_TRUE(header("1,2\n3,4\n", {.header = true}));
  // Text in every line is neither a header nor a number.
  EXPECT_NE(error_of([&] { header("Bonn,2\nEssen,4\n"); }).find("line 1: column 1: \"Bonn\" is not a number"),
            std::string::npos);
}

TEST_F(Csv, NeverMakesUpATargetOrACategory) {
  const std::string targets = write("targets.csv", "a,y\n1,\n2,3\n"), text = write("text.csv", "a,y\n,1\nb,3\n");
  for (const char* missing : {"zero", "nan"})
    EXPECT_NE(error_of([&] { load_csv(targets, {.missing = missing}); }).find("line 2: column 2 (\"y\") is empty"),
              std::string::npos);
  EXPECT_EQ(load_csv(targets, {.missing = "drop"}).targets.to_vector<float>(), (std::vector<float>{3}));
  EXPECT_NE(error_of([&] { load_csv(text, {.categorical = {"a"}, .missing = "zero"}); }).find("0 is a category"),
            std::string::npos);
  EXPECT_TRUE(std::isnan(load_csv(text, {.categorical = {"a"}, .missing = "nan"}).features.to_vector<float>()[0]));
}

TEST_F(Csv, ReadsTablesOfOneColumn) {
  const CsvOptions all{.missing = "nan", .all_features = true};
  const auto values = load_csv(write("one.csv", "a\n1\n\"\"\n\n3\n"), all).features.to_vector<float>();
  ASSERT_EQ(values.size(), 3u);  // A quoted field that is empty is one; an empty line is none.
  EXPECT_TRUE(std::isnan(values[1]));
}

TEST_F(Csv, DealsWithWhatIsMissingAsItIsTold) {
  const std::string file = write("gaps.csv", "a,b,y\n1,,3\nNA,5,6\n7,8,9\n");
  EXPECT_THROW(load_csv(file), Corruption);
  EXPECT_EQ(load_csv(file, {.missing = "zero"}).features.to_vector<float>(), (std::vector<float>{1, 0, 0, 5, 7, 8}));
  EXPECT_TRUE(std::isnan(load_csv(file, {.missing = "nan"}).features.to_vector<float>()[1]));
  const CsvTable kept = load_csv(file, {.missing = "drop"});
  EXPECT_EQ(kept.features.to_vector<float>(), (std::vector<float>{7, 8}));
  EXPECT_EQ(kept.dropped_rows, 2u);
}

TEST_F(Csv, SaysWhereItIsDamaged) {
  LeakCheck check;
  const auto told = [&](const std::string& text) {
    const std::string file = write("bad.csv", text);
    return error_of([&] { load_csv(file); });
  };
  EXPECT_NE(told("a,b\n1,2\n3,x\n").find("line 3: column 2 (\"b\"): \"x\" is not a number"), std::string::npos);
  EXPECT_NE(told("a,b\n1,2\n3\n").find("line 3: has 1 field, the first line 2"), std::string::npos);
  EXPECT_NE(told("a,b\n1,\"2\n").find("line 2: a quote is not closed"), std::string::npos);
  EXPECT_NE(told("").find("no lines"), std::string::npos);
  EXPECT_NE(told("a,b\n1,1e99\n").find("larger than float32 holds"), std::string::npos);
  EXPECT_NE(told(std::string(3 << 20, 'x')).find("1 MiB"), std::string::npos);
  write_gzip("cut.csv.gz", std::string(100000, '1') + "\n");
  fs::resize_file(path("cut.csv.gz"), 60);
  EXPECT_THROW(load_csv(path("cut.csv.gz")), Corruption);
  check.expect_none();
}

TEST_F(Csv, IsADatasetInMemoryOrAStream) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 10; ++i)
    text += std::to_string(i) + "," + std::to_string(i * 2) + "," + std::to_string(-i) + "\n";
  const std::string file = write("rows.csv", text);
  LeakCheck check;
  for (const bool stream : {false, true}) {
    const Dataset data = Dataset::from_csv(file, {.stream = stream});
    EXPECT_EQ(data.size(), 10u);
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<float> x, y;
      for (const auto& [inputs, targets] : data.batch(4)) {
        for (const float value : inputs.to_vector<float>()) x.push_back(value);
        for (const float value : targets.to_vector<float>()) y.push_back(value);
      }
      EXPECT_EQ(x.size(), 20u);
      EXPECT_EQ(x[19], 18.f);
      EXPECT_EQ(y[9], -9.f);
    }
    const auto first = data.begin();
    EXPECT_EQ((*first).x().shape(), (Shape{2}));
  }
  check.expect_none();
}

TEST_F(Csv, StreamsStayWithinABudget) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "1,2,3,4\n";
  const std::string file = write("long.csv", text);
  const Budget budget("stream", 32 << 10);
  const BudgetScope use(budget);
  EXPECT_THROW(load_csv(file), OutOfMemory);
  std::size_t rows = 0;
  for (const auto& [x, y] : Dataset::from_csv(file, {.stream = true}).batch(100).prefetch(2)) rows += x.size() / 3;
  EXPECT_EQ(rows, 20000u);
  EXPECT_GE(budget.peak(), 1600u);  // A batch at least: the thread that prefetches, which makes them all, is charged.
  EXPECT_EQ(budget.used(), 0u);
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

TEST_F(Idx, ReadsImagesAndLabels) {
  const std::string images = std::string("\0\0\x08\3", 4) + big_endian(2) + big_endian(2) + big_endian(2) + "abcdefgh";
  const std::string labels = std::string("\0\0\x0C\1", 4) + big_endian(2) + big_endian(7) + big_endian(258);
  const Dataset data = Dataset::from_idx(write_gzip("images.gz", images), write("labels", labels));
  for (const auto& [x, y] : data.batch(2)) {
    EXPECT_EQ(x.shape(), (Shape{2, 2, 2}));
    EXPECT_EQ(x.to_vector<std::uint8_t>()[7], 'h');
    EXPECT_EQ(y.to_vector<std::int32_t>(), (std::vector<std::int32_t>{7, 258}));
  }
  EXPECT_THROW(load_idx(path("absent")), NotFound);
  for (const std::string& bad : {images.substr(0, 3), images.substr(0, 10), images.substr(0, 20), images + "x",
                                 std::string("\0\1\x08\1", 4), std::string("\0\0\x07\1", 4) + big_endian(1) + "a",
                                 std::string("\0\0\x08\2", 4) + big_endian(0xFFFFFFFF) + big_endian(0xFF)})
    EXPECT_THROW(load_idx(write("bad", bad)), Corruption);
}

TEST_F(Idx, ReadsFashionMnistsLabels) {
  const fs::path real = fs::path(SHARED_DATA) / "fetched/idx";
  if (!fs::exists(real)) GTEST_SKIP() << "no " << real;
  for (const auto& entry : fs::recursive_directory_iterator(real)) {
    if (entry.path().extension() != ".gz") continue;
    const Tensor labels = load_idx(entry.path().string());
    EXPECT_EQ(labels.shape(), (Shape{10000}));
    const auto values = labels.to_vector<std::uint8_t>();
    EXPECT_EQ((std::vector<std::uint8_t>(values.begin(), values.begin() + 5)),
              (std::vector<std::uint8_t>{9, 2, 1, 1, 6}));
  }
}

TEST_F(Npz, ArraysAreFoundByTheirUsualNames) {
  save_npz(path("a.npz"), {{"x_train", ones({3, 2})}, {"y_train", zeros({3})}, {"other", ones({4})}});
  EXPECT_EQ(Dataset::from_npz(path("a.npz")).size(), 3u);
  EXPECT_EQ(Dataset::from_npz(path("a.npz"), "other", "other").size(), 4u);
  EXPECT_THROW(Dataset::from_npz(path("a.npz"), "z"), NotFound);
  save_npy(path("x.npy"), ones({5, 2}));
  EXPECT_EQ(Dataset::from_npy(path("x.npy")).size(), 5u);
}

// The bytes of protocol buffers, by hand.
std::string field(int number, const std::string& content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
}
std::string feature(const std::string& name, int kind, const std::string& list) {
  return field(1, field(1, name) + field(2, field(kind, list)));
}
std::string example_bytes() {
  const float values[] = {1.5f, -2.f};
  const std::string floats(reinterpret_cast<const char*>(values), sizeof(values));
  return field(1, feature("x", 2, field(1, floats)) + feature("raw", 1, field(1, "hi!")) +
                      feature("y", 3, field(1, std::string("\x05\xAC\x02", 3))) +
                      feature("single", 3, std::string("\x08\x07", 2)));
}

TEST_F(TfRecord, ExamplesArePartsOfRecords) {
  const std::string bytes = example_bytes();
  const auto features = parse_example(bytes);
  EXPECT_EQ(features.size(), 4u);
  const Tensor y = zeros({2}, i64), x = zeros({2}), raw = zeros({3}, u8), single = zeros({1}, i32);
  EXPECT_TRUE(features.at("y").copy_to(HostWrite(y)));
  EXPECT_EQ(y.to_vector<std::int64_t>(), (std::vector<std::int64_t>{5, 300}));
  EXPECT_TRUE(features.at("x").copy_to(HostWrite(x)));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1.5f, -2.f}));
  EXPECT_TRUE(features.at("raw").copy_to(HostWrite(raw)));
  EXPECT_TRUE(features.at("single").copy_to(HostWrite(single)));
  EXPECT_EQ(single.item<int>(), 7);
  EXPECT_FALSE(features.at("raw").copy_to(HostWrite(x)));
  EXPECT_FALSE(features.at("x").copy_to(HostWrite(single)));
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) EXPECT_THROW(parse_example(bytes.substr(0, cut)), Corruption);
}

TEST_F(TfRecord, RealFilesAreRead) {
  const fs::path root = fs::path(SHARED_DATA) / "fetched/google_research";
  if (!fs::exists(root)) GTEST_SKIP() << "no " << root;
  std::size_t seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().string().find("logit_adjustment") == std::string::npos || !entry.is_regular_file()) continue;
    try {
      const Dataset data = Dataset::from_tfrecords({entry.path().string()}, {.inputs = {{"absent", {1}}}});
      EXPECT_THROW(data.begin(), Corruption);
      ++seen;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(seen, 0u);
  EXPECT_THROW(Dataset::from_tfrecords({}, {}), InvalidArgument);
  EXPECT_THROW(Dataset::from_tfrecords({path("absent")}, {.inputs = {{"x", {1}}}}).begin(), NotFound);
}

TEST(Window, TakesExamplesAfterOneAnother) {
  const Tensor x = constant({0.f, 1.f, 2.f, 3.f, 4.f});
  const Dataset rows = Dataset::from_tensors(x);
  const auto windows_of = [](const Dataset& data) {
    std::vector<std::vector<float>> result;
    for (const Example& each : data) result.push_back(each.x().to_vector<float>());
    return result;
  };
  using Windows = std::vector<std::vector<float>>;
  EXPECT_EQ(windows_of(rows.window(3)), (Windows{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}}));
  EXPECT_EQ(rows.window(3).size(), 3u);
  EXPECT_EQ(windows_of(rows.window(2, {.shift = 3})), (Windows{{0, 1}, {3, 4}}));
  EXPECT_EQ(windows_of(rows.window(2, {.shift = 2, .drop_remainder = false})), (Windows{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(rows.window(2, {.shift = 2, .drop_remainder = false}).size(), 3u);
  EXPECT_THROW(rows.window(0), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
