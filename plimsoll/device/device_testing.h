// Fixture: each test begins and ends with a runtime that has not started, default settings and a clean environment.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/device/config.h"

namespace plimsoll {

class DeviceFixture : public testing::Test {
 protected:
  void SetUp() override {
    clean_environment();
    config::reset_for_testing();
    before_ = set_log_sink([this](LogLevel, std::string_view text) { logged_.emplace_back(text); });
  }
  void TearDown() override {
    config::reset_for_testing();
    set_log_sink(std::move(before_));
    clean_environment();
  }

  static void clean_environment() {
    for (const char* name : {"PLIMSOLL_FORCE_ALLOW_GROWTH", "TF_FORCE_GPU_ALLOW_GROWTH", "PLIMSOLL_MEMORY_LIMIT",
                             "PLIMSOLL_VISIBLE_DEVICES", "PLIMSOLL_THREADS", "PLIMSOLL_LOG_LEVEL"})
      unsetenv(name);
  }

  static PhysicalDevice cpu() { return config::list_physical_devices("CPU").at(0); }
  static void set_limit(std::size_t bytes) {
    config::set_logical_device_configuration(cpu(), {{.memory_limit = bytes}});
  }

  std::vector<std::string> logged_;

 private:
  LogSink before_;
};

}  // namespace plimsoll
