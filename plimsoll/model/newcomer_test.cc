// What people try first, and should be told about.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/model/training/monitor.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

Sequential classifier() {
  Sequential model({layers::Dense(3, {.activation = "softmax", .input_shape = {4}, .seed = 1})});
  model.compile({.loss = losses::SparseCategoricalCrossentropy()});
  return model;
}

TEST(ModelNewcomer, IsToldOfLabelsThatAreNoWholeNumbers) {
  Sequential model = classifier();
  const Tensor x = random_normal({8, 4}, {.seed = 1});
  EXPECT_NO_THROW(model.train_on_batch(x, full({8}, 2.f)));
  for (const float label : {1.5f, -0.5f, std::numeric_limits<float>::quiet_NaN(), 3.f, 1e20f})
    EXPECT_THROW(model.train_on_batch(x, full({8}, label)), InvalidArgument) << label;
}

TEST(ModelNewcomer, IsToldOfDataWithoutBatches) {
  Sequential model = classifier();
  const Tensor x = random_normal({8, 4}, {.seed = 1}), y = zeros({8}, i32);
  const Dataset none = Dataset::from_tensors(zeros({0, 4}), zeros({0}, i32)).batch(4);
  EXPECT_THROW(model.evaluate(none), InvalidArgument);
  EXPECT_THROW(model.fit(x, y, {.validation_data = none, .verbose = 0}), InvalidArgument);
}

TEST(ModelNewcomer, TrainsAtTheSmallestBudgetBesideCallbacks) {
  Sequential model = classifier();
  const Tensor x = random_normal({64, 4}, {.seed = 1}), y = zeros({64}, i32);
  testing::internal::CaptureStdout();
  const History history = model.fit(
      x, y,
      {.epochs = 5,
       .verbose = 2,
       .callbacks = {callbacks::EarlyStopping({.monitor = "loss", .patience = 9, .restore_best_weights = true})},
       .budget = model.forecast({.batch_size = 32}).smallest_budget});
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_EQ(history["loss"].size(), 5u);
  EXPECT_NE(shown.find(" KiB, peak "), std::string::npos) << shown;
  EXPECT_NE(shown.find(" of "), std::string::npos) << shown;  // Of its budget.
}

TEST(ModelNewcomer, IsToldOfACallbackThatIsNone) { EXPECT_THROW(Callback(nullptr), InvalidArgument); }

TEST(Monitor, TakesNaNForNoImprovement) {
  Monitor monitor("loss", 0);
  const auto improves = [&](float value) {
    Logs logs;
    logs.set("loss", value);
    return monitor.improves(logs).value();
  };
  EXPECT_FALSE(improves(std::nanf("")));
  EXPECT_TRUE(improves(2));
  EXPECT_FALSE(improves(std::nanf("")));
  EXPECT_TRUE(improves(1));
}

}  // namespace
}  // namespace plimsoll
