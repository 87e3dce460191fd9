// Training with indices that a step computes: one that is refused changes nothing, on the default device (the suites on
// the far device run this file too) and on an OpenCL device, where it is found after the whole step was submitted.
#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/opencl/opencl_testing.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

// Rows of a table, by numbers that are computed from floats.
class Lookup : public LayerBase {
 public:
  const char* class_name() const override { return "Lookup"; }
  void build(const Shapes&) override { table_ = add_weight("table", {10, 3}, {.initializer = "glorot_uniform"}); }
  Tensor call(const Tensor& x, CallContext&) override { return gather(*table_, (x * 2.f).cast(i32)).sum({1}); }

 private:
  std::optional<Variable> table_;
};

Model lookup_model(bool eagerly) {
  config::set_seed(11);
  Sequential model({make_layer<Lookup>(), layers::Dense(6, {.activation = "relu", .seed = 1}),
                    layers::BatchNormalization(), layers::Dense(1, {.seed = 2})});
  model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}, .run_eagerly = eagerly});
  return model;
}

constexpr const char* kText =
    "index 12 at position [2, 1] of the indices [4, 3] is outside of axis 0 of shape [10, 3], "
    "of size 10; use 0 to 9";

// Inputs are half of the numbers of rows.
Tensor good_batch() { return arange(0, 12).cast(f32).reshape({4, 3}) % 5.f; }
Tensor wrong_batch() {
  std::vector<float> values = good_batch().to_vector<float>();
  values[7] = 6;
  return from_vector(values, {4, 3});
}

// Trains, with wrong batches in between or without. They change neither weights, statistics nor the optimizer.
Values trained(bool eagerly, bool with_wrong_batches) {
  const Tensor x = good_batch(), wrong = wrong_batch(), y = ones({4, 1});
  Model model = lookup_model(eagerly);
  for (int i = 0; i < 4; ++i) {
    EXPECT_GT(model.train_on_batch(x, y)["loss"], 0);
    if (!with_wrong_batches) continue;
    const Values before = values_of(model);
    EXPECT_THAT(refusal([&] { model.train_on_batch(wrong, y); }), HasSubstr(kText));
    EXPECT_EQ(values_of(model), before);
    EXPECT_EQ(model.optimizer().step(), i + 1);
    EXPECT_THAT(refusal([&] { model.predict(wrong).to_vector<float>(); }), HasSubstr(kText));
    EXPECT_THAT(refusal([&] { model.test_on_batch(wrong, y); }), HasSubstr(kText));
  }
  Values result = values_of(model);
  result.push_back({static_cast<float>(model.train_on_batch(x, y)["mae"])});
  return result;
}

void expect_nothing_changes(bool eagerly) {
  SCOPED_TRACE(eagerly ? "eagerly" : "planned");
  EXPECT_EQ(trained(eagerly, true), trained(eagerly, false));
}

TEST(RefusedIndices, ThatAStepComputesChangeNothing) {
  expect_nothing_changes(false);
  expect_nothing_changes(true);
}

// Statistics are changed in the forward pass, before the loss looks at the labels.
void expect_labels_change_nothing(bool eagerly) {
  const auto make = [&] {
    Sequential model({layers::Dense(6, {.input_shape = {3}, .seed = 1}), layers::BatchNormalization(),
                      layers::Dense(4, {.seed = 2})});
    model.compile({.optimizer = "adam",
                   .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .run_eagerly = eagerly});
    return model;
  };
  Model model = make();
  const Tensor x = good_batch(), labels = constant({0, 3, 1, 2}), wrong = constant({0, 3, 4, 2});
  for (int i = 0; i < 2; ++i) {
    model.train_on_batch(x, labels);
    const Values before = values_of(model);
    EXPECT_THAT(refusal([&] { model.train_on_batch(x, wrong); }),
                HasSubstr("label 4 at position 2 is not one of the 4 classes, which count from 0"));
    EXPECT_EQ(values_of(model), before);
    EXPECT_EQ(model.optimizer().step(), i + 1);
  }
}

TEST(RefusedIndices, LabelsChangeNothing) { expect_labels_change_nothing(false); }

TEST(RefusedIndices, OfAFunctionAreThrownWhenItsResultIsRead) {
  const Tensor table = random_normal({10, 3}, {.seed = 1});
  const auto f = function([&](Tensor x) { return gather(table, (x * 2.f).cast(i32)).sum({1}); });
  EXPECT_EQ(f(good_batch()).shape(), Shape({4, 3}));
  EXPECT_THAT(refusal([&] { f(wrong_batch()).to_vector<float>(); }), HasSubstr(kText));
  EXPECT_EQ(f(good_batch()).to_vector<float>().size(), 12u);
}

class OpenclRefusedIndices : public OpenclFixture {};

TEST_F(OpenclRefusedIndices, ThatAStepComputesChangeNothing) {
  const DeviceScope on(name());
  expect_nothing_changes(false);
  expect_nothing_changes(true);
}

TEST_F(OpenclRefusedIndices, LabelsChangeNothing) {
  const DeviceScope on(name());
  expect_labels_change_nothing(false);
}

TEST_F(OpenclRefusedIndices, CostASteadyStepNoWait) {
  const DeviceScope on(name());
  Model model = lookup_model(false);
  const Tensor x = good_batch().to("CPU:0"), y = ones({4, 1}).to("CPU:0");
  for (int i = 0; i < 3; ++i) model.train_on_batch(x, y);
  backend().reset_counters();
  for (int i = 0; i < 5; ++i) model.train_on_batch(x, y);
  const DeviceCounters counters = backend().counters();
  EXPECT_EQ(counters.waits, 5u);
  EXPECT_EQ(counters.fallbacks, 0u);
  EXPECT_EQ(counters.driver_allocations, 0u);
  EXPECT_EQ(counters.bytes_in, 5 * (x.nbytes() + y.nbytes()));
  EXPECT_EQ(counters.bytes_out, 5 * (3 * sizeof(float) + 16));  // The losses, the metric, and what was refused.
}

// A function that changes nothing does not even wait at its end.
TEST_F(OpenclRefusedIndices, OfAFunctionAreThrownWhenItsResultIsRead) {
  const DeviceScope on(name());
  const Tensor table = random_normal({10, 3}, {.seed = 1}), x = good_batch(), wrong = wrong_batch();
  const auto f = function([&](Tensor in) { return gather(table, (in * 2.f).cast(i32)).sum({1}); });
  f(x).to_vector<float>();
  backend().reset_counters();
  const Tensor good = f(x), bad = f(wrong);
  EXPECT_EQ(backend().counters().waits, 0u);
  EXPECT_THAT(refusal([&] { good.to_vector<float>(); }), HasSubstr(kText));  // The first call that reads.
  EXPECT_EQ(good.to_vector<float>(), f(x).to_vector<float>());
}

// The indices on the device, the variables on the host: it is known before they change.
TEST_F(OpenclRefusedIndices, OnAnotherDeviceThanTheVariables) {
  const Variable w(ones({4, 3}), {.name = "w"}), count(zeros({}), {.name = "count"});
  const Tensor table = random_normal({10, 3}, {.seed = 1}).to(name());
  const auto step = function([&](Tensor in) {
    const Tensor sum = gather(table, (in.to(name()) * 2.f).cast(i32)).sum({1});
    count.assign_add(ones({}));
    w.assign_add(sum.to("CPU:0"));
    return w.value().sum();
  });
  step(good_batch());
  const auto before = w.value().to_vector<float>();
  EXPECT_THAT(refusal([&] { step(wrong_batch()); }), HasSubstr(kText));
  EXPECT_EQ(w.value().to_vector<float>(), before);
  EXPECT_EQ(count.value().item<float>(), 1);
  step(good_batch());
  EXPECT_EQ(count.value().item<float>(), 2);
}

}  // namespace
}  // namespace plimsoll
