// OpenclFixture: tests on this machine's first OpenCL device, with a limit; skipped, saying so, where there is none.
//
//   class Kernels : public OpenclFixture {};
//   TEST_F(Kernels, Add) { EXPECT_EQ((ones({2}).to(name()) + 1).device(), name()); }
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/runtime.h"

namespace plimsoll {

class OpenclFixture : public testing::Test {
 protected:
  void SetUp() override {
    config::reset_for_testing();
    std::vector<PhysicalDevice> found = config::list_physical_devices("OPENCL");
    if (found.empty()) found = config::list_physical_devices("GPU");
    if (found.empty()) GTEST_SKIP() << "there is no OpenCL device";
    device_ = found[0];
    limit({256_MiB});
  }
  void TearDown() override { config::reset_for_testing(); }

  // One logical device for each. Before anything is on one.
  void limit(const std::vector<std::size_t>& bytes) {
    std::vector<LogicalDeviceConfiguration> all;
    for (const std::size_t each : bytes) all.push_back({.memory_limit = each});
    config::set_logical_device_configuration(device_, all);
  }
  std::string name(int i = 0) const { return device_.type + ":" + std::to_string(i); }
  DeviceBackend& backend() const { return Runtime::instance().device(name()).backend(); }

  PhysicalDevice device_;
};

}  // namespace plimsoll
