// Settings: what a program requested for its devices before they start, and the logical devices that follow from it.
//
// Pure: allocates no device memory and keeps no state. See config.h for the functions that programs call.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/device/environment.h"
#include "plimsoll/device/physical_device.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll::internal {

inline constexpr const char* kHostDevice = "CPU:0";  // The physical device that every process uses.

// The settings of one physical device.
struct DeviceSettings {
  bool growth = false;
  double fraction = 0;                              // A share of the device's memory; 0: not given.
  std::vector<LogicalDeviceConfiguration> logical;  // Empty: one device that takes all.

  bool operator==(const DeviceSettings&) const = default;
};

struct Settings {
  std::map<std::string, DeviceSettings> devices;  // By physical device; missing ones have not been set.
  std::set<std::string> hidden;                   // Physical devices that are not visible.
  bool visible_chosen = false;                    // By the program: the environment is ignored.
  bool lazy_allocation = false;
  bool deferred_release = false;
  bool charge_overhead = false;

  DeviceSettings of(const std::string& physical) const {
    const auto found = devices.find(physical);
    return found == devices.end() ? DeviceSettings{} : found->second;
  }
  bool operator==(const Settings&) const = default;
};

struct LogicalDevicePlan {
  LogicalDevice device;
  bool growth = false;
};

// The environment's choice of growth: PLIMSOLL_FORCE_ALLOW_GROWTH, or TF_FORCE_GPU_ALLOW_GROWTH when ours is not set.
// Exactly "true" or "false"; anything else adds a warning and decides nothing.
std::optional<bool> forced_growth(std::vector<std::string>& warnings);

// Those that the program chose, or else the environment, in the environment's order for each type. CPU:0 is always
// there, and stays the default device: other devices need it for what they cannot do themselves.
std::vector<PhysicalDevice> visible_devices(const Settings& settings, const std::vector<PhysicalDevice>& physical,
                                            const DeviceEnvironment& environment);

// The logical devices of all visible physical ones, numbered per type. `left` is what a device without limits may take
// unless the environment sets a limit. Warns when the limits add up to more than `left`, and when the environment
// overrides a setting.
std::vector<LogicalDevicePlan> plan_logical_devices(const Settings& settings,
                                                    const std::vector<PhysicalDevice>& physical,
                                                    const DefaultLimit& left, std::vector<std::string>& warnings,
                                                    const DeviceEnvironment& environment = {});

}  // namespace plimsoll::internal
