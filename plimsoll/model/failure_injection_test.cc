// Memory refused at every place of a step and of a fit: what is left is a model that has taken whole steps only.
#include <gtest/gtest.h>

#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/callbacks.h"
#include "plimsoll/model/core_layers.h"
#include "plimsoll/model/internal/train_step.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/normalization_layers.h"
#include "plimsoll/model/recurrent_layers.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using Values = std::vector<std::vector<float>>;

Values values_of(const Model& model) {
  Values result;
  for (const Variable& weight : model.weights()) result.push_back(weight.value().to_vector<float>());
  for (const Variable& weight : model.trainable_weights())
    for (const Optimizer::Slot& slot : model.optimizer().slots(weight)) result.push_back(slot.value.to_vector<float>());
  return result;
}

// A model with all that a step could leave half done: statistics, states, random draws, constraints.
Model make_model(bool eagerly) {
  const Input in({.shape = {4, 3}});
  const LayerOutput h = layers::LSTM(5, {.stateful = true, .seed = 1, .dropout = 0.3})(in);
  const LayerOutput n = layers::BatchNormalization()(layers::Dropout(0.4, {.seed = 2})(h));
  const Model model({in}, {layers::Dense(2, {.activation = "softmax",
                                             .seed = 3,
                                             .kernel_regularizer = Regularizer::l2(0.01),
                                             .kernel_constraint = Constraint::max_norm(1)})(n)});
  model.compile({.optimizer = optimizers::Adam(),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"},
                 .global_clip_norm = 1,
                 .run_eagerly = eagerly});
  return model;
}

struct Data {
  Tensor x = random_normal({6, 4, 3}, {.seed = 1});
  Tensor y = constant({0, 1, 1, 0, 1, 0});
};

// Every limit below what it needs, a block apart: whichever allocation passes one is refused.
TEST(FailureInjection, AStepIsRefusedAtEveryBlock) {
  const Data data;
  for (const bool eagerly : {false, true}) {
    SCOPED_TRACE(eagerly ? "run directly" : "planned");
    for (const int steps_before : {0, 1}) {
      const Model model = make_model(eagerly), peer = make_model(eagerly);
      for (int i = 0; i < steps_before; ++i)
        for (const Model& each : {model, peer}) each.train_on_batch(data.x, data.y);
      const Values before = values_of(model);
      std::size_t need = 0;
      {
        const Budget probe("probe", 1 << 30);
        const BudgetScope use(probe);
        peer.train_on_batch(data.x, data.y);
        need = probe.peak();
      }
      const MemoryInfo held = memory();
      std::size_t refused = 0;
      for (std::size_t limit = 64; limit < need; limit += 64) {
        const Budget tight("tight", limit);
        const BudgetScope use(tight);
        ASSERT_THROW(model.train_on_batch(data.x, data.y), OutOfMemory) << limit << " of " << need;
        ASSERT_EQ(memory().num_tensors, held.num_tensors) << limit;
        ASSERT_EQ(memory().num_bytes, held.num_bytes) << limit;
        ASSERT_EQ(tight.used(), 0u) << limit;
        ++refused;
      }
      EXPECT_GE(refused, need / 64 - 1);
      EXPECT_EQ(values_of(model), before);
      EXPECT_EQ(model.optimizer().step(), steps_before);
      // The next step is the one that would have been taken: the same draws, states and statistics.
      model.train_on_batch(data.x, data.y);
      EXPECT_EQ(values_of(model), values_of(peer));
    }
  }
}

// Over a dataset that holds examples, with validation, class weights and a callback.
TEST(FailureInjection, AFitThatIsRefusedHasTakenWholeSteps) {
  const Tensor x = random_normal({18, 4, 3}, {.seed = 1}), y = random_uniform({18}, 0, 2, {.seed = 2, .dtype = i32});
  const Dataset rows = Dataset::from_tensors(x, y);
  std::map<std::int64_t, Values> after;  // By the optimizer's step.
  const auto fit = [&](const Model& model, std::optional<std::size_t> budget) {
    const Dataset data =
        rows.map([](const Example& e) { return e; }).shuffle(9, {.seed = 4}).batch(6, {.drop_remainder = true});
    return model.fit(data, {.epochs = 2,
                            .validation_data = rows.batch(6),
                            .verbose = 0,
                            .callbacks = {callbacks::OnBatchEnd([&](Model& trained, std::size_t, const Logs&) {
                              if (!budget) after[trained.optimizer().step()] = values_of(trained);
                            })},
                            .budget = budget,
                            .class_weights = {{0, 2.0}}});
  };
  for (const bool eagerly : {false, true}) {
    SCOPED_TRACE(eagerly ? "run directly" : "planned");
    after.clear();
    const Model peer = make_model(eagerly);
    after[0] = values_of(peer);
    const std::size_t need = fit(peer, {}).peak_bytes();
    const MemoryInfo held = memory();
    std::size_t refused = 0;
    for (std::size_t limit = need - 8192; limit < need; limit += 256) {
      const Model model = make_model(eagerly);
      EXPECT_THROW(fit(model, limit), OutOfMemory) << limit << " of " << need;
      ++refused;
      const std::int64_t steps = model.optimizer().step();
      if (!eagerly) {
        EXPECT_EQ(steps, 0) << limit;  // Refused before the first.
      }
      if (steps > 0) {
        EXPECT_EQ(values_of(model), after[steps]) << limit;
      }
    }
    EXPECT_GT(refused, 20u);
    EXPECT_EQ(memory().num_tensors, held.num_tensors);
    EXPECT_EQ(memory().num_bytes, held.num_bytes);
  }
}

// The heap refuses too: the first, the second, ... allocation of a step.
TEST(FailureInjection, AStepIsRefusedByTheHeapAtEveryAllocation) {
  const Data data;
  for (const bool eagerly : {false, true}) {
    SCOPED_TRACE(eagerly ? "run directly" : "planned");
    const Model model = make_model(eagerly), peer = make_model(eagerly);
    for (const Model& each : {model, peer}) each.train_on_batch(data.x, data.y);
    const Values before = values_of(model);
    const MemoryInfo held = memory();
    std::size_t refused = 0;
    for (bool done = false; !done && refused < 20000; refused += !done) {
      fail_heap_after(refused);
      try {
        train_step(model.network(), {.inputs = {data.x}, .targets = {data.y}});
        done = true;
      } catch (const std::bad_alloc&) {
        ASSERT_EQ(memory().num_tensors, held.num_tensors) << refused;
        ASSERT_EQ(model.optimizer().step(), 1) << refused;
      }
      disarm_heap();
      if (!done) {
        ASSERT_EQ(values_of(model), before) << refused;
      }
    }
    EXPECT_GT(refused, 1u);
    peer.train_on_batch(data.x, data.y);
    EXPECT_EQ(values_of(model), values_of(peer));
  }
}

}  // namespace
}  // namespace plimsoll
