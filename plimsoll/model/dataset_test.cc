#include "plimsoll/model/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/leak_check.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

Dataset numbers(int count) {
  const Tensor x = arange(0, count).cast(f32).reshape({count, 1});
  return Dataset::from_tensors(x, x * 10.f);
}

std::vector<float> all_of(const Dataset& dataset) {
  std::vector<float> result;
  for (const auto& [x, y] : dataset) {
    const auto values = x.to_vector<float>(), targets = y.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(targets[i], values[i] * 10);
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

std::vector<float> sorted(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<float> first(int count) {
  std::vector<float> result;
  for (int i = 0; i < count; ++i) result.push_back(static_cast<float>(i));
  return result;
}

TEST(Dataset, BatchesInOrderWithoutACopy) {
  const Dataset batches = numbers(10).batch(4);
  EXPECT_EQ(batches.size(), 3u);
  const MemoryInfo before = memory();
  std::vector<std::int64_t> sizes;
  for (const auto& [x, y] : batches) {
    sizes.push_back(x.shape()[0]);
    EXPECT_EQ(memory().num_bytes, before.num_bytes);
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 4, 2}));
  EXPECT_EQ(all_of(batches), first(10));
  EXPECT_EQ(numbers(10).batch(4, {.drop_remainder = true}).size(), 2u);
  EXPECT_EQ(all_of(numbers(10).batch(4, {.drop_remainder = true})), first(8));
}

TEST(Dataset, ShufflesEachPassAnewAndWithASeedAlike) {
  const Dataset a = numbers(50).shuffle(50, {.seed = 7}).batch(8), b = numbers(50).shuffle(50, {.seed = 7}).batch(8);
  const auto first_pass = all_of(a), second_pass = all_of(a);
  EXPECT_EQ(sorted(first_pass), first(50));
  EXPECT_EQ(sorted(second_pass), first(50));
  EXPECT_NE(first_pass, second_pass);
  EXPECT_EQ(all_of(b), first_pass);
  EXPECT_EQ(all_of(b), second_pass);
  EXPECT_NE(first_pass, first(50));
}

TEST(Dataset, ASmallBufferMixesOnlyNearby) {
  const auto values = all_of(numbers(100).shuffle(5, {.seed = 1}).batch(10));
  EXPECT_EQ(sorted(values), first(100));
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_LT(values[i], static_cast<float>(i + 5));
  const auto one_by_one = all_of(numbers(30).map([](const Example& e) { return e; }).shuffle(4, {.seed = 1}).batch(7));
  EXPECT_EQ(sorted(one_by_one), first(30));
  for (std::size_t i = 0; i < one_by_one.size(); ++i) EXPECT_LT(one_by_one[i], static_cast<float>(i + 4));
}

TEST(Dataset, MapsFiltersRepeatsTakesAndSkips) {
  const Dataset even =
      numbers(10).filter([](const Example& e) { return static_cast<int>(e.x().item<float>()) % 2 == 0; });
  EXPECT_EQ(all_of(even.batch(2)), (std::vector<float>{0, 2, 4, 6, 8}));
  EXPECT_FALSE(even.size());
  const Dataset twice = numbers(3).map([](const Example& e) { return Example{{e.x() * 2.f}, {e.y() * 2.f}}; });
  EXPECT_EQ(all_of(twice.batch(3)), (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(all_of(numbers(2).repeat(2).batch(3)), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(all_of(numbers(3).repeat().take(5).batch(2)), (std::vector<float>{0, 1, 2, 0, 1}));
  EXPECT_EQ(all_of(numbers(6).skip(2).take(3).batch(2)), (std::vector<float>{2, 3, 4}));
  EXPECT_TRUE(all_of(numbers(0).repeat().batch(2)).empty());
}

TEST(Dataset, SplitsIntoPartsThatAreTheWhole) {
  const auto [train, validation, test] = numbers(103).split({0.7, 0.15, 0.15});
  EXPECT_EQ(*train.size() + *validation.size() + *test.size(), 103u);
  EXPECT_EQ(*train.size(), 72u);
  auto values = all_of(train.batch(10));
  for (const Dataset& part : {validation, test})
    for (const float value : all_of(part.batch(10))) values.push_back(value);
  EXPECT_EQ(values, first(103));
  EXPECT_THROW(numbers(4).split({0.7, 0.7}), InvalidArgument);
  EXPECT_THROW(numbers(4).filter([](const Example&) { return true; }).split({0.5, 0.5}), InvalidArgument);
}

TEST(Dataset, PrefetchGivesTheSameAndEndsWithTheLoop) {
  LeakCheck check;
  {
    const Dataset dataset = numbers(100).shuffle(100, {.seed = 3}).batch(7).prefetch(3);
    EXPECT_EQ(sorted(all_of(dataset)), first(100));
    for (const auto& [x, y] : dataset) {
      EXPECT_EQ(x.shape()[0], 7);
      break;  // The thread is left in the middle of its work.
    }
  }
  check.expect_none();
}

TEST(Dataset, ErrorsOfAPrefetchSurfaceInTheLoop) {
  const Dataset bad = numbers(10).batch(2).map([](const Example& e) -> Example {
    if (e.x().at<float>({0, 0}) >= 4) throw NotFound("row 4");
    return e;
  });
  int seen = 0;
  EXPECT_THROW(
      {
        for (const auto& [x, y] : bad.prefetch(2)) seen += x.size() > 0;
      },
      NotFound);
  EXPECT_EQ(seen, 2);
}

TEST(Dataset, BatchesLiveOutsideOfScopesAndGoWithTheLoop) {
  const Dataset dataset = numbers(20).shuffle(20, {.seed = 1}).batch(5);
  const MemoryInfo before = memory();
  tidy([&] {
    auto it = dataset.begin();
    tidy([&] { ++it; });
    EXPECT_FALSE(it->x().is_disposed());  // Made in a scope that has ended.
  });
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST(Dataset, ComesFromAGenerator) {
  const Dataset dataset = Dataset::from_generator([] {
    return [i = 0]() mutable -> std::optional<Example> {
      if (i == 5) return std::nullopt;
      const float value = static_cast<float>(i++);
      return Example{{constant({value})}, {constant({value * 10})}};
    };
  });
  EXPECT_EQ(all_of(dataset.batch(2)), first(5));
  EXPECT_EQ(all_of(dataset.batch(2)), first(5));
}

TEST(Dataset, WindowsOverASeries) {
  const Tensor series = arange(0, 20).cast(f32).reshape({10, 2});
  const Dataset windows = timeseries_windows(series, {.look_back = 3, .horizon = 2, .stride = 2});
  EXPECT_EQ(windows.size(), 3u);
  for (const auto& [x, y] : windows.batch(8)) {
    EXPECT_EQ(x.shape(), (Shape{3, 3, 2}));
    EXPECT_EQ(y.shape(), (Shape{3, 4}));
    EXPECT_EQ(x.at<float>({1, 0, 0}), 4.f);
    EXPECT_EQ(y.at<float>({1, 0}), 10.f);
    EXPECT_EQ(y.at<float>({2, 3}), 17.f);
  }
  EXPECT_THROW(timeseries_windows(series, {.look_back = 9, .horizon = 2}), InvalidArgument);
  EXPECT_THROW(timeseries_windows(series, {.look_back = 0}), InvalidArgument);
}

TEST(Dataset, RefusesWhatDoesNotFit) {
  EXPECT_THROW(Dataset::from_tensors(zeros({3, 1}), zeros({4, 1})), InvalidArgument);
  EXPECT_THROW(numbers(3).batch(0), InvalidArgument);
  EXPECT_THROW(numbers(3).shuffle(0), InvalidArgument);
  EXPECT_THROW(numbers(3).prefetch(0), InvalidArgument);
  EXPECT_THROW(Dataset().batch(2), InvalidArgument);
}

TEST(Dataset, IsChargedToTheBudget) {
  const Dataset dataset = numbers(10000).shuffle(10000).batch(100);
  const Budget tight("tight", 8192);
  const BudgetScope use(tight);
  EXPECT_THROW(dataset.begin(), OutOfMemory);
  EXPECT_EQ(tight.used(), 0u);
}

}  // namespace
}  // namespace plimsoll
