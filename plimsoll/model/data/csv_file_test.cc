#include "plimsoll/model/data/csv_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/data/csv_field.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

class CsvFileTest : public testing::Test {
 protected:
  CsvFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "csv_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~CsvFileTest() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text) const {
    const std::string path = (folder_ / "file.csv").string();
    std::ofstream(path) << text;
    return path;
  }
  std::string numbers(int rows) const {
    std::string text = "a,b\n";
    for (int i = 0; i < rows; ++i) text += std::to_string(i) + "," + std::to_string(10 * i) + "\n";
    return write(text);
  }
  std::filesystem::path folder_;
};

std::vector<float> all_in(const Dataset& batches, bool targets = false) {
  std::vector<float> result;
  for (const Example& batch : batches) {
    const auto values = (targets ? batch.y() : batch.x()).to_vector<float>();
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

TEST(CsvField, ReadsDates) {
  EXPECT_EQ(date_in("1970-01-02"), 86400);
  EXPECT_EQ(date_in("2024-03-01 12:30"), 1709296200);
  EXPECT_EQ(date_in("2024-03-01T12:30:15.5Z"), 1709296215.5);
  EXPECT_EQ(date_in("2024-03-01T12:30:00+01:00"), 1709296200 - 3600);
  EXPECT_EQ(date_in("2024/3/1"), date_in("2024-03-01"));
  EXPECT_EQ(date_in("01.03.2024"), date_in("2024-03-01"));
  EXPECT_EQ(date_in("03/01/2024"), date_in("2024-03-01"));
  for (const char* text : {"", "1.5", "2024", "20240301", "2024-13-01", "2024-02-30", "1-2-3", "2024-03-01x", "1.2.3",
                           "2024-03-01 25:00", "2024-03-01 12", "town", "2024-03/01"})
    EXPECT_EQ(date_in(text), std::nullopt) << text;
}

TEST_F(CsvFileTest, LooksAtKindsOfColumns) {
  const CsvLook look = look_at_csv(write("day,town,size,gap,price\n2024-01-01,A,1,,2\n2024-01-02,B,x,,3\n,,2,,4\n"));
  EXPECT_TRUE(look.has_header);
  std::vector<CsvKind> kinds;
  for (const auto& column : look.columns) kinds.push_back(column.kind);
  EXPECT_EQ(kinds, (std::vector{CsvKind::kDate, CsvKind::kText, CsvKind::kNumber, CsvKind::kEmpty, CsvKind::kNumber}));
  EXPECT_FALSE(look_at_csv(write("1,2\n3,4\n")).has_header);
  EXPECT_TRUE(look_at_csv(write("kind,colour\npear,red\n"), {}, {"kind"}).has_header);
  EXPECT_EQ(look_at_csv(write("1,2\n")).columns[1].name, "1");
}

TEST_F(CsvFileTest, MeasuresAndScales) {
  const std::string path = write("day,a,b\n2024-01-01,1,10\n2024-01-02,3,\n2024-01-03,5,30\n");
  CsvFile file(path, {.missing = "nan", .all_features = true, .dates = {"day"}});
  const auto statistics = file.measure();
  ASSERT_EQ(statistics.size(), 3u);
  EXPECT_EQ(statistics[1].mean, 3);
  EXPECT_NEAR(statistics[1].deviation, std::sqrt(8.0 / 3), 1e-12);
  EXPECT_EQ(statistics[2].mean, 20);  // Of the values that are there.
  EXPECT_TRUE(statistics[0].ascends && statistics[1].is_whole);
  file.set_scales({{"day", statistics[0].mean, 86400}, {"a", 3, 2}});
  const auto values = all_in(file.held().batch(3));
  EXPECT_EQ(values[0], -1);  // Dates need more digits than a float has before they are scaled.
  EXPECT_EQ(values[6], 1);
  EXPECT_EQ(values[1], -1);
  EXPECT_EQ(values[8], 30);
  EXPECT_THROW(file.set_scales({{"a", 0, 0}}), InvalidArgument);
}

TEST_F(CsvFileTest, HeldAndStreamedAreTheSame) {
  const std::string path = numbers(20);
  for (const CsvOptions& options : {CsvOptions{}, CsvOptions{.features = {"a", "b"}, .look_back = 3, .horizon = 2},
                                    CsvOptions{.all_features = true, .look_back = 4, .horizon = 0}}) {
    const CsvFile file(path, options);
    for (const CsvPart& part : {CsvPart{}, CsvPart{.begin = 4, .end = 15}, CsvPart{.to = 0.6}, CsvPart{.from = 0.6}}) {
      const Dataset held = file.held(part), streamed = file.streamed(part);
      ASSERT_EQ(held.size(), file.num_examples(part));
      ASSERT_EQ(streamed.size(), file.num_examples(part));
      EXPECT_EQ(all_in(held.batch(4)), all_in(streamed.batch(4)));
      if (!options.all_features) {
        EXPECT_EQ(all_in(held.batch(4), true), all_in(streamed.batch(4), true));
      }
    }
  }
  const CsvFile windows(path, {.features = {"a"}, .look_back = 3, .horizon = 2});
  const Dataset batches = windows.streamed().batch(16);
  EXPECT_EQ((*batches.begin()).x().shape(), (Shape{16, 3, 1}));
  EXPECT_EQ((*batches.begin()).y().shape(), (Shape{16, 2}));
  EXPECT_THAT(all_in(windows.streamed().take(1).batch(1)), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(all_in(windows.streamed().take(1).batch(1), true), testing::ElementsAre(30, 40));
}

TEST_F(CsvFileTest, PartsAreApartAndTheSameEachTime) {
  const CsvFile file(numbers(1000), {});
  const CsvPart train{.to = 0.8, .seed = 4}, test{.from = 0.8, .seed = 4};
  auto a = all_in(file.streamed(train).batch(10)), b = all_in(file.held(test).batch(10));
  EXPECT_NEAR(static_cast<double>(a.size()), 800, 60);
  EXPECT_EQ(a.size() + b.size(), 1000u);
  EXPECT_EQ(all_in(file.held(train).batch(7)), a);
  a.insert(a.end(), b.begin(), b.end());
  EXPECT_EQ(std::set<float>(a.begin(), a.end()).size(), 1000u);
}

TEST_F(CsvFileTest, ShufflesAStreamInABoundedPool) {
  const CsvFile file(numbers(500), {});
  const Dataset shuffled = file.streamed().shuffle(50, {.seed = 1}).batch(32);
  Budget budget("pool", 50 * 8 + 3 * 32 * 8 + 1024);
  std::vector<float> values;
  {
    const BudgetScope scope(budget);
    values = all_in(shuffled);
  }
  EXPECT_GT(budget.peak(), 50u * 8);
  const std::set<float> seen(values.begin(), values.end());
  EXPECT_EQ(values.size(), 500u);
  EXPECT_EQ(seen.size(), 500u);
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
  for (std::size_t i = 0; i < 400; ++i) EXPECT_LT(values[i], static_cast<float>(i + 51));  // From the pool only.
  EXPECT_NE(all_in(shuffled), values);  // Another order in the next pass.
  EXPECT_EQ(all_in(file.streamed().shuffle(50, {.seed = 1}).batch(32)), values);
  const auto few = file.streamed().shuffle(50, {.seed = 1, .max_bytes = 80}).batch(32).node()->held({128, 128});
  EXPECT_EQ(few.resident, 128u);  // Ten rows of each.
}

TEST_F(CsvFileTest, WhatIsHeldIsChargedToWhoLoadsIt) {
  const CsvFile file(numbers(1000), {});
  const Dataset held = file.held();
  Budget small("small", 4000);
  {
    const BudgetScope scope(small);
    EXPECT_THROW(all_in(held.batch(10)), OutOfMemory);
    EXPECT_EQ(all_in(file.streamed().batch(10)).size(), 1000u);
  }
  EXPECT_EQ(small.used(), 0u);
  EXPECT_EQ(held.shuffle(1000).batch(10).node()->held({40, 40}).resident, 8064u);
  EXPECT_EQ(Dataset::from_csv(numbers(1000)).node()->held({}).resident, 0u);  // Loaded before, by the caller.
  int loads = 0;
  const Dataset loaded = Dataset::from_loader(3, 64, [&] {
    ++loads;
    return Example{.inputs = {zeros({3, 2})}, .targets = {}};
  });
  all_in(loaded.batch(2));
  all_in(loaded.batch(2));
  EXPECT_EQ(loads, 1);
  EXPECT_THROW(all_in(Dataset::from_loader(4, 64, [] { return Example{.inputs = {zeros({3})}}; }).batch(1)),
               InvalidArgument);
}

TEST_F(CsvFileTest, SaysWhatIsWrongAndWhere) {
  const auto refusal = [](const auto& f) {
    try {
      f();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string path = write("a,b,c\n1,2,3\n1,x,3\n");
  EXPECT_THAT(refusal([&] { load_csv(path); }), HasSubstr("line 3: column 2 (\"b\"): \"x\" is not a number"));
  const std::string missing = refusal([&] { load_csv(path, {.targets = {"z"}}); });
  EXPECT_THAT(missing, HasSubstr("there is no column \"z\"; there are: a, b, c"));
  EXPECT_THAT(missing, testing::Not(HasSubstr("without a header")));
  EXPECT_THAT(refusal([&] { load_csv(write("1,2\n"), {.targets = {"7"}}); }), HasSubstr("without a header"));
  std::string many = "t,y\n";
  for (int i = 0; i < 100'001; ++i) many += "x" + std::to_string(i) + ",1\n";
  EXPECT_THAT(refusal([&] { load_csv(write(many), {.categorical = {"t"}}); }),
              HasSubstr("column 1 (\"t\") has more than 100000 different texts"));
}

TEST_F(CsvFileTest, TellsHowFarAPassIs) {
  std::vector<double> shares;
  const CsvFile file(numbers(40000), {}, [&](double share) { shares.push_back(share); });
  ASSERT_GT(shares.size(), 2u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_LE(shares.back(), 1.0);
}

}  // namespace
}  // namespace plimsoll
