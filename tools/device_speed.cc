// device_speed: how fast an OpenCL device is beside the host's kernels, in turns, best of some rounds.
//
//   cmake --build build --target device_speed && build/device_speed [ROUNDS [ROW]]      # all rows, or those that begin
//   so
//
// Rows: matmul 512, add of 4 Mi elements, planned training steps of five models, and microseconds per launch. PoCL uses
// every processor; so does the host.
#include <fmt/format.h>

#include <ctime>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "plimsoll/device/config.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/model/training/budget_models_testing.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"

namespace {

using namespace plimsoll;

// Of the wall, and of all processors together, which other programs disturb less.
struct Times {
  double wall = 1e30, processor = 1e30;
};

Times seconds(const std::function<void()>& work) {
  const auto processor = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  const auto start = std::chrono::steady_clock::now();
  const double before = processor();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), processor() - before};
}

std::string wanted;  // How the names of rows begin that are run; empty: all.

// One piece of work on each of two devices; the time of both is the best of `rounds` turns.
void compare(const std::string& what, const std::string& device, int rounds,
             const std::function<std::function<void()>(const std::string&)>& work_on) {
  if (!what.starts_with(wanted)) return;
  std::function<void()> works[] = {work_on("CPU:0"), work_on(device)};
  Times best[2];
  for (const auto& work : works) work();  // Kernels are compiled, plans made.
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < 2; ++i) {
      const Times now = seconds(works[i]);
      best[i] = {std::min(best[i].wall, now.wall), std::min(best[i].processor, now.processor)};
    }
  fmt::print("{:<22} {:>10.0f} {:>12.0f} {:>6.2f} {:>14.0f} {:>14.0f} {:>6.2f}\n", what, best[0].wall * 1e6,
             best[1].wall * 1e6, best[0].wall / best[1].wall, best[0].processor * 1e6, best[1].processor * 1e6,
             best[0].processor / best[1].processor);
}

std::function<void()> product(const std::string& device) {
  const Tensor a = random_normal({512, 512}, {.seed = 1}).to(device),
               b = random_normal({512, 512}, {.seed = 2}).to(device);
  DeviceBackend& backend = Runtime::instance().device(device).backend();
  return [=, &backend] {
    for (int i = 0; i < 4; ++i) static_cast<void>(matmul(a, b));
    backend.finish();
  };
}

std::function<void()> sum(const std::string& device) {
  const Tensor a = random_normal({1 << 22}, {.seed = 1}).to(device), b = a + 1;
  DeviceBackend& backend = Runtime::instance().device(device).backend();
  return [=, &backend] {
    for (int i = 0; i < 4; ++i) static_cast<void>(a + b);
    backend.finish();
  };
}

std::function<void()> training(const BudgetModel& which, const std::string& device) {
  const Dataset data = which.batches(1);
  const DeviceScope on(device);
  auto model = std::make_shared<Model>(which.make());
  Example batch;
  for (const Example& each : data) batch = each;
  return [=] { model->train_on_batch(batch); };
}

BudgetModel lenet() {
  const auto make = [] {
    Sequential model(
        {layers::Conv2D(6, {5, 5}, {.padding = "same", .activation = "relu", .input_shape = {28, 28, 1}, .seed = 1}),
         layers::MaxPooling2D(), layers::Conv2D(16, {5, 5}, {.activation = "relu", .seed = 2}), layers::MaxPooling2D(),
         layers::Flatten(), layers::Dense(120, {.activation = "relu", .seed = 3}),
         layers::Dense(84, {.activation = "relu", .seed = 5}),
         layers::Dense(10, {.activation = "softmax", .seed = 4})});
    model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
    return model;
  };
  return {"LeNet", make, {28, 28, 1}, Shape({}), 64, 10};
}

void launches(const std::string& device) {
  const Tensor x = random_normal({8}, {.seed = 1}).to(device);
  DeviceBackend& backend = Runtime::instance().device(device).backend();
  double best = 1e30;
  for (int round = 0; round < 20; ++round) {
    backend.reset_counters();
    const double time = seconds([&] {
                          for (int i = 0; i < 400; ++i) static_cast<void>(x * 2.f);
                          backend.finish();
                        }).wall;
    best = std::min(best, time / static_cast<double>(backend.counters().launches));
  }
  fmt::print("microseconds per launch, eager, of eight elements: {:.2f}\n", best * 1e6);
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 20;
  if (count > 2) wanted = arguments[2];
  std::vector<PhysicalDevice> found = config::list_physical_devices("GPU");
  if (found.empty()) found = config::list_physical_devices("OPENCL");
  if (found.empty()) {
    fmt::print(stderr, "device_speed: there is no OpenCL device; `plimsoll devices` says why\n");
    return 77;
  }
  const std::string device = found[0].name;
  fmt::print("{:<22} {:>10} {:>12} {:>6} {:>14} {:>14} {:>6}\n", "best of " + std::to_string(rounds), "CPU:0, us",
             device, "ratio", "processor: CPU", device, "ratio");
  compare("matmul 512, four", device, rounds, product);
  compare("add 4 Mi, four", device, rounds, sum);
  for (const BudgetModel& which : {budget_mlp(4, 256, 256), lenet(), budget_resnet(1, 16, 32, 16),
                                   budget_lstm(64, 20, 32), budget_transformer(2, 64, 32, 16)})
    compare(which.name, device, rounds, [&](const std::string& where) { return training(which, where); });
  launches(device);
  return 0;
}
