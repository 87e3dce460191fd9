// Models on an OpenCL device against the same ones on the host. Skipped where there is no OpenCL device.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/opencl/opencl_testing.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/onnx/onnx_model.h"
#include "plimsoll/model/onnx/save_onnx.h"
#include "plimsoll/model/training/budget_models_testing.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/variable.h"

namespace plimsoll {
namespace {

// Dense layers with dropout, for classes.
BudgetModel small_mlp() {
  const auto make = [] {
    Sequential model({layers::Dense(32, {.activation = "relu", .input_shape = {20}, .seed = 1}),
                      layers::Dropout(0.25, {.seed = 3}), layers::Dense(4, {.seed = 2})});
    model.compile({.optimizer = "adam",
                   .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = {"accuracy"}});
    return model;
  };
  return {"MLP", make, {20}, Shape({}), 64, 4};
}

BudgetModel small_lenet() {
  const auto make = [] {
    Sequential model(
        {layers::Conv2D(6, {5, 5}, {.padding = "same", .activation = "relu", .input_shape = {16, 16, 1}, .seed = 1}),
         layers::MaxPooling2D(), layers::Conv2D(16, {5, 5}, {.activation = "relu", .seed = 2}), layers::MaxPooling2D(),
         layers::Flatten(), layers::Dense(24, {.activation = "relu", .seed = 3}),
         layers::Dense(10, {.activation = "softmax", .seed = 4})});
    model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
    return model;
  };
  return {"LeNet", make, {16, 16, 1}, Shape({}), 8, 10};
}

struct Trained {
  std::vector<double> losses;
  std::size_t batch_bytes = 0;
  DeviceCounters steady;                           // Of the steps after the first three.
  std::map<std::string, std::uint64_t> fallbacks;  // Of all steps.
};

class OpenclModel : public OpenclFixture, public testing::WithParamInterface<BudgetModel> {
 protected:
  static constexpr std::size_t kSteps = 50, kWarm = 3;

  // With the same data and initial weights everywhere.
  static Trained train(const BudgetModel& which, const std::string& device) {
    config::set_seed(7);
    const Dataset data = which.batches(1);
    const DeviceScope on(device);
    Model model = which.make();
    Trained result;
    DeviceBackend& backend = Runtime::instance().device(device).backend();
    backend.reset_counters();  // Initial weights are drawn on the host.
    for (const Example& batch : data) result.batch_bytes = batch.x().nbytes() + batch.targets[0].nbytes();
    for (const Example& batch : data)
      for (std::size_t i = 0; i < kSteps; ++i) {
        if (i == kWarm) {
          result.fallbacks = backend.fallbacks();
          backend.reset_counters();
        }
        result.losses.push_back(model.train_on_batch(batch)["loss"]);
      }
    result.steady = backend.counters();
    return result;
  }
};

TEST_P(OpenclModel, LearnsAsOnTheHost) {
  const BudgetModel& which = GetParam();
  const Trained here = train(which, "CPU:0"), there = train(which, name());
  ASSERT_EQ(here.losses.size(), there.losses.size());
  for (std::size_t i = 0; i < here.losses.size(); ++i) EXPECT_NEAR(here.losses[i], there.losses[i], 1e-4) << i;
  EXPECT_THAT(there.fallbacks, testing::IsEmpty());
  constexpr std::uint64_t kCounted = kSteps - kWarm;
  EXPECT_EQ(there.steady.fallbacks, 0u);
  EXPECT_EQ(there.steady.driver_allocations, 0u);
  EXPECT_EQ(there.steady.waits, kCounted);
  EXPECT_EQ(there.steady.bytes_in, kCounted * there.batch_bytes);
  EXPECT_EQ(there.steady.bytes_out, kCounted * 3 * sizeof(float));  // The loss, that of the output, and the metric.
  EXPECT_EQ(train(which, name()).losses, there.losses);             // The same bits.
}

// Labels are checked although they are there already, before anything of the step is submitted: with the same waits.
TEST_P(OpenclModel, ABatchThatIsThereCostsOneWaitPerStep) {
  const BudgetModel& which = GetParam();
  const Dataset data = which.batches(1);
  const DeviceScope on(name());
  Model model = which.make();
  for (const Example& batch : data) {
    const Tensor x = batch.x().to(name()), y = batch.targets[0].to(name());
    for (int i = 0; i < 3; ++i) model.train_on_batch(x, y);
    backend().reset_counters();
    for (int i = 0; i < 5; ++i) model.train_on_batch(x, y);
    EXPECT_EQ(backend().counters().waits, 5u);
    EXPECT_EQ(backend().counters().bytes_in, 0u);
    EXPECT_EQ(backend().counters().fallbacks, 0u);
    if (y.dtype() != i32 && y.dtype() != i64) continue;
    EXPECT_THROW(model.train_on_batch(x, y + which.classes), InvalidArgument);
  }
}

// As a forked child sees it: every later call throws, nothing hangs, and the processor still works.
TEST_P(OpenclModel, TrainingOnALostDeviceThrows) {
  const BudgetModel& which = GetParam();
  const Dataset data = which.batches(1);
  std::optional<Model> model;
  {
    const DeviceScope on(name());
    model = which.make();
  }
  for (const Example& batch : data) {
    model->train_on_batch(batch);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      int thrown = 0;
      for (int i = 0; i < 3; ++i) try {
          model->train_on_batch(batch);
        } catch (const Error&) {
          ++thrown;
        }
      try {
        static_cast<void>(model->predict(batch.x()).to_vector<float>());
      } catch (const Error&) {
        ++thrown;
      }
      _exit(thrown == 4 && ones({2}).to_vector<float>()[1] == 1 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    model->train_on_batch(batch);
  }
}

// The batch is there already: what is in use at the peak is the model, its optimizer, the batch and the step's extent;
// and, on the host, a few bytes for what is read at the end.
TEST_P(OpenclModel, TakesWhatIsForecast) {
  const BudgetModel& which = GetParam();
  const Dataset data = which.batches(1);
  const DeviceScope on(name());
  Model model = which.make();
  const std::size_t forecast = model.forecast({.batch_size = which.batch}).peak_bytes;
  Arena& arena = Runtime::instance().device(name()).arena();
  Arena& host = Runtime::instance().host_device().arena();
  for (const Example& batch : data) {
    const Tensor x = batch.x().to(name()), y = batch.targets[0].to(name());
    for (int i = 0; i < 3; ++i) model.train_on_batch(x, y);
    arena.reset_peaks();
    host.reset_peaks();
    const std::size_t before = host.stats().bytes_in_use;
    model.train_on_batch(x, y);
    const std::size_t staged = host.stats().peak_bytes_in_use - before;
    EXPECT_EQ(arena.stats().peak_bytes_in_use + staged, forecast);
    EXPECT_LE(staged, 256 + (which.classes > 0 ? y.nbytes() : 0));
  }
  EXPECT_LE(arena.stats().peak_bytes_reserved, arena.limit());
}

// At the smallest budget that is forecast training runs, and a byte below it is refused; with data here and there.
TEST_P(OpenclModel, TheForecastsBudgetIsTheGate) {
  const BudgetModel& which = GetParam();
  for (const bool is_there : {false, true}) {
    SCOPED_TRACE(is_there);
    std::optional<Model> model;
    {
      const DeviceScope on(name());
      model = which.make();
    }
    for (const Example& batch : which.batches(1)) {
      const auto placed = [&](const Tensor& tensor) { return is_there ? tensor.to(name()) : tensor; };
      const Tensor x = placed(batch.x()), y = placed(batch.targets[0]);
      const std::size_t budget = model->forecast(Example{.inputs = {x}, .targets = {y}}).smallest_budget;
      const FitOptions options{.epochs = 2, .batch_size = which.batch, .verbose = 0, .shuffle = false};
      FitOptions enough = options, less = options;
      enough.budget = budget;
      less.budget = budget - 1;
      EXPECT_THROW(model->fit(x, y, less), OutOfMemory);
      EXPECT_LE(model->fit(x, y, enough).peak_bytes(), budget);
    }
  }
}

// A weight of the host's, used on the device; and the other way around.
class Elsewhere : public LayerBase {
 public:
  explicit Elsewhere(std::string device) : device_(std::move(device)) {}
  const char* class_name() const override { return "Elsewhere"; }
  void build(const Shapes& in) override {
    w_ = add_weight("w", {in[0].back(), in[0].back()}, {.initializer = "glorot_uniform"});
  }
  Tensor call(const Tensor& x, CallContext&) override {
    return matmul(x.to(device_), Tensor(*w_).to(device_)).to(x.device());
  }

 private:
  std::string device_;
  std::optional<Variable> w_;
};

class TwoDevices : public OpenclFixture {};

TEST_F(TwoDevices, ParametersOnOneAndTheWorkOnTheOther) {
  const auto trained = [&](const std::string& parameters, const std::string& work) {
    config::set_seed(7);
    const DeviceScope on(parameters);
    Sequential model({make_layer<Elsewhere>(work), layers::Dense(1, {.seed = 3})});
    model.compile({.optimizer = "adam", .loss = "mse"});
    const DeviceScope host("CPU:0");
    const Tensor x = random_normal({64, 6}, {.seed = 1}), y = x.sum({1}, {.keep_dims = true});
    return model.fit(x, y, {.epochs = 10, .batch_size = 16, .verbose = 0, .shuffle = false})["loss"];
  };
  const auto here = trained("CPU:0", "CPU:0");
  EXPECT_LT(here.back(), here.front());
  for (const auto& there : {trained("CPU:0", name()), trained(name(), "CPU:0"), trained(name(), name())})
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-4) << i;
}

// What is on its way from one of them to another is in the host's memory, in the budget, before the first step.
TEST_F(TwoDevices, MovesBetweenTwoOfThemAreBudgeted) {
  limit({64_MiB, 64_MiB});
  const Tensor x = ones({64, 64}).to(name());
  const Variable sum(zeros({64, 64}).to(name(1)), {.name = "sum"});
  const auto f = [&](std::optional<std::size_t> budget) {
    return function(
        [&](Tensor in) {
          sum.assign_add(in.to(name(1)));
          return (in * 2.f).to(name(1)) + sum;
        },
        {.budget = budget});
  };
  const std::size_t budget = f({}).memory_plan(x).smallest_bytes;
  EXPECT_THROW(f(budget - 1)(x), OutOfMemory);
  EXPECT_EQ(sum.value().at<float>({0, 0}), 0);
  EXPECT_EQ(f(budget)(x).at<float>({63, 63}), 3);
  EXPECT_EQ(f({})(x).at<float>({63, 63}), 4);
}

// What was loaded there works there, wherever its inputs are.
TEST_F(TwoDevices, OnnxModelsPredictAndTrainThere) {
  const auto path = std::filesystem::temp_directory_path() / ("plimsoll_there_" + std::to_string(getpid()) + ".onnx");
  save_onnx(Sequential({layers::Conv2D(6, 3, {.padding = "same", .activation = "relu", .input_shape = {8, 8, 3}}),
                        layers::BatchNormalization(), layers::MaxPooling2D(2), layers::Flatten(),
                        layers::Dense(5, {.activation = "softmax"})}),
            path);
  const Tensor x = random_uniform({16, 8, 8, 3}, -1, 1, {.seed = 5}),
               y = cast(random_uniform({16}, 0, 5, {.seed = 6}), i32);
  struct Result {
    std::vector<float> predicted, losses;
  };
  const auto on = [&](const std::string& device) {
    Result result;
    std::optional<OnnxModel> read;
    {
      const DeviceScope there(device);
      read.emplace(path);
    }
    const std::string input = read->inputs()[0].name;
    const Tensor predicted = read->predict({{input, x}})[0];
    EXPECT_EQ(predicted.device(), device);
    result.predicted = predicted.to_vector<float>();
    EXPECT_GT(read->forecast({{input, x}}).peak_bytes, 0u);
    Model model = read->model();
    model.compile(
        {.optimizer = optimizers::SGD({.learning_rate = 0.1}), .loss = losses::SparseCategoricalCrossentropy()});
    result.losses = model.fit(x, y, {.epochs = 10, .batch_size = 8, .verbose = 0, .shuffle = false})["loss"];
    return result;
  };
  const Result here = on("CPU:0"), there = on(name());
  std::filesystem::remove(path);
  ASSERT_EQ(here.predicted.size(), there.predicted.size());
  for (std::size_t i = 0; i < here.predicted.size(); ++i) EXPECT_NEAR(here.predicted[i], there.predicted[i], 1e-5) << i;
  EXPECT_LT(here.losses.back(), here.losses.front());
  for (std::size_t i = 0; i < here.losses.size(); ++i) EXPECT_NEAR(here.losses[i], there.losses[i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Five, OpenclModel,
                         testing::Values(small_mlp(), small_lenet(), budget_resnet(1, 4, 8, 4), budget_lstm(8, 6, 4),
                                         budget_transformer(1, 16, 8, 4)),
                         [](const auto& info) {
                           return info.param.name.substr(0, info.param.name.find_first_of(" -"));
                         });

}  // namespace
}  // namespace plimsoll
