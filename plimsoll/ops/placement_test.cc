// Tensors on logical devices, lazily taken memory, wrapped memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using namespace literals;

class Placement : public testing::Test {
 protected:
  void SetUp() override { config::reset_for_testing(); }
  void TearDown() override { config::reset_for_testing(); }
  static void two_devices() {
    const auto cpu = config::list_physical_devices("CPU").at(0);
    config::set_logical_device_configuration(cpu, {{.memory_limit = 8_MiB}, {.memory_limit = 4_MiB}});
  }
};

TEST_F(Placement, FollowsTheDeviceScopeAndThenTheOperands) {
  two_devices();
  const Tensor first = ones({10});
  EXPECT_EQ(first.device(), "CPU:0");
  const DeviceScope second("CPU:1");
  const Tensor other = ones({10});
  EXPECT_EQ(other.device(), "CPU:1");
  EXPECT_EQ((first * 2.f).device(), "CPU:0");
  EXPECT_EQ((first.to("CPU:1") + other).device(), "CPU:1");
  EXPECT_EQ(first.to("CPU:0").id(), first.id());
}

TEST_F(Placement, RefusesOperandsOfTwoDevicesNamingBoth) {
  two_devices();
  const Tensor first = ones({10}), second = ones({10}).to("CPU:1");
  try {
    first + second;
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_STREQ(e.what(), "add: x is on CPU:0, y on CPU:1; move one with .to(\"CPU:1\") or .to(\"CPU:0\")");
  }
}

TEST_F(Placement, FillsOneDeviceWithoutTheOther) {
  two_devices();
  const Tensor full = zeros({7 * 1024 * 1024 / 4});
  EXPECT_THROW(zeros({4 * 1024 * 1024 / 4}), OutOfMemory);
  const DeviceScope second("CPU:1");
  EXPECT_NO_THROW(zeros({3 * 1024 * 1024 / 4}));
}

TEST_F(Placement, TakesLazyMemoryAtFirstUse) {
  config::set_lazy_allocation(true);
  const MemoryInfo before = memory();
  const Tensor x = full({1000}, 3.f), never = zeros({1000});
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 2);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ((x + 1.f).at<float>({999}), 4);
  EXPECT_EQ(memory().num_bytes, before.num_bytes + 4000);
  EXPECT_EQ(never.shape(), Shape({1000}));
}

TEST_F(Placement, StaysLazyWhenItsMemoryDoesNotFit) {
  two_devices();
  config::set_lazy_allocation(true);
  const Tensor large = zeros({3 * 1024 * 1024});
  EXPECT_THROW(large + 1.f, OutOfMemory);
  EXPECT_THROW(large.to_vector<float>(), OutOfMemory);
  EXPECT_EQ(memory().num_bytes, 0u);
  EXPECT_FALSE(large.is_disposed());
}

TEST_F(Placement, IsNotForgottenWhileTensorsLive) {
  const Tensor x = zeros({0});
  EXPECT_THROW(config::reset_for_testing(), FailedPrecondition);
}

TEST_F(Placement, WrapsMemoryOfTheProgramWithoutACopy) {
  alignas(16) float values[4] = {1, 2, 3, 4};
  int deleted = 0;
  {
    const Tensor x = wrap(values, {2, 2}, f32, [&](void* memory) {
      EXPECT_EQ(memory, values);
      ++deleted;
    });
    EXPECT_EQ(memory().num_data_buffers, 1u);
    EXPECT_EQ(memory().num_bytes, 0u);
    EXPECT_EQ(x.data<float>().data(), values);
    EXPECT_EQ((x * 2.f).at<float>({1, 1}), 8);
    const Tensor view = x.reshape({4});
    x.dispose();
    EXPECT_EQ(deleted, 0);
    EXPECT_EQ(view.at<float>({3}), 4);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_THROW(wrap(nullptr, {1}, f32), InvalidArgument);
  EXPECT_THROW(wrap(reinterpret_cast<char*>(values) + 1, {1}, f32), InvalidArgument);
}

TEST_F(Placement, KeepsPinnedElementsAfterDispose) {
  const Tensor x = constant({1.f, 2.f});
  const auto elements = x.data<float>();
  x.dispose();
  EXPECT_EQ(elements[1], 2);
  EXPECT_EQ(memory().num_tensors, 0u);
  EXPECT_EQ(memory().num_data_buffers, 1u);
}

TEST(Creation, RefusesWhatDoesNotFillTheShape) {
  EXPECT_THROW(constant({1.f, 2.f}, {.shape = {3}}), InvalidArgument);
  EXPECT_THROW((constant({{1.f, 2.f}, {3.f}})), InvalidArgument);
  EXPECT_THROW(zeros({-1, 2}), InvalidArgument);
  EXPECT_THROW(arange(0, 10, 0), InvalidArgument);
  EXPECT_THROW(linspace(0, 1, -1), InvalidArgument);
  EXPECT_THROW(eye(-2), InvalidArgument);
}

TEST(Creation, GivesWhatItSays) {
  EXPECT_EQ(arange(0, 5).to_vector<int>(), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(1.f, 2.f, 0.5f).to_vector<float>(), (std::vector<float>{1, 1.5}));
  EXPECT_EQ(arange(5, 0, -2).to_vector<int>(), (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(arange(0).size(), 0u);
  EXPECT_EQ(linspace(0, 1, 3).to_vector<float>(), (std::vector<float>{0, 0.5, 1}));
  const std::vector<double> ends = linspace(-1e16, 0.1, 3, f64).to_vector<double>();  // The distance is rounded.
  EXPECT_EQ(ends.front(), -1e16);
  EXPECT_EQ(ends.back(), 0.1);
  EXPECT_EQ(eye(2).to_vector<float>(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(full({2}, 7.f).to_vector<float>(), (std::vector<float>{7, 7}));
  EXPECT_EQ(constant(5, {.shape = {2, 2}}).to_vector<int>(), (std::vector<int>{5, 5, 5, 5}));
  EXPECT_EQ(constant({1, 2}, {.dtype = f32}).dtype(), f32);
  EXPECT_EQ(from_vector(std::vector<bool>{true, false}).dtype(), boolean);
  EXPECT_EQ(ones({2}, bf16).cast(f32).to_vector<float>(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace plimsoll
