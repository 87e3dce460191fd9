// What a refusal advises: the limit works at once, and one byte less does not.
#include <gmock/gmock.h>

#include <functional>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  std::function<Model(const Optimizer&)> make;
  Tensor x, y;
};

Model compiled(Model model, const Optimizer& optimizer) {
  model.compile({.optimizer = optimizer, .loss = "mse", .metrics = {"mae"}});
  return model;
}

std::vector<Case> cases() {
  const Tensor rows = random_normal({50, 12}, {.seed = 1});
  const Tensor series = random_normal({50, 9, 2}, {.seed = 2});
  const Tensor images = random_normal({50, 8, 8, 2}, {.seed = 3});
  return {
      {"dense",
       [](const Optimizer& by) {
         return compiled(Sequential({layers::Dense(32, {.activation = "relu", .input_shape = {12}}),
                                     layers::Dropout(0.1), layers::Dense(1)}),
                         by);
       },
       rows, rows.mean({1}, {.keep_dims = true})},
      {"without an input shape",
       [](const Optimizer& by) {
         return compiled(Sequential({layers::Dense(1000), layers::Dense(1)}), by);
       },
       rows, rows.mean({1}, {.keep_dims = true})},
      {"recurrent",
       [](const Optimizer& by) {
         return compiled(Sequential({layers::LSTM(7, {.input_shape = {9, 2}}), layers::Dense(1)}), by);
       },
       series, series.mean({1, 2}).reshape({50, 1})},
      {"convolution",
       [](const Optimizer& by) {
         return compiled(Sequential({layers::Conv2D(4, {3, 3}, {.activation = "relu", .input_shape = {8, 8, 2}}),
                                     layers::MaxPooling2D({2, 2}), layers::Flatten(), layers::Dense(1)}),
                         by);
       },
       images, images.mean({1, 2, 3}).reshape({50, 1})},
  };
}

// The limit that the refusal of `run` names, at a limit that is too small for anything.
std::size_t advice(const std::function<void(std::size_t)>& run, std::size_t limit) {
  try {
    run(limit);
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(error.smallest_sufficient_limit())));
    return error.smallest_sufficient_limit();
  }
  ADD_FAILURE() << "not refused at " << limit;
  return 1;
}

void expect_exact(const std::function<void(std::size_t)>& run, std::initializer_list<std::size_t> too_small) {
  std::size_t enough = 0;
  for (const std::size_t tiny : too_small) {
    const std::size_t found = advice(run, tiny);
    EXPECT_TRUE(enough == 0 || found == enough) << found << " at " << tiny << ", before " << enough;
    enough = found;
  }
  EXPECT_EQ(advice(run, enough - 1), enough);
  EXPECT_NO_THROW(run(enough));
}

TEST(Advice, OfAFitIsExactForModelsOptimizersAndDatasets) {
  const Optimizer optimizers[] = {optimizers::SGD(), optimizers::Adam(), optimizers::RMSprop({.momentum = 0.5})};
  int next = 0;
  for (const Case& c : cases()) {
    const Dataset rows = Dataset::from_tensors(c.x, c.y);
    const auto same = [](const Example& e) { return e; };
    const std::pair<const char*, Dataset> datasets[] = {
        {"in order", rows.batch(16)},
        {"shuffled", rows.shuffle(50, {.seed = 1}).batch(16)},
        {"a shuffle of some", rows.shuffle(20, {.seed = 1}).batch(16)},
        {"a stream", rows.map(same).shuffle(30, {.seed = 1}).batch(16)},
        {"prefetched", rows.shuffle(50, {.seed = 1}).batch(16).prefetch(2)},
        {"fewer rows than a batch", rows.take(8).batch(32)}};
    for (const auto& [name, data] : datasets) {
      SCOPED_TRACE(std::string(c.name) + ", " + name);
      const Optimizer& optimizer = optimizers[static_cast<std::size_t>(next++) % 3];
      expect_exact(
          [&](std::size_t limit) {
            c.make(Optimizer(optimizer.options())).fit(data, {.epochs = 2, .verbose = 0, .budget = limit});
          },
          {1, 2000, 5000});
    }
    SCOPED_TRACE(c.name);
    expect_exact(
        [&](std::size_t limit) {  // A validation that needs more than a step.
          c.make(optimizers::SGD())
              .fit(rows.batch(2),
                   {.validation_data = rows.map(same).shuffle(40).batch(48), .verbose = 0, .budget = limit});
        },
        {1, 2000, 5000});
    expect_exact(
        [&](std::size_t limit) {
          c.make(optimizers::Adam()).fit(c.x, c.y, {.validation_split = 0.3, .verbose = 0, .budget = limit});
        },
        {1, 2000, 5000});
  }
}

TEST(Advice, NamesTheBatchThatThereIs) {
  const Case c = cases()[0];
  try {
    c.make(optimizers::Adam()).fit(c.x.slice({0}, {8}), c.y.slice({0}, {8}), {.verbose = 0, .budget = 500});
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("a batch of 8,"));
  }
}

// Budgets around what runs, which have other things in them too.
TEST(Advice, OfBudgetsAroundIsExact) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto inside = [&](const std::function<void(Model&)>& run) {
      Model model = c.make(optimizers::Adam());
      model.predict(c.x);  // Now it has its weights.
      expect_exact(
          [&](std::size_t limit) {
            std::optional<Tensor> other;
            const Budget around("around", limit + 2048);
            const BudgetScope scope(around);
            other = zeros({512});
            try {
              run(model);
            } catch (const OutOfMemory& error) {  // Told as if the other tensor were not there.
              OutOfMemoryDetails details;
              details.smallest_sufficient_limit = error.smallest_sufficient_limit() - 2048;
              details.what = std::to_string(details.smallest_sufficient_limit);
              EXPECT_THAT(error.what(), HasSubstr("\"around\""));
              throw OutOfMemory(details);
            }
          },
          {1, 200, 1000});
    };
    const Dataset rows = Dataset::from_tensors(c.x, c.y).shuffle(50, {.seed = 3}).batch(16);
    inside([&](Model& model) { model.evaluate(rows); });
    inside([&](Model& model) { model.predict(c.x, {.batch_size = 16}); });
    inside([&](Model& model) { model.predict(c.x, {.batch_size = 64}); });
  }
  const Case c = cases()[0];
  const Dataset rows = Dataset::from_tensors(c.x, c.y).shuffle(50, {.seed = 3}).batch(16);
  expect_exact(
      [&](std::size_t limit) {
        const Budget around("around", limit);
        Model model = c.make(optimizers::Adam());
        const BudgetScope scope(around);
        model.fit(rows, {.epochs = 2, .validation_data = rows, .verbose = 0});
      },
      {1, 2000, 5000});
}

TEST(Advice, ARefusedFitLeavesNothingBehind) {
  const Case c = cases()[2];
  Model model = c.make(optimizers::Adam());
  const Dataset stream = Dataset::from_tensors(c.x, c.y).map([](const Example& e) { return e; }).batch(16);
  const std::vector<float> before = model.predict(c.x).to_vector<float>();
  const std::size_t used = memory_stats().bytes_in_use;
  EXPECT_THROW(model.fit(stream, {.verbose = 0, .budget = 100}), OutOfMemory);
  EXPECT_EQ(memory_stats().bytes_in_use, used);
  EXPECT_EQ(model.predict(c.x).to_vector<float>(), before);
  EXPECT_EQ(model.optimizer().step(), 0);
}

}  // namespace
}  // namespace plimsoll
