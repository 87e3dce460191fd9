#include "plimsoll/model/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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

TEST(Dataset, EveryOrderOfAFewRowsIsAboutAsLikely) {
  std::map<std::vector<float>, int> seen;
  for (std::uint64_t seed = 0; seed < 2400; ++seed) ++seen[all_of(numbers(4).shuffle(4, {.seed = seed}).batch(4))];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 100, 50) << order[0] << order[1] << order[2];
  std::map<std::pair<std::size_t, float>, int> places;  // Of a row of 11, which is not a power of two.
  for (std::uint64_t seed = 0; seed < 2200; ++seed) {
    const auto order = all_of(numbers(11).shuffle(11, {.seed = seed}).batch(11));
    for (std::size_t i = 0; i < order.size(); ++i) ++places[{i, order[i]}];
  }
  EXPECT_EQ(places.size(), 121u);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 200, 75) << place.first << " " << place.second;
}

TEST(Dataset, ShufflesOnceWhenItIsTold) {
  const ShuffleOptions once{.seed = 3, .reshuffle_each_iteration = false};
  const Dataset rows = numbers(50).shuffle(50, once).batch(8), buffered = numbers(50).shuffle(7, once).batch(8),
                stream = numbers(50).map([](const Example&e) { return e; }).shuffle(50, once).batch(8),
                drawn = numbers(50).shuffle(50, {.reshuffle_each_iteration = false}).batch(8);
  for (const Dataset& data : {rows, buffered, stream, drawn}) {
    const auto order = all_of(data);
    EXPECT_EQ(sorted(order), first(50));
    EXPECT_NE(order, first(50));
    EXPECT_EQ(all_of(data), order);
  }
  EXPECT_EQ(all_of(rows), all_of(numbers(50).shuffle(50, {.seed = 3}).batch(8)));
}

TEST(Dataset, NoExampleChangesSidesOfASplit) {
  const auto same = [](const Example& e) { return e; };
  const Dataset shuffled = numbers(40).shuffle(40, {.seed = 3});
  const std::vector<Dataset> all = {shuffled,
                                    numbers(40).shuffle(40),
                                    numbers(40).shuffle(9, {.seed = 1}),
                                    shuffled.map(same),
                                    numbers(40).map(same).shuffle(40, {.seed = 4}),
                                    shuffled.prefetch(2),
                                    shuffled.take(40).repeat(1)};
  for (const Dataset& data : all) {
    const auto [train, test] = data.split({0.75, 0.25});
    const auto held_out = sorted(all_of(test.batch(4)));
    EXPECT_NE(held_out, sorted(first(10)));
    for (int epoch = 0; epoch < 3; ++epoch) {
      auto values = all_of(train.shuffle(30).batch(4));
      EXPECT_EQ(values.size(), 30u);
      EXPECT_EQ(sorted(all_of(test.batch(4))), held_out);
      values.insert(values.end(), held_out.begin(), held_out.end());
      EXPECT_EQ(sorted(values), first(40));
    }
  }
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
  const Dataset rows = numbers(10000);
  const Budget tight("tight", 8192);
  const BudgetScope use(tight);
  EXPECT_THROW(rows.shuffle(5000).batch(100).begin(), OutOfMemory);
  EXPECT_EQ(tight.used(), 0u);
  // Mixed as a whole they hold nothing but the batch.
  EXPECT_EQ(all_of(rows.shuffle(10000).batch(100)).size(), 10000u);
  EXPECT_EQ(tight.used(), 0u);
}

TEST(Dataset, SaysWhatAPassHoldsAtMost) {
  const std::vector<std::size_t> batch = {400, 400};  // 100 rows of one number each.
  const auto resident = [&](const Dataset& data) { return data.node()->held(batch).resident; };
  const Dataset rows = numbers(1000);
  EXPECT_EQ(resident(rows.batch(100)), 0u);
  EXPECT_EQ(resident(rows.shuffle(1000).batch(100)), 0u);
  EXPECT_EQ(resident(rows.shuffle(10).batch(100)), 128u);
  EXPECT_EQ(rows.shuffle(10).batch(100).prefetch(3).node()->batch_size(), 100u);
  const Dataset stream = rows.map([](const Example& e) { return e; });
  const std::vector<Dataset> all = {rows.shuffle(10).batch(100),
                                    stream.shuffle(50).batch(100),
                                    stream.shuffle(50, {.max_bytes = 2000}).batch(100),
                                    rows.batch(100).prefetch(3),
                                    rows.shuffle(1000).batch(100).prefetch(3),
                                    stream.batch(100).prefetch(3, {.max_bytes = 900}),
                                    stream.window(100).take(5)};
  for (const Dataset& data : all) {
    const Budget budget("pass", 1 << 20);
    const BudgetScope use(budget);
    for (const Example& given : data) {
      EXPECT_EQ(given.inputs.size(), 1u);
      EXPECT_LE(budget.used(), resident(data) + 2 * 448);
    }
    const std::size_t quota = 4096;  // By which a peak is too large when a second thread takes part.
    EXPECT_LE(budget.peak(), resident(data) + data.node()->held(batch).loading + 2 * 448 + quota);
    EXPECT_EQ(budget.used(), 0u);
  }
}

}  // namespace
}  // namespace plimsoll
