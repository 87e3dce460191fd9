// PhysicalDevice: a piece of the machine that has memory and computes. LogicalDevice: what programs use, with its
// limit.
//
//   for (const PhysicalDevice& device : find_physical_devices()) std::cout << device.name;    // CPU:0
//
// One physical device becomes one logical device unless config::set_logical_device_configuration says otherwise.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct PhysicalDevice {
  std::string name;  // "CPU:0".
  std::string type;  // "CPU".
  std::size_t memory_bytes =
      0;  // The most this process could hold there: the machine's memory, or a container's limit.

  bool operator==(const PhysicalDevice& other) const { return name == other.name; }
};

struct LogicalDevice {
  std::string name;              // "CPU:1".
  std::string type;              // "CPU".
  std::size_t memory_limit = 0;  // Most bytes it ever holds.
  std::string physical_device;   // The physical device it is part of.
};

// The settings of one logical device. Without a limit it gets an equal share of what the others leave.
struct LogicalDeviceConfiguration {
  std::size_t memory_limit = 0;  // Bytes; 0: not given.

  bool operator==(const LogicalDeviceConfiguration&) const = default;
};

// The devices of this machine: the processors' memory as "CPU:0".
PLIMSOLL_API std::vector<PhysicalDevice> find_physical_devices();

}  // namespace plimsoll
