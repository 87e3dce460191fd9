#include "plimsoll/model/training/forecast.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

Sequential make_model() {
  Sequential model({layers::Dense(64, {.activation = "relu", .input_shape = {20}, .seed = 1}),
                    layers::Dropout(0.2, {.seed = 2}), layers::Dense(32, {.activation = "tanh", .seed = 3}),
                    layers::Dense(1, {.seed = 4})});
  model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  return model;
}

struct Data {
  Tensor x = random_normal({96, 20}, {.seed = 1});
  Tensor y = x.mean({1}, {.keep_dims = true});
  Dataset rows() const { return Dataset::from_tensors(x, y); }
};

TEST(Forecast, IsTheGateOfABudgetToTheByte) {
  const Data data;
  const MemoryForecast forecast = make_model().forecast({.batch_size = 32});
  EXPECT_TRUE(forecast.fits(forecast.smallest_budget));
  EXPECT_FALSE(forecast.fits(forecast.smallest_budget - 1));
  for (const Dataset& batches : {data.rows().batch(32), data.rows().shuffle(96, {.seed = 1}).batch(32)}) {
    Sequential at = make_model(), free = make_model(), below = make_model();
    const History history = at.fit(batches, {.epochs = 2, .verbose = 0, .budget = forecast.smallest_budget});
    EXPECT_EQ(history.peak_bytes(), forecast.smallest_budget);
    EXPECT_EQ(free.fit(batches, {.epochs = 2, .verbose = 0}).peak_bytes(), forecast.peak_bytes);
    const auto before = below.predict(data.x).to_vector<float>();
    try {
      below.fit(batches, {.verbose = 0, .budget = forecast.smallest_budget - 1});
      FAIL() << "not refused";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.smallest_sufficient_limit(), forecast.smallest_budget);
      EXPECT_EQ(error.limit(), forecast.smallest_budget - 1);
      EXPECT_NE(std::string(error.what()).find("batch of 32"), std::string::npos) << error.what();
    }
    EXPECT_EQ(below.predict(data.x).to_vector<float>(), before);
    EXPECT_EQ(below.optimizer().step(), 0);
    // A second fit has its state from the first.
    EXPECT_EQ(at.fit(batches, {.verbose = 0, .budget = forecast.smallest_budget}).peak_bytes(),
              forecast.smallest_budget);
    EXPECT_EQ(at.fit(batches, {.verbose = 0, .budget = forecast.peak_bytes}).peak_bytes(), forecast.peak_bytes);
  }
}

// Datasets that hold examples: what they hold is counted, bounded, and foreseen.
TEST(Forecast, CountsWhatAPassHolds) {
  const Data data;
  const auto same = [](const Example& e) { return e; };
  const std::size_t step = make_model().forecast({.batch_size = 32}).smallest_budget;
  const auto buffers = [&](const Dataset& batches) { return batches.node()->held({32 * 80, 32 * 4}).resident; };
  const Dataset streamed = data.rows().map(same).shuffle(48, {.seed = 1}).batch(32),
                some = data.rows().shuffle(20, {.seed = 1}).batch(32),
                ahead = data.rows().shuffle(96, {.seed = 1}).batch(32).prefetch(2);
  for (const Dataset& batches : {streamed, some, ahead}) {
    EXPECT_GT(buffers(batches), 0u);
    const MemoryForecast forecast = make_model().forecast(batches);
    EXPECT_EQ(forecast.smallest_budget, step + buffers(batches));
    Sequential at = make_model(), below = make_model();
    const History history = at.fit(batches, {.epochs = 2, .verbose = 0, .budget = forecast.smallest_budget});
    EXPECT_LE(history.peak_bytes(), forecast.smallest_budget);
    try {
      below.fit(batches, {.verbose = 0, .budget = forecast.smallest_budget - 1});
      FAIL() << "not refused";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.smallest_sufficient_limit(), forecast.smallest_budget);
    }
    EXPECT_EQ(below.optimizer().step(), 0);
  }
  EXPECT_EQ(make_model().forecast(data.rows().shuffle(96).batch(32)).smallest_budget, step);
  EXPECT_THROW(make_model().forecast(data.rows().take(0).batch(2)), InvalidArgument);
}

TEST(Forecast, LookingAtADatasetChangesNoLaterPass) {
  const Data data;
  const auto shuffled = [&] { return data.rows().shuffle(96, {.seed = 5}).batch(32); };
  const Dataset looked_at = shuffled(), fresh = shuffled();
  Sequential a = make_model(), b = make_model();
  const std::size_t budget = a.forecast(looked_at).smallest_budget;
  // One dataset for both: what is looked at before the first step takes no order away from training.
  a.fit(looked_at, {.epochs = 2, .validation_data = looked_at, .verbose = 0, .budget = budget});
  b.fit(fresh, {.epochs = 2, .validation_data = fresh, .verbose = 0});
  EXPECT_EQ(a.predict(data.x).to_vector<float>(), b.predict(data.x).to_vector<float>());
}

TEST(Forecast, AFirstBatchThatDoesNotFitSaysWhatTheFitNeeds) {
  const Data data;
  Sequential model = make_model();
  const std::size_t step = model.forecast({.batch_size = 96}).smallest_budget;
  const std::size_t weights = model.forecast({.batch_size = 1}).by_category.at("parameters");
  for (const std::size_t budget : {weights / 2, weights + 640}) {
    const Dataset stream = data.rows().map([](const Example& e) { return e; }).batch(96);
    try {
      model.fit(stream, {.verbose = 0, .budget = budget});
      FAIL() << "not refused";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.smallest_sufficient_limit(), step);
      EXPECT_NE(std::string(error.what()).find("batch of 96"), std::string::npos) << error.what();
    }
    EXPECT_EQ(model.optimizer().step(), 0);
  }
}

TEST(Forecast, AValidationThatIsLoadedIsNoMoreThanTheStep) {
  const Data data;
  Sequential model = make_model();
  const std::size_t budget = model.forecast({.batch_size = 32}).smallest_budget;
  const History history = model.fit(
      data.rows().shuffle(96, {.seed = 1}).batch(32),
      {.epochs = 2, .validation_data = data.rows().shuffle(96, {.seed = 2}).batch(32), .verbose = 0, .budget = budget});
  EXPECT_EQ(history.peak_bytes(), budget);
}

TEST(Forecast, ABudgetChangesNoBits) {
  const Data data;
  Sequential tight = make_model(), free = make_model();
  const std::size_t budget = tight.forecast({.batch_size = 40}).smallest_budget;
  const Dataset batches = data.rows().batch(40);
  const FitOptions options{.epochs = 3, .validation_data = data.rows().batch(7), .verbose = 0};
  FitOptions within = options;
  within.budget = budget;
  const History a = tight.fit(batches, within), b = free.fit(batches, options);
  EXPECT_EQ(a["loss"], b["loss"]);
  EXPECT_EQ(a["val_mae"], b["val_mae"]);
  EXPECT_EQ(tight.predict(data.x).to_vector<float>(), free.predict(data.x).to_vector<float>());
}

TEST(Forecast, AValidationThatDoesNotFitIsRefusedBeforeTheFirstStep) {
  const Data data;
  Sequential model = make_model();
  const std::size_t budget = model.forecast({.batch_size = 2}).smallest_budget;
  EXPECT_THROW(
      model.fit(data.rows().batch(2), {.validation_data = data.rows().batch(96), .verbose = 0, .budget = budget}),
      OutOfMemory);
  EXPECT_EQ(model.optimizer().step(), 0);
  EXPECT_THROW(model.fit(data.rows().batch(2), {.verbose = 0, .budget = 1}), OutOfMemory);
}

TEST(Forecast, TakesNoTensorMemory) {
  Sequential model = make_model();
  const MemoryInfo before = memory();
  reset_memory_stats();
  const std::size_t peak = memory_stats().peak_bytes_in_use;
  const std::size_t allocations = memory_stats().num_allocs;
  const MemoryForecast forecast = model.forecast({.batch_size = 1 << 20});
  EXPECT_GT(forecast.peak_bytes, 100_MiB);
  EXPECT_EQ(memory_stats().peak_bytes_in_use, peak);
  EXPECT_EQ(memory_stats().num_allocs, allocations);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
}

TEST(Forecast, BytesThatAGradientTakesOverLaterAreActivationsBefore) {
  Sequential model({layers::Dense(64, {.activation = "relu", .input_shape = {8}}), layers::Dense(1)});
  model.compile({.optimizer = "adam", .loss = "mse"});
  const MemoryForecast forecast = model.forecast({.batch_size = 512});
  EXPECT_GE(forecast.by_category.at("activations"), 512u * 64 * 4);
  EXPECT_GE(forecast.by_category.at("gradients"), 512u * 64 * 4);
}

TEST(Forecast, CategoriesAddUpToThePeak) {
  const MemoryForecast forecast = make_model().forecast({.batch_size = 32});
  std::size_t sum = 0;
  for (const auto& [category, bytes] : forecast.by_category) sum += bytes;
  EXPECT_EQ(sum, forecast.peak_bytes);
  EXPECT_EQ(forecast.by_category.at("optimizer"), 2 * forecast.by_category.at("parameters"));
  EXPECT_GT(forecast.by_category.at("activations"), 0u);
  EXPECT_EQ(forecast.by_category.at("inputs"), 32u * 20 * 4 + 128);
  EXPECT_LE(forecast.lower_bound_bytes, forecast.peak_bytes);
  EXPECT_NE(forecast.to_string().find("activations"), std::string::npos);
}

TEST(Forecast, TheLargestBatchFitsAndTheNextDoesNot) {
  Sequential model = make_model();
  for (const std::size_t bytes : {100_KiB, 300_KiB, 2_MiB}) {
    const std::size_t batch = model.max_batch_size(bytes);
    ASSERT_GT(batch, 0u);
    EXPECT_TRUE(model.forecast({.batch_size = batch}).fits(bytes));
    EXPECT_FALSE(model.forecast({.batch_size = batch + 1}).fits(bytes));
  }
  EXPECT_EQ(model.max_batch_size(1_KiB), 0u);
}

TEST(Forecast, RefusesWhatIsNotKnown) {
  Sequential unbuilt({layers::Dense(3)});
  EXPECT_THROW(unbuilt.forecast(), FailedPrecondition);
  unbuilt.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THROW(unbuilt.forecast(), FailedPrecondition);
  EXPECT_THROW(make_model().forecast({.batch_size = 0}), InvalidArgument);
  Sequential sizes({layers::Conv2D(3, {3, 3}, {.input_shape = {-1, -1, 3}})});
  sizes.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THROW(sizes.forecast(), FailedPrecondition);
  const Example batch{.inputs = {zeros({2, 9, 9, 3})}, .targets = {zeros({2, 7, 7, 3})}};
  EXPECT_GT(sizes.forecast(batch).peak_bytes, 0u);
}

// Models that TensorFlow.js saved, trained at the smallest budget their forecast names.
TEST(Forecast, IsTrueToTheByteForPublishedModels) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(SHARED_DATA) / "fixtures/tfjs";
  if (!fs::exists(root)) GTEST_SKIP() << "no fixtures";
  int trained = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!fs::exists(entry.path() / "inputs.json")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    Model model = load_layers_model((entry.path() / "model.json").string());
    const auto inputs = load_json_tensors((entry.path() / "inputs.json").string());
    const std::vector<Tensor> outputs = model.predict_all(inputs);
    model.compile({.optimizer = "adam", .loss = "mse"});
    const auto batch = static_cast<std::size_t>(inputs[0].shape()[0]);
    std::size_t budget = 0;
    try {
      budget = model.forecast({.batch_size = batch}).smallest_budget;
    } catch (const FailedPrecondition&) {  // Sizes beside the batch's are the data's.
      budget = model.forecast(Example{.inputs = inputs, .targets = outputs}).smallest_budget;
    }
    const Dataset data = Dataset::from_tensors(inputs, outputs).batch(batch);
    EXPECT_THROW(model.fit(data, {.verbose = 0, .budget = budget - 1}), OutOfMemory);
    const History history = model.fit(data, {.epochs = 2, .verbose = 0, .budget = budget});
    EXPECT_EQ(history.peak_bytes(), budget);
    ++trained;
  }
  EXPECT_GT(trained, 15);
}

}  // namespace
}  // namespace plimsoll
