// Models on several logical devices: layers run where their weights are, and training gives the bits of one device.
#include <gmock/gmock.h>

#include <random>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

class ModelDevices : public testing::Test {
 protected:
  void SetUp() override {
    config::reset_for_testing();
    const auto cpu = config::list_physical_devices("CPU").at(0);
    config::set_logical_device_configuration(
        cpu, {{.memory_limit = 32_MiB}, {.memory_limit = 32_MiB}, {.memory_limit = 32_MiB}});
  }
  void TearDown() override { config::reset_for_testing(); }
};

// Weights of which the layer makes use on another device than theirs.
class Far : public LayerBase {
 public:
  const char* class_name() const override { return "Far"; }
  void build(const Shapes& in) override { w_ = add_weight("w", {in[0].back()}, {.initializer = "ones"}); }
  Tensor call(const Tensor& x, CallContext&) override { return (x.to("CPU:1") * Tensor(*w_).to("CPU:1")).to("CPU:0"); }

 private:
  std::optional<Variable> w_;
};

TEST_F(ModelDevices, ALayerThatComputesElsewhereTrainsPlannedAndDirectly) {
  const auto trained = [](bool eagerly) {
    Sequential model({make_layer<Far>()});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.1}), .loss = "mse", .run_eagerly = eagerly});
    const Tensor x = random_normal({64, 3}, {.seed = 1});
    const History history = model.fit(x, x * 3.f, {.epochs = 30, .verbose = 0, .shuffle = false});
    EXPECT_LT(history["loss"].back(), history["loss"].front() / 100);
    return values_of(model);
  };
  EXPECT_EQ(trained(false), trained(true));
}

TEST_F(ModelDevices, AModelAndItsDataElsewhereTrainOutsideOfTheScope) {
  const auto trained = [](const std::string& device, const std::string& data, bool eagerly) {
    Sequential model;
    {
      const DeviceScope on(device);
      model.add(layers::Dense(8, {.activation = "relu", .input_shape = {4}, .seed = 1}));
      model.add(layers::BatchNormalization());
      model.add(layers::Dropout(0.2, {.seed = 2}));
      model.add(layers::Dense(1, {.seed = 3}));
      model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}, .run_eagerly = eagerly});
    }
    for (const Variable& weight : model.weights()) EXPECT_EQ(weight.device(), device);
    const Tensor x = random_normal({20, 4}, {.seed = 5}).to(data), y = x.sum({1}, {.keep_dims = true});
    const Dataset rows = Dataset::from_tensors(x, y).shuffle(20, {.seed = 6}).batch(8);
    const History history = model.fit(rows, {.epochs = 3, .validation_data = rows, .verbose = 0});
    EXPECT_EQ(model.predict(x).device(), device);
    EXPECT_EQ(model(x).device(), device);
    Values values = values_of(model);
    values.push_back(history["loss"]);
    values.push_back(history["val_mae"]);
    values.push_back(model.predict(x, {.batch_size = 7}).to_vector<float>());
    return values;
  };
  const Values expected = trained("CPU:0", "CPU:0", true);
  for (const char* device : {"CPU:0", "CPU:1"})
    for (const char* data : {"CPU:0", "CPU:1", "CPU:2"})
      for (const bool eagerly : {false, true}) EXPECT_EQ(trained(device, data, eagerly), expected) << device << data;
}

// Two towers that are added, regularized, clipped together, with weighted examples.
TEST_F(ModelDevices, TowersOfAFunctionalModelAreWhereTheyWereMade) {
  const auto trained = [](bool apart, bool eagerly) {
    const auto tower = [&](const LayerOutput& in, int device, const char* name) {
      const DeviceScope on(apart ? "CPU:" + std::to_string(device) : "CPU:0");
      const LayerOutput h =
          layers::LSTM(5, {.return_sequences = false, .name = std::string(name) + "_lstm", .seed = 7})(in);
      return layers::Dense(2, {.name = name, .seed = 1, .kernel_regularizer = Regularizer::l2(0.01)})(h);
    };
    const Input in({.shape = {6, 3}});
    const LayerOutput a = tower(in, 1, "a"), b = tower(in, 2, "b");
    Model model({in}, {layers::Add()({a, b}), b});
    model.compile({.optimizer = "adam",
                   .loss = "mse",
                   .metrics = {"mae"},
                   .loss_weights = {1.0, 0.5},
                   .global_clip_norm = 0.1,
                   .run_eagerly = eagerly});
    for (const Variable& weight : model.layer("b").weights()) EXPECT_EQ(weight.device(), apart ? "CPU:2" : "CPU:0");
    for (int i = 0; i < 3; ++i)
      model.train_on_batch(Example{.inputs = {random_normal({4, 6, 3}, {.seed = 9})},
                                   .targets = {ones({4, 2}), zeros({4, 2})},
                                   .weights = constant({1.f, 2.f, 0.f, 1.f})});
    return values_of(model);
  };
  const Values expected = trained(false, true);
  EXPECT_EQ(trained(true, true), expected);
  EXPECT_EQ(trained(true, false), expected);
}

// Random chains of layers on random devices, with data on a random one.
TEST_F(ModelDevices, RandomPlacesChangeNoBitsOfTraining) {
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const auto trained = [&](bool apart, bool eagerly) {
      std::mt19937 random(seed);
      const auto device = [&] {
        const auto drawn = random() % 3;
        return apart ? "CPU:" + std::to_string(drawn) : std::string("CPU:0");
      };
      Sequential model;
      for (std::uint64_t i = 0; i < 4; ++i) {
        const DeviceScope on(device());
        const Shape input = i == 0 ? Shape({6}) : Shape();
        switch (random() % 4) {
          case 0:
            model.add(layers::Dense(6, {.activation = "tanh", .input_shape = input, .seed = i}));
            break;
          case 1:
            model.add(layers::BatchNormalization());
            break;
          case 2:
            model.add(layers::Dropout(0.3, {.seed = i}));
            break;
          default:
            model.add(layers::Dense(6, {.input_shape = input, .seed = i + 10}));
        }
      }
      model.add(layers::Dense(1, {.seed = 77}));
      model.compile({.optimizer = "rmsprop", .loss = "mse", .run_eagerly = eagerly});
      const Tensor x = random_normal({12, 6}, {.seed = seed}).to(device());
      model.fit(x, x.mean({1}, {.keep_dims = true}).to(device()),
                {.epochs = 2, .batch_size = 5, .verbose = 0, .shuffle = false});
      return values_of(model);
    };
    const Values expected = trained(false, true);
    EXPECT_EQ(trained(true, true), expected);
    EXPECT_EQ(trained(true, false), expected);
  }
}

TEST_F(ModelDevices, OperandsOfOperationsAreStillNotMoved) {
  const Tensor here = ones({2}), there = ones({2}).to("CPU:1");
  EXPECT_THROW(here + there, InvalidArgument);
}

TEST_F(ModelDevices, MakingALayerDoesNotStartTheRuntime) {
  ASSERT_FALSE(Runtime::instance().started());
  const Layer layer = layers::Dense(3);
  EXPECT_FALSE(Runtime::instance().started());
  EXPECT_EQ(layer.base().device(), "");
}

TEST_F(ModelDevices, BudgetsHoldForWhatIsOnSeveralDevices) {
  const auto make = [] {
    Sequential model;
    for (int i = 0; i < 2; ++i) {
      const DeviceScope on("CPU:" + std::to_string(i + 1));
      model.add(layers::Dense(64, {.input_shape = i == 0 ? Shape({16}) : Shape(), .seed = 1}));
    }
    model.compile({.optimizer = "adam", .loss = "mse"});
    return model;
  };
  const Tensor x = ones({64, 16}), y = ones({64, 64});
  std::size_t enough = 0;
  try {
    make().fit(x, y, {.batch_size = 32, .verbose = 0, .budget = 1000});
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    enough = error.smallest_sufficient_limit();
  }
  EXPECT_THROW(make().fit(x, y, {.batch_size = 32, .verbose = 0, .budget = enough - 1}), OutOfMemory);
  Sequential model = make();
  const std::size_t before = memory_stats("CPU:2").bytes_in_use;
  const History history = model.fit(x, y, {.epochs = 2, .batch_size = 32, .verbose = 0, .budget = enough});
  EXPECT_EQ(history.peak_bytes(), enough);
  // Weights and two moments of the second layer.
  EXPECT_EQ(memory_stats("CPU:2").bytes_in_use - before, 2 * (64u * 64 + 64) * 4);
  EXPECT_GT(memory_stats("CPU:2").peak_bytes_in_use, memory_stats("CPU:2").bytes_in_use);
}

// A layer whose weight the loss does not depend on.
class Unused : public LayerBase {
 public:
  explicit Unused(bool rounds) : rounds_(rounds) {}
  const char* class_name() const override { return "Unused"; }
  void build(const Shapes& in) override { w_ = add_weight("idle", {in[0].back()}, {.initializer = "ones"}); }
  Tensor call(const Tensor& x, CallContext&) override { return rounds_ ? x + (*w_ > 0.f).cast(f32) : x; }

 private:
  const bool rounds_;
  std::optional<Variable> w_;
};

TEST_F(ModelDevices, AVariableWithoutAGradientIsNamedOnce) {
  std::vector<std::string> logged;
  LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged.emplace_back(text); });
  Sequential model({layers::Dense(3, {.input_shape = {3}}), make_layer<Unused>(true)});
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.fit(ones({6, 3}), ones({6, 3}), {.epochs = 3, .batch_size = 4, .verbose = 0});
  set_log_sink(std::move(before));
  const auto names_it = [](const std::string& text) { return text.find("unused/idle") != std::string::npos; };
  EXPECT_EQ(std::count_if(logged.begin(), logged.end(), names_it), 1) << testing::PrintToString(logged);
}

TEST_F(ModelDevices, TrainingThatWouldChangeNothingIsRefused) {
  for (const bool eagerly : {false, true}) {
    Sequential model({make_layer<Unused>(true)});
    model.compile({.optimizer = "adam", .loss = "mse", .run_eagerly = eagerly});
    const Tensor x = ones({4, 3});
    try {
      model.fit(x, x, {.verbose = 0});
      FAIL() << "not refused";
    } catch (const FailedPrecondition& error) {
      EXPECT_THAT(error.what(), HasSubstr("unused/idle"));
    }
    EXPECT_EQ(model.optimizer().step(), 0);
    model.set_trainable(false);  // A frozen model may.
    model.fit(x, x, {.verbose = 0});
  }
}

}  // namespace
}  // namespace plimsoll
