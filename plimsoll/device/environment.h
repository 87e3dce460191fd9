// Environment: settings of devices and the process from environment variables.
//
//   PLIMSOLL_MEMORY_LIMIT=512MiB PLIMSOLL_THREADS=2 ./trainer
//
// | variable                   | value                                                                             |
// |----------------------------|-----------------------------------------------------------------------------------|
// | PLIMSOLL_MEMORY_LIMIT      | the limit of each physical device, as parse_bytes() reads it                      |
// | PLIMSOLL_VISIBLE_DEVICES   | physical devices to use, in order for each type: "OPENCL:1"; CPU:0 always is one  |
// | PLIMSOLL_THREADS           | as config::set_threads()                                                          |
// | PLIMSOLL_LOG_LEVEL         | as config::set_log_level()                                                        |
// | PLIMSOLL_LIVE              | "1": publishes what `plimsoll top` shows (live_view.h); "0": does not             |
// | PLIMSOLL_FORCE_ALLOW_GROWTH | "true" or "false"; see forced_growth() in settings.h                             |
//
// Read when the runtime starts; threads and log level also by their getters in config. The program's own calls win,
// except for growth. A value that cannot be read throws InvalidArgument, naming the variable, the value and what is
// allowed; the runtime has then not started.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/physical_device.h"

namespace plimsoll::internal {

struct DeviceEnvironment {
  std::optional<std::size_t> memory_limit;
  std::optional<std::vector<std::string>> visible;  // Names of physical devices, CPU:0 among them.
};
void want_visible_devices();  // Devices that PLIMSOLL_VISIBLE_DEVICES names are looked for; see want_devices().
DeviceEnvironment read_device_environment(const std::vector<PhysicalDevice>& machine);

struct ProcessEnvironment {
  std::optional<int> threads;
  std::optional<LogLevel> log_level;
  std::optional<bool> live;
};
ProcessEnvironment read_process_environment();

}  // namespace plimsoll::internal

namespace plimsoll::config {
// What the program chose by a call (process_settings.cc). At the start the environment sets threads and log level
// unless the program did.
struct ProcessChoices {
  bool threads = false, log_level = false;
};
void apply_process_environment();
ProcessChoices process_choices();
}  // namespace plimsoll::config

namespace plimsoll::internal {

// A variable that is set.
struct EnvironmentVariable {
  std::string name, value;
  bool in_force = true;  // False when the program set the same by a call.
};
// Those above that are set. Starts the runtime.
PLIMSOLL_API std::vector<EnvironmentVariable> environment_variables();

}  // namespace plimsoll::internal
