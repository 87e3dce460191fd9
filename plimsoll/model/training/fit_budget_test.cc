// Training inside budgets below the natural peak: the gate is true to the byte, results are the same to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/model/training/budget_models_testing.h"
#include "plimsoll/model/training/progress.h"
#include "plimsoll/model/training/step_budget.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

std::vector<BudgetModel> small_models() {
  return {budget_mlp(8, 32, 96), budget_resnet(1, 4, 8, 6), budget_transformer(2, 16, 8, 4), budget_lstm(8, 12, 16)};
}

// Between the gate and the natural peak.
std::vector<std::size_t> some_budgets(const MemoryForecast& forecast) {
  const std::size_t gate = forecast.smallest_budget, room = forecast.peak_bytes - gate;
  return {gate, gate + room / 7, gate + room / 3, gate + room / 2, gate + room * 5 / 6, forecast.peak_bytes};
}

TEST(FitBudget, GivesTheSameBitsAtEveryBudget) {
  for (const BudgetModel& which : small_models()) {
    SCOPED_TRACE(which.name);
    const Dataset data = which.batches(3);
    const auto fit = [&](Model& model, std::optional<std::size_t> budget) {
      return model.fit(data, {.epochs = 2, .validation_data = data, .verbose = 0, .budget = budget});
    };
    Model free = which.make();
    const History natural = fit(free, {});
    EXPECT_EQ(natural.recomputed_fraction(), 0);
    const MemoryForecast forecast = free.forecast({.batch_size = which.batch});
    for (const std::size_t budget : some_budgets(forecast)) {
      SCOPED_TRACE(testing::Message() << budget << " of " << forecast.peak_bytes);
      Model tight = which.make();
      const History history = fit(tight, budget);
      for (const std::string& name : natural.names()) EXPECT_EQ(history[name], natural[name]) << name;
      EXPECT_EQ(values_of(tight), values_of(free));
      EXPECT_LE(history.peak_bytes(), budget);
      const double slowdown = forecast.predicted_slowdown(budget);
      EXPECT_NEAR(history.recomputed_fraction(), 1 - 1 / slowdown, 1e-9);
      // Dropout and statistics go on as if nothing had been repeated.
      Model peer = which.make();
      fit(peer, {});
      const Example batch = *data.begin();
      EXPECT_EQ(tight.train_on_batch(batch)["loss"], peer.train_on_batch(batch)["loss"]);
    }
  }
}

TEST(FitBudget, GoesBelowTheNaturalPeak) {
  for (const BudgetModel& which : {budget_mlp(8, 32, 96), budget_resnet(1, 4, 8, 6), budget_transformer(2, 16, 8, 4)}) {
    SCOPED_TRACE(which.name);
    const MemoryForecast forecast = which.make().forecast({.batch_size = which.batch});
    EXPECT_LT(forecast.smallest_budget, forecast.peak_bytes);
    EXPECT_GE(forecast.smallest_budget, forecast.floor_bytes);
    EXPECT_FALSE(forecast.floor_step.empty());
    EXPECT_GT(forecast.predicted_slowdown(forecast.smallest_budget), 1);
  }
}

TEST(FitBudget, ALongSequenceTrainsAtHalfOfItsExtent) {
  const BudgetModel which = budget_lstm(24, 64, 16, 1);
  const MemoryForecast forecast = which.make().forecast({.batch_size = which.batch});
  std::size_t held = 0;
  for (const char* category : {"inputs", "parameters", "optimizer", "other"}) held += forecast.by_category.at(category);
  const std::size_t budget = held + (forecast.peak_bytes - held) / 2;
  EXPECT_LE(forecast.smallest_budget, budget);
  EXPECT_LT(forecast.predicted_slowdown(budget), 1.35);
  const Dataset data = which.batches(2);
  Model free = which.make(), tight = which.make();
  free.fit(data, {.verbose = 0});
  EXPECT_LE(tight.fit(data, {.verbose = 0, .budget = budget}).peak_bytes(), budget);
  EXPECT_EQ(values_of(tight), values_of(free));
}

TEST(FitBudget, LargeVocabulariesAreTakenInSlices) {
  const BudgetModel which = budget_words(3000, 24, 16, 16);
  const std::size_t logits = 4u * 16 * 16 * 3000;
  const MemoryForecast forecast = which.make().forecast({.batch_size = which.batch});
  EXPECT_GT(forecast.peak_bytes, logits);
  EXPECT_LT(forecast.smallest_budget, forecast.peak_bytes - logits * 3 / 4);
  EXPECT_LT(forecast.predicted_slowdown(forecast.smallest_budget), 1.5);
  const Dataset data = which.batches(3);
  Model free = which.make();
  const History natural = free.fit(data, {.epochs = 2, .validation_data = data, .verbose = 0});
  for (const std::size_t budget : {forecast.smallest_budget, forecast.peak_bytes - logits / 2}) {
    Model tight = which.make();
    const History history = tight.fit(data, {.epochs = 2, .validation_data = data, .verbose = 0, .budget = budget});
    for (const std::string& name : natural.names()) EXPECT_EQ(history[name], natural[name]) << name;
    EXPECT_EQ(values_of(tight), values_of(free));
    EXPECT_LE(history.peak_bytes(), budget);
  }
  Model refused = which.make();
  EXPECT_THROW(refused.fit(data, {.verbose = 0, .budget = forecast.smallest_budget - 1}), OutOfMemory);
}

TEST(FitBudget, TheGateIsTrueToTheByte) {
  for (const BudgetModel& which : small_models()) {
    SCOPED_TRACE(which.name);
    const Dataset data = which.batches(2);
    Model model = which.make();
    const MemoryForecast forecast = model.forecast({.batch_size = which.batch});
    const Values before = values_of(model);
    try {
      model.fit(data, {.verbose = 0, .budget = forecast.smallest_budget - 1});
      FAIL() << "not refused";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.smallest_sufficient_limit(), forecast.smallest_budget);
      EXPECT_THAT(error.what(), HasSubstr(forecast.floor_step));
      EXPECT_THAT(error.what(), HasSubstr(std::to_string(forecast.floor_bytes)));
    }
    EXPECT_EQ(model.optimizer().step(), 0);
    EXPECT_EQ(values_of(model), before);
    const History history = model.fit(data, {.verbose = 0, .budget = forecast.smallest_budget});
    EXPECT_EQ(history.peak_bytes(), forecast.smallest_budget);
    EXPECT_EQ(model.optimizer().step(), 2);
    // A forecast of a model that has trained, and another process's, say the same.
    EXPECT_EQ(model.forecast({.batch_size = which.batch}).smallest_budget, forecast.smallest_budget);
  }
}

TEST(FitBudget, ALargerBudgetIsNeverSlower) {
  for (const BudgetModel& which : small_models()) {
    SCOPED_TRACE(which.name);
    const MemoryForecast forecast = which.make().forecast({.batch_size = which.batch});
    EXPECT_EQ(forecast.front.front().bytes, forecast.peak_bytes);
    EXPECT_EQ(forecast.front.back().bytes, forecast.smallest_budget);
    double before = std::numeric_limits<double>::infinity();
    EXPECT_EQ(forecast.predicted_slowdown(forecast.smallest_budget - 1), before);
    for (std::size_t i = 0; i <= 200; ++i) {
      const std::size_t budget = forecast.smallest_budget + (forecast.peak_bytes - forecast.smallest_budget) * i / 200;
      EXPECT_TRUE(forecast.fits(budget));
      EXPECT_LE(forecast.predicted_slowdown(budget), before) << budget;
      before = forecast.predicted_slowdown(budget);
    }
    EXPECT_EQ(before, 1);
  }
}

TEST(FitBudget, ASlowerBudgetThanAllowedIsRefused) {
  const BudgetModel which = budget_mlp(8, 32, 96);
  const Dataset data = which.batches(1);
  Model model = which.make();
  const MemoryForecast forecast = model.forecast({.batch_size = which.batch});
  const double most = (1 + forecast.predicted_slowdown(forecast.smallest_budget)) / 2;
  std::size_t gate = forecast.peak_bytes;
  for (const BudgetPoint& point : forecast.front)
    if (point.slowdown <= most) gate = point.bytes;
  ASSERT_LT(gate, forecast.peak_bytes);
  ASSERT_GT(gate, forecast.smallest_budget);
  try {
    model.fit(data, {.verbose = 0, .budget = gate - 1, .max_slowdown = most});
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.smallest_sufficient_limit(), gate);
    EXPECT_THAT(error.what(), HasSubstr("max_slowdown"));
  }
  EXPECT_EQ(model.fit(data, {.verbose = 0, .budget = gate, .max_slowdown = most}).peak_bytes(), gate);
  EXPECT_THROW(model.fit(data, {.verbose = 0, .budget = gate, .max_slowdown = 1}), OutOfMemory);
  EXPECT_THROW(model.fit(data, {.verbose = 0, .budget = gate, .max_slowdown = 0.5}), InvalidArgument);
  EXPECT_THROW(model.max_batch_size(gate, 0.5), InvalidArgument);
}

TEST(FitBudget, TheLargestBatchIsThatOfTheGate) {
  const BudgetModel which = budget_mlp(8, 32, 96);
  Model model = which.make();
  const std::size_t bytes = model.forecast({.batch_size = which.batch}).peak_bytes;
  const std::size_t natural = model.max_batch_size(bytes, 1), half_slower = model.max_batch_size(bytes, 1.5),
                    any = model.max_batch_size(bytes);
  EXPECT_EQ(natural, which.batch);
  EXPECT_GT(half_slower, natural);
  EXPECT_GE(any, half_slower);
  EXPECT_TRUE(model.forecast({.batch_size = any}).fits(bytes));
  EXPECT_FALSE(model.forecast({.batch_size = any + 1}).fits(bytes));
  EXPECT_LE(model.forecast({.batch_size = half_slower}).predicted_slowdown(bytes), 1.5);
  EXPECT_GT(model.forecast({.batch_size = half_slower + 1}).predicted_slowdown(bytes), 1.5);
}

// A validation whose batches are larger than those of training has less left for its steps.
TEST(FitBudget, LargerBatchesOfValidationStayInsideToo) {
  const BudgetModel which = budget_mlp(8, 32, 96);
  const Dataset data = which.batches(2);
  const Dataset whole = Dataset::from_tensors(random_normal({192, 32}, {.seed = 3}), zeros({192, 1})).batch(192);
  Model model = which.make(), free = which.make();
  const MemoryForecast forecast = model.forecast({.batch_size = which.batch});
  std::size_t budget = forecast.smallest_budget;
  const auto fit = [&](Model& trained, std::optional<std::size_t> bytes) {
    return trained.fit(data, {.epochs = 2, .validation_data = whole, .verbose = 0, .budget = bytes});
  };
  try {
    EXPECT_LE(fit(model, budget).peak_bytes(), budget);
  } catch (const OutOfMemory& error) {
    budget = error.smallest_sufficient_limit();
    EXPECT_EQ(model.optimizer().step(), 0);
    EXPECT_LE(fit(model, budget).peak_bytes(), budget);
  }
  fit(free, {});
  EXPECT_EQ(values_of(model), values_of(free));
}

TEST(FitBudget, ABudgetAroundIsHeldByRecomputingWhereOneIsGiven) {
  const BudgetModel which = budget_mlp(8, 32, 96);
  const Dataset data = which.batches(2);
  Model free = which.make(), tight = which.make();
  free.fit(data, {.verbose = 0});
  const MemoryForecast forecast = tight.forecast({.batch_size = which.batch});
  const std::size_t parameters = forecast.by_category.at("parameters"), batch = forecast.by_category.at("inputs");
  const Budget around("around", (forecast.smallest_budget + forecast.peak_bytes) / 2 - parameters - batch);
  const BudgetScope scope(around);
  EXPECT_THROW(tight.fit(data, {.verbose = 0}), OutOfMemory);  // Nobody asked for recomputing.
  tight.fit(data, {.verbose = 0, .budget = forecast.peak_bytes});
  EXPECT_LE(around.peak(), around.limit());
  EXPECT_EQ(values_of(tight), values_of(free));
}

TEST(FitBudget, EvaluatesAndPredictsInsideABudget) {
  for (const BudgetModel& which : small_models()) {
    SCOPED_TRACE(which.name);
    const Dataset data = which.batches(2);
    const Model model = which.make();
    const Logs natural = model.evaluate(data);
    const auto gate_of = [&](auto&& run) {
      try {
        run(std::size_t{1});
      } catch (const OutOfMemory& error) {
        return error.smallest_sufficient_limit();
      }
      return std::size_t{0};
    };
    const auto evaluate = [&](std::size_t budget) { return model.evaluate(data, {.budget = budget}); };
    const std::size_t gate = gate_of(evaluate);
    EXPECT_THROW(evaluate(gate - 1), OutOfMemory);
    const Logs logs = evaluate(gate);
    EXPECT_TRUE(std::equal(logs.begin(), logs.end(), natural.begin(), natural.end()));

    const Tensor x = (*data.begin()).x();
    const std::vector<float> wanted = model.predict(x).to_vector<float>();
    for (const std::size_t batch : {which.batch, which.batch / 2 + 1}) {
      const auto predict = [&](std::size_t budget) {
        return model.predict(x, {.batch_size = batch, .budget = budget});
      };
      const std::size_t smallest = gate_of(predict);
      EXPECT_THROW(predict(smallest - 1), OutOfMemory);
      EXPECT_EQ(predict(smallest).to_vector<float>(), wanted);
    }
  }
}

TEST(FitBudget, ADirectoryWithoutABudgetIsRefused) {
  const BudgetModel which = budget_mlp(2, 4, 8);
  const Dataset data = which.batches(1);
  Model model = which.make();
  EXPECT_THROW(model.fit(data, {.verbose = 0, .spill = "scratch"}), InvalidArgument);
  EXPECT_THROW(model.evaluate(data, {.spill = "scratch"}), InvalidArgument);
  EXPECT_THROW(model.predict(zeros({1, 4}), {.spill = "scratch"}), InvalidArgument);
}

// A heap that refuses each allocation of a step in turn, of one that recomputes.
TEST(FitBudget, AStepThatFailsWhileItRecomputesChangesNothing) {
  const BudgetModel which = budget_resnet(1, 4, 8, 6);
  const Dataset data = which.batches(1);
  Model peer = which.make();
  const std::size_t gate = peer.forecast({.batch_size = which.batch}).smallest_budget;
  peer.fit(data, {.epochs = 2, .verbose = 0});
  const auto fit = [&](Model& model) { return model.fit(data, {.verbose = 0, .budget = gate}); };
  Model model = which.make();
  fit(model);
  const Values before = values_of(model);
  const MemoryInfo held = memory();
  std::size_t refusals = 0;
  for (std::size_t refused = 0; model.optimizer().step() == 1 && !HasFailure(); ++refused) {
    SCOPED_TRACE(testing::Message() << "allocation " << refused);
    try {
      fail_heap_after(refused);
      fit(model);
      disarm_heap();
    } catch (const std::bad_alloc&) {
      disarm_heap();
      ++refusals;
      if (model.optimizer().step() != 1) break;  // Refused after the step.
      EXPECT_EQ(values_of(model), before);
      EXPECT_EQ(memory().num_bytes, held.num_bytes);
    }
  }
  EXPECT_GT(refusals, 20u);
  EXPECT_EQ(model.optimizer().step(), 2);
  EXPECT_EQ(values_of(model), values_of(peer));
}

// Every limit around it, a block apart, from nothing to what the leanest run takes.
TEST(FitBudget, AStepIsRefusedAtEveryBlockBelowTheGate) {
  const BudgetModel which = budget_mlp(4, 8, 8);
  const Dataset data = which.batches(1);
  Model model = which.make();
  const MemoryForecast forecast = model.forecast({.batch_size = which.batch});
  const Values before = values_of(model);
  const MemoryInfo held = memory();
  for (std::size_t limit = forecast.by_category.at("parameters"); limit < forecast.smallest_budget; limit += 64) {
    ASSERT_THROW(model.fit(data, {.verbose = 0, .budget = limit}), OutOfMemory) << limit;
    ASSERT_EQ(memory().num_bytes, held.num_bytes) << limit;
    ASSERT_EQ(model.optimizer().step(), 0);
  }
  EXPECT_EQ(values_of(model), before);
  for (std::size_t limit = forecast.smallest_budget; limit <= forecast.peak_bytes; limit += 64) {
    Model trained = which.make();
    ASSERT_LE(trained.fit(data, {.verbose = 0, .budget = limit}).peak_bytes(), limit);
  }
}

TEST(FitBudget, TheProgressSaysHowMuchIsRecomputed) {
  EXPECT_EQ(Progress::recomputing(0), "");
  EXPECT_EQ(Progress::recomputing(0.004), ", recomputing less than 1 %");
  EXPECT_EQ(Progress::recomputing(0.12), ", recomputing 12 %");
  const BudgetModel which = budget_mlp(8, 32, 96);
  Model model = which.make();
  const std::size_t gate = model.forecast({.batch_size = which.batch}).smallest_budget;
  testing::internal::CaptureStdout();
  model.fit(which.batches(1), {.verbose = 2, .budget = gate});
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_THAT(printed, HasSubstr("times as long as without a budget"));
  EXPECT_THAT(printed, HasSubstr(", recomputing "));
}

// A callback that shares the weights makes the next step copy them; what earlier steps left is freed meanwhile.
struct HoldWeights : CallbackBase {
  void on_epoch_end(Model& model, int, const Logs&) override {
    held.clear();
    for (const Variable& weight : model.weights()) held.push_back(weight.value());
  }
  std::vector<Tensor> held;
};

TEST(FitBudget, CountsWhatStepsLeftBehindOnlyWhileItIsThere) {
  Sequential model({layers::Dense(128, {.input_shape = {128}, .seed = 1}), layers::Dense(1, {.seed = 2})});
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.01f}), .loss = losses::MeanSquaredError()});
  const Tensor x = random_normal({40, 128}, {.seed = 1}), y = x.mean({1}, {.keep_dims = true});
  const Dataset data = Dataset::from_tensor_slices(x, y).batch(32);  // Batches of 32 and of 8: two plans.
  MemoryForecast forecast = model.forecast(data);
  const std::size_t budget = forecast.peak_bytes + 4 * forecast.by_category["parameters"];
  const History history = model.fit(
      data, {.epochs = 12, .verbose = 0, .callbacks = {Callback(std::make_shared<HoldWeights>())}, .budget = budget});
  EXPECT_EQ(history.num_epochs(), 12);
  EXPECT_LE(history.peak_bytes(), budget);
}

TEST(FitBudget, RefusalsSayWhenAStepIsTooLongToRecompute) {
  MemoryForecast needed;
  needed.front = {{1000, 1}};
  needed.floor_step = "dense/matmul";
  EXPECT_THAT(describe_recomputing(needed, {.sufficient = 1000}), testing::HasSubstr("recomputing does not help"));
  EXPECT_EQ(describe_recomputing(needed, {.sufficient = 1000, .too_long = 25'000}),
            "a step of 25000 operations is too long to look for plans that recompute");
}

}  // namespace
}  // namespace plimsoll
