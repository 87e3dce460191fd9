// Steps as planned programs: the bits of direct ones, what they take, when they are planned again.
#include <gtest/gtest.h>

#include <functional>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/attention_layers.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

struct Case {
  const char* name;
  std::function<Model()> make;
  Shape input, target;
  DType target_dtype = f32;
  CompileOptions options;
};

std::vector<Case> cases() {
  return {
      {"mlp with dropout",
       [] {
         return Sequential({layers::Dense(16, {.activation = "relu", .input_shape = {10}, .seed = 3}),
                            layers::Dropout(0.3, {.seed = 4}), layers::Dense(1, {.activation = "sigmoid", .seed = 5})});
       },
       {7, 10},
       {7, 1},
       f32,
       {.optimizer = "adam", .loss = "binary_crossentropy", .metrics = {"accuracy", "auc", "mae"}}},
      {"convolutions with batch norm",
       [] {
         return Sequential(
             {layers::Conv2D(4, {3, 3}, {.padding = "same", .activation = "relu", .input_shape = {8, 8, 2}, .seed = 1}),
              layers::BatchNormalization(), layers::MaxPooling2D({2, 2}), layers::Flatten(),
              layers::Dense(3, {.activation = "softmax", .seed = 2})});
       },
       {5, 8, 8, 2},
       {5},
       i32,
       {.optimizer = optimizers::SGD({.momentum = 0.9}),
        .loss = "sparse_categorical_crossentropy",
        .metrics = {"accuracy"},
        .clip_norm = 0.5}},
      {"stateful recurrence, regularized and constrained",
       [] {
         return Sequential({layers::LSTM(6, {.stateful = true, .input_shape = {4, 3}, .seed = 1}),
                            layers::Dense(2, {.seed = 2,
                                              .kernel_regularizer = Regularizer::l2(0.01),
                                              .kernel_constraint = Constraint::max_norm(1)})});
       },
       {6, 4, 3},
       {6, 2},
       f32,
       {.optimizer = "rmsprop", .loss = "mse", .metrics = {"mae"}, .global_clip_norm = 1}},
      {"embedding",
       [] {
         return Sequential({layers::Embedding(20, 4, {.input_length = 5, .seed = 1}), layers::GlobalAveragePooling1D(),
                            layers::Dense(1, {.seed = 2})});
       },
       {4, 5},
       {4, 1},
       f32,
       {.optimizer = "adagrad", .loss = "huber", .clip_value = 0.1}},
  };
}

Tensor input_for(const Case& c, std::uint64_t seed) {
  if (std::string(c.name) == "embedding") return random_uniform(c.input, 0, 20, {.seed = seed, .dtype = i32});
  return random_normal(c.input, {.seed = seed});
}
Tensor target_for(const Case& c, std::uint64_t seed) {
  if (c.target_dtype == i32) return random_uniform(c.target, 0, 3, {.seed = seed, .dtype = i32});
  return random_uniform(c.target, 0, 1, {.seed = seed}).cast(f32);
}

std::pair<Model, Model> planned_and_direct(const Case& c) {
  Model planned = c.make(), direct = c.make();
  planned.compile(c.options);
  CompileOptions eager = c.options;
  eager.run_eagerly = true;
  eager.optimizer = Optimizer(planned.optimizer().options());
  direct.compile(eager);
  return {planned, direct};
}

TEST(StepPlan, GivesTheBitsOfADirectStep) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    auto [planned, direct] = planned_and_direct(c);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const Tensor x = input_for(c, 10 + i), y = target_for(c, 20 + i);
      const Tensor weights = i == 2 ? random_uniform({c.input[0]}, {.seed = 9}) : Tensor();
      const Logs a = planned.train_on_batch(x, y, weights), b = direct.train_on_batch(x, y, weights);
      ASSERT_EQ(a.size(), b.size());
      for (const auto& [name, value] : a) EXPECT_EQ(value, b[name]) << name << " of step " << i;
      EXPECT_EQ(values_of(planned), values_of(direct)) << "step " << i;
      EXPECT_EQ(planned.test_on_batch(x, y)["loss"], direct.test_on_batch(x, y)["loss"]);
      EXPECT_EQ(planned.predict(x).to_vector<float>(), direct.predict(x).to_vector<float>());
    }
    EXPECT_GT(planned.network().training.plans.size(), 0u);
    EXPECT_EQ(direct.network().training.plans.size(), 0u);
  }
}

TEST(StepPlan, TakesNoMoreThanADirectStep) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    std::size_t peaks[2] = {};
    for (const bool eagerly : {false, true}) {
      Model model = c.make();
      CompileOptions options = c.options;
      options.run_eagerly = eagerly;
      model.compile(options);
      const Tensor x = input_for(c, 1), y = target_for(c, 2);
      model.train_on_batch(x, y);
      const Budget budget("step", 1 << 30);
      const BudgetScope scope(budget);
      model.train_on_batch(x, y);
      peaks[eagerly] = budget.peak();
      if (!eagerly) {
        const Example batch{.inputs = {x}, .targets = {y}};
        const MemoryPlan& plan =
            model.network().training.plans.get(StepKind::kTrain, batch, "test")->program().memory_plan();
        EXPECT_EQ(budget.peak(), plan.peak_bytes);
        EXPECT_EQ(plan.peak_bytes, plan.lower_bound_bytes);
      }
    }
    EXPECT_LE(peaks[0], peaks[1]);
  }
}

TEST(StepPlan, AllocatesNothingButItsResult) {
  const Case c = cases()[0];
  Model model = c.make();
  model.compile({.optimizer = "adam", .loss = "mse"});
  const Example batch{.inputs = {input_for(c, 1)}, .targets = {target_for(c, 2)}};
  for (int i = 0; i < 3; ++i) run_step(model.network(), StepKind::kTrain, batch, "test");
  const std::size_t before = heap_allocations();
  for (int i = 0; i < 10; ++i) run_step(model.network(), StepKind::kTrain, batch, "test");
  EXPECT_LE(heap_allocations() - before, 20u);  // Two lists in each result.
}

TEST(StepPlan, IsPlannedAgainWhenTheModelChanges) {
  const Case c = cases()[0];
  const auto pair = planned_and_direct(c);
  const Model &model = pair.first, &twin = pair.second;
  const Tensor x = input_for(c, 1), y = target_for(c, 2);
  const auto both = [&](auto&& f) {
    f(model), f(twin);
    EXPECT_EQ(values_of(model), values_of(twin));
  };
  both([&](Model m) { m.train_on_batch(x, y); });
  both([&](Model m) { m.layers()[0].set_trainable(false); });
  both([&](Model m) { m.train_on_batch(x, y); });
  both([&](Model m) { m.layers()[0].set_trainable(true); });
  both([&](Model m) { m.train_on_batch(x, y); });
  both([&](Model m) { m.optimizer().set_learning_rate(0.5); });
  both([&](Model m) { m.train_on_batch(x, y); });
  both([&](Model m) { m.weights()[0].assign(zeros({10, 16})); });
  both([&](Model m) { m.train_on_batch(x, y); });
  EXPECT_EQ(model.predict(x).to_vector<float>(), twin.predict(x).to_vector<float>());
}

TEST(StepPlan, ASequenceThatGrowsIsTracedAgain) {
  Sequential model({layers::Dense(3, {.input_shape = {2}, .seed = 1})});
  const Tensor x = ones({1, 2});
  EXPECT_EQ(model.predict(x).shape(), Shape({1, 3}));
  model.add(layers::Dense(5, {.seed = 2}));
  EXPECT_EQ(model.predict(x).shape(), Shape({1, 5}));
}

class Looks final : public LayerBase {
 public:
  const char* class_name() const override { return "Looks"; }
  Tensor call(const Tensor& x, CallContext&) override {
    ++calls;
    return x.sum().item<float>() > 0 ? x : -x;
  }
  int calls = 0;
};

TEST(StepPlan, ALayerThatLooksAtElementsIsRunDirectly) {
  const auto looks = std::make_shared<Looks>();
  Sequential model({layers::Dense(3, {.input_shape = {2}, .seed = 1}), Layer(looks)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = ones({4, 2}), y = ones({4, 3});
  const float first = model.train_on_batch(x, y)["loss"];
  const int calls = looks->calls;
  EXPECT_LT(model.train_on_batch(x, y)["loss"], first);
  EXPECT_EQ(looks->calls, calls + 1);  // Tracing was tried once only.
}

TEST(StepPlan, SaysWhatADirectStepSaysOfABatchThatDoesNotFit) {
  const Case c = cases()[0];
  Model planned = c.make(), direct = c.make();
  planned.compile(c.options);
  CompileOptions eager = c.options;
  eager.run_eagerly = true;
  direct.compile(eager);
  const auto message = [&](Model& model) -> std::string {
    try {
      model.train_on_batch(input_for(c, 1), zeros({7, 2}));
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(message(planned), message(direct));
  EXPECT_NE(message(planned), "none");
}

TEST(StepPlan, ShapesThatComeAndGoStayWithinABound) {
  Sequential model({layers::Dense(3, {.input_shape = {2}, .seed = 1})});
  for (std::int64_t batch = 1; batch < 200; ++batch) model.predict(ones({batch, 2}), {.batch_size = 1000});
  EXPECT_LE(model.network().training.plans.bytes(), std::size_t{32} << 20);
}

}  // namespace
}  // namespace plimsoll
