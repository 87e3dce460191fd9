// Memory refused at every place of a step and of a fit: what is left is a model that has taken whole steps only.
#include <gtest/gtest.h>

#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

// A model with all that a step could leave half done: statistics, states, random draws, constraints.
Model make_one_headed(bool eagerly) {
  const Input in({.shape = {4, 3}});
  const LayerOutput h = layers::LSTM(5, {.stateful = true, .seed = 1, .dropout = 0.3})(in);
  const LayerOutput n = layers::BatchNormalization()(layers::Dropout(0.4, {.seed = 2})(h));
  Model model({in}, {layers::Dense(2, {.activation = "softmax",
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

// One whose logs need longer names, and more room.
Model make_two_headed(bool eagerly) {
  const Input in({.shape = {4, 3}});
  const LayerOutput h = layers::Flatten()(in);
  const auto head = [&](const char* name) {
    return layers::Dense(2, {.activation = "softmax", .name = name, .seed = 1})(h);
  };
  Model model({in}, {head("the first of the two outputs"), head("second")});
  model.compile({.optimizer = optimizers::RMSprop(),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy", metrics::TopK(1)},
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
      Model model = make_one_headed(eagerly), peer = make_one_headed(eagerly);
      for (int i = 0; i < steps_before; ++i)
        for (Model each : {model, peer}) each.train_on_batch(data.x, data.y);
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
  const auto fit = [&](Model& model, std::optional<std::size_t> budget) {
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
    Model peer = make_one_headed(eagerly);
    after[0] = values_of(peer);
    const std::size_t need = fit(peer, {}).peak_bytes();
    const MemoryInfo held = memory();
    std::size_t refused = 0;
    for (std::size_t limit = need - 8192; limit < need; limit += 256) {
      Model model = make_one_headed(eagerly);
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

// What a step moves: weights, slots, what the metrics tell, and the count of steps.
struct Left {
  Values values;
  std::vector<double> metrics;
  std::int64_t steps = 0;
  bool operator==(const Left&) const = default;
};

Left left_in(const Model& model) {
  Left left{.values = values_of(model), .metrics = {}, .steps = model.optimizer().step()};
  for (const auto& metrics : model.network().training.metrics)
    for (const Metric& metric : metrics) left.metrics.push_back(metric.result());
  return left;
}

// `step` is refused its first allocation, its second, ... until it needs no more: it changes nothing, or does without
// (a sort has less room) and is the step that `make` gives elsewhere.
template <class Make, class Step>
void refuse_each_allocation(const Make& make, const Step& step, bool is_first) {
  Model peer = make();
  const Left before = left_in(peer);
  const Logs wanted = step(peer);
  const Left after = left_in(peer);
  Model model = make();
  const MemoryInfo held = memory();
  for (std::size_t refused = 0; !testing::Test::HasFailure(); ++refused) {
    SCOPED_TRACE(testing::Message() << "allocation " << refused);
    try {
      fail_heap_after(refused);
      const Logs logs = step(model);
      const bool had_all = !disarm_heap();
      EXPECT_TRUE(std::equal(logs.begin(), logs.end(), wanted.begin(), wanted.end()));
      EXPECT_TRUE(left_in(model) == after);
      EXPECT_GT(refused, 5u);
      if (had_all) return;
      model = make();
    } catch (const std::bad_alloc&) {
      disarm_heap();
      EXPECT_TRUE(left_in(model) == before);
      if (is_first) continue;  // Slots that it had found are let go by the next.
      EXPECT_EQ(memory().num_tensors, held.num_tensors);
      EXPECT_EQ(memory().num_bytes, held.num_bytes);
    }
  }
}

// The heap refuses too: an allocation of a step, be it the one that plans or a later one.
TEST(FailureInjection, AStepIsRefusedByTheHeapAtEveryAllocation) {
  const Data data;
  const auto refuse = [&](auto make, std::size_t outputs, bool is_first) {
    const Example batch{.inputs = {data.x}, .targets = std::vector<Tensor>(outputs, data.y)};
    for (const bool eagerly : {false, true})
      for (const bool trains : {true, false}) {
        SCOPED_TRACE(testing::Message() << outputs << " outputs, " << (is_first ? "first " : "later ")
                                        << (trains ? "train" : "test") << (eagerly ? ", run directly" : ", planned"));
        const auto step = [&](Model& model) {
          return trains ? model.train_on_batch(batch) : model.test_on_batch(batch);
        };
        const auto prepared = [&] {
          Model model = make(eagerly);
          if (!is_first) step(model);
          return model;
        };
        refuse_each_allocation(prepared, step, is_first);
      }
  };
  refuse(make_one_headed, 1, true);
  refuse(make_one_headed, 1, false);
  refuse(make_two_headed, 2, false);
}

// Refuses an allocation between the beginning of an epoch and the end of the fit.
class RefuseInFit final : public CallbackBase {
 public:
  RefuseInFit(std::size_t after, bool* refused) : after_(after), refused_(refused) {}
  void on_epoch_begin(Model&, int) override { fail_heap_after(after_); }
  void on_train_end(Model&) override { *refused_ = disarm_heap(); }

 private:
  const std::size_t after_;
  bool* const refused_;
};

// A fit that is refused by the heap has taken whole steps, and its metrics are those of these steps.
TEST(FailureInjection, AFitIsRefusedByTheHeapBetweenWholeSteps) {
  const Data data;
  const Example batch{.inputs = {data.x}, .targets = {data.y}};
  const Dataset batches = Dataset::from_tensors(data.x, data.y).batch(6).repeat(2);
  for (const bool eagerly : {false, true}) {
    SCOPED_TRACE(eagerly ? "run directly" : "planned");
    Model model = make_one_headed(eagerly), peer = make_one_headed(eagerly);
    for (Model each : {model, peer}) each.train_on_batch(batch);
    std::size_t refused_after[3] = {};
    bool was_refused = true;
    for (std::size_t refused = 0; was_refused && !HasFailure(); ++refused) {
      try {
        model.fit(batches, {.verbose = 0, .callbacks = {make_callback<RefuseInFit>(refused, &was_refused)}});
      } catch (const std::bad_alloc&) {
      }
      StepMeans means(peer.network());  // The peer takes as many steps.
      std::size_t steps = 0;
      for (; peer.optimizer().step() < model.optimizer().step(); ++steps)
        means.add(run_step(peer.network(), StepKind::kTrain, batch, "test"));
      ASSERT_LE(steps, 2u);
      ++refused_after[steps];
      EXPECT_TRUE(left_in(model) == left_in(peer)) << "allocation " << refused << ", after " << steps << " steps";
    }
    for (const std::size_t each : refused_after) EXPECT_GT(each, 0u);
  }
}

}  // namespace
}  // namespace plimsoll
