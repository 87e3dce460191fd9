// A model on an OpenCL device against the same one on the host. Skipped where there is no OpenCL device.
#include <gmock/gmock.h>

#include "plimsoll/device/config.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

class OpenclModel : public testing::Test {
 protected:
  void SetUp() override {
    config::reset_for_testing();
    std::vector<PhysicalDevice> found = config::list_physical_devices("OPENCL");
    if (found.empty()) found = config::list_physical_devices("GPU");
    if (found.empty()) GTEST_SKIP() << "there is no OpenCL device";
    config::set_logical_device_configuration(found[0], {{.memory_limit = std::size_t{256} << 20}});
    name_ = found[0].name;
  }
  void TearDown() override { config::reset_for_testing(); }

  // The loss of each of `steps` steps of training, with the same data and initial weights everywhere.
  std::vector<double> train(const std::string& device, std::size_t steps, const std::string& optimizer) {
    config::set_seed(7);
    const Tensor x = random_normal({64, 20}, {.seed = 1}), y = (random_uniform({64}, {.seed = 2}) * 4).cast(i32);
    const DeviceScope on(device);
    Sequential model({layers::Dense(32, {.activation = "relu", .input_shape = {20}}),
                      layers::Dropout(0.25, {.seed = 3}), layers::Dense(4)});
    model.compile(
        {.optimizer = optimizer.c_str(), .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
    std::vector<double> losses;
    for (std::size_t i = 0; i < steps; ++i) {
      if (i == 3) counters(device, true);
      losses.push_back(model.train_on_batch(x, y)["loss"]);
    }
    steady_ = counters(device, false);
    return losses;
  }
  static DeviceCounters counters(const std::string& device, bool reset) {
    DeviceBackend& backend = Runtime::instance().device(device).backend();
    if (reset) backend.reset_counters();
    return backend.counters();
  }

  std::string name_;
  DeviceCounters steady_;
};

TEST_F(OpenclModel, LearnsAsOnTheHost) {
  const std::vector<double> here = train("CPU:0", 50, "adam"), there = train(name_, 50, "adam");
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-4) << i;
  EXPECT_EQ(steady_.fallbacks, 0u);
  EXPECT_EQ(steady_.driver_allocations, 0u);
  EXPECT_EQ(train(name_, 50, "adam"), there);  // The same bits.
}

}  // namespace
}  // namespace plimsoll
