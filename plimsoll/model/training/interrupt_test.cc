// A check of the embedding program ends predictions, evaluations and loops, and leaves nothing behind.
#include "plimsoll/base/interrupt.h"

#include <gtest/gtest.h>

#include "plimsoll/graph/control_flow.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

struct Stopped {};
int calls = 0;

class Interrupt : public testing::Test {
 protected:
  Interrupt() {
    calls = 0;
    EXPECT_EQ(set_interrupt_check([] {
                if (++calls == 3) throw Stopped();
              }),
              nullptr);
  }
  ~Interrupt() override { set_interrupt_check(nullptr); }
};

TEST_F(Interrupt, EndsPredictionsAndEvaluationsBetweenBatches) {
  Model model = Sequential({layers::Dense(4, {.input_shape = {3}})});
  model.compile({.optimizer = "adam", .loss = "mse"});
  const Tensor x = random_normal({64, 3}), y = zeros({64, 4});
  model.train_on_batch({{x}, {y}, {}});
  const Values before = values_of(model);
  const std::size_t tensors = memory().num_tensors;
  EXPECT_THROW(model.predict(x, {.batch_size = 8}), Stopped);
  EXPECT_EQ(calls, 3);
  calls = 0;
  EXPECT_THROW(model.evaluate(x, y, {.batch_size = 8}), Stopped);
  EXPECT_EQ(memory().num_tensors, tensors);
  EXPECT_EQ(values_of(model), before);
  EXPECT_EQ(model.predict(x, {.batch_size = 8}).shape(), Shape({64, 4}));  // The check has had its turn.
  EXPECT_EQ(calls, 3 + 8);
}

TEST_F(Interrupt, EndsValidationAndLeavesTheStepsBefore) {
  Model model = Sequential({layers::Dense(4, {.input_shape = {3}})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = random_normal({64, 3}), y = zeros({64, 4});
  const Dataset rows = Dataset::from_tensors(x, y).batch(8);
  const Values before = values_of(model);
  EXPECT_THROW(model.fit(rows, {.validation_data = rows, .verbose = 0}), Stopped);
  EXPECT_NE(values_of(model), before);
  EXPECT_EQ(model.fit(rows, {.validation_data = rows, .verbose = 0}).num_epochs(), 1u);
}

TEST_F(Interrupt, EndsLoopsOfGraphsBetweenRounds) {
  const auto endless = function([](const Tensor& x) {
    return while_loop([](const Tensor& s) { return s.sum() < 1e9f; }, [](const Tensor& s) { return s + 0.f; }, x);
  });
  const Tensor x = ones({4});
  EXPECT_THROW(endless(x), Stopped);
  const std::size_t tensors = memory().num_tensors;
  calls = 0;
  EXPECT_THROW(endless(x), Stopped);
  EXPECT_EQ(memory().num_tensors, tensors);
}

}  // namespace
}  // namespace plimsoll
