#include "plimsoll/device/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device_kind.h"
#include "plimsoll/device/device_name.h"
#include "plimsoll/device/runtime.h"

namespace plimsoll::config {
namespace {

constexpr std::size_t kMostLogicalDevices = 64;  // On one physical device.

Runtime& runtime() { return Runtime::instance(); }

bool is_of_type(const std::string& type, std::string_view wanted) {
  return wanted.empty() || type == device_type(wanted);
}

// The machine's own record of a device that a caller names.
PhysicalDevice known(std::string_view function, const PhysicalDevice& device) {
  std::string name = device.name, names;
  try {
    const DeviceName parsed = parse_device_name(device.name);
    name = parsed.text();
    if (!runtime().started()) want_devices(parsed.type);
  } catch (const InvalidArgument&) {  // Then it is unknown, too.
  }
  for (PhysicalDevice& physical : find_physical_devices()) {
    if (physical.name == name) return physical;
    names += (names.empty() ? "" : ", ") + physical.name;
  }
  throw InvalidArgument(fmt::format("config::{}: \"{}\" is not a physical device of this machine; it has {}", function,
                                    device.name, names));
}

bool has_limits(const std::vector<LogicalDeviceConfiguration>& logical) {
  return std::any_of(logical.begin(), logical.end(), [](const auto& device) { return device.memory_limit > 0; });
}

void check_limits(const std::vector<LogicalDeviceConfiguration>& logical) {
  constexpr const char* kWhere = "config::set_logical_device_configuration";
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (logical.size() > kMostLogicalDevices)
    throw InvalidArgument(fmt::format("{}: {} logical devices were asked for; at most {} fit on one device", kWhere,
                                      logical.size(), kMostLogicalDevices));
  for (const LogicalDeviceConfiguration& device : logical) {
    if (device.memory_limit > 0 && device.memory_limit < page)
      throw InvalidArgument(fmt::format(
          "{}: a limit of {} is less than one page of {} bytes; limits are in bytes: did you mean {}_MiB? (0 is a "
          "share)",
          kWhere, format_bytes_exactly(device.memory_limit), page, device.memory_limit));
    if (device.memory_limit > INT64_MAX)
      throw InvalidArgument(fmt::format(
          "{}: a limit of {} bytes is {} as a signed number; give a positive number of bytes up to {}", kWhere,
          device.memory_limit, static_cast<std::int64_t>(device.memory_limit), format_bytes(kMostLimit)));
    if (device.memory_limit > kMostLimit)
      throw InvalidArgument(fmt::format("{}: a limit of {} is more than a process can address; give at most {}", kWhere,
                                        format_bytes_exactly(device.memory_limit), format_bytes(kMostLimit)));
  }
}

void check_not_both(std::string_view function, const DeviceSettings& device) {
  if (device.fraction > 0 && has_limits(device.logical))
    throw InvalidArgument(
        fmt::format("config::{}: a fraction of {} and limits of logical devices contradict each other; set the "
                    "fraction to 0 or leave the limits out",
                    function, device.fraction));
}

// The limits of a physical device after the start; empty before.
std::vector<LogicalDeviceConfiguration> limits_in_force(const std::string& physical) {
  std::vector<LogicalDeviceConfiguration> limits;
  if (const Runtime::Devices* devices = runtime().started_devices())
    for (const auto& device : *devices)
      if (device->properties().physical_device == physical) limits.push_back({device->properties().memory_limit});
  return limits;
}

template <class F>
void change_device(std::string_view function, const PhysicalDevice& device, F&& edit) {
  const std::string name = known(function, device).name;
  runtime().change(fmt::format("config::{}", function), [&](Settings& settings) {
    DeviceSettings changed = settings.of(name);
    edit(changed);
    check_not_both(function, changed);
    if (changed != settings.of(name)) settings.devices[name] = std::move(changed);
  });
}

}  // namespace

std::vector<PhysicalDevice> list_physical_devices(std::string_view type) {
  want_devices(type.empty() ? "" : device_type(type));
  std::vector<PhysicalDevice> devices = find_physical_devices();
  std::erase_if(devices, [&](const PhysicalDevice& device) { return !is_of_type(device.type, type); });
  return devices;
}

void set_visible_devices(const std::vector<PhysicalDevice>& devices, std::string_view type) {
  std::vector<std::string> shown;
  for (const PhysicalDevice& device : devices) {
    const PhysicalDevice physical = known("set_visible_devices", device);
    if (!is_of_type(physical.type, type))
      throw InvalidArgument(fmt::format("config::set_visible_devices: \"{}\" is of type \"{}\", not \"{}\"",
                                        physical.name, physical.type, type));
    shown.push_back(physical.name);
  }
  if (std::find(shown.begin(), shown.end(), kHostDevice) == shown.end()) {
    if (is_of_type("CPU", type) && !type.empty())
      throw InvalidArgument(fmt::format(
          "config::set_visible_devices: {} cannot be hidden, because other devices need it; include it in the list",
          kHostDevice));
    if (type.empty()) shown.emplace_back(kHostDevice);
  }
  if (runtime().started()) {  // In force, perhaps from the environment.
    std::set<std::string> in_force;
    for (const PhysicalDevice& device : get_visible_devices(type)) in_force.insert(device.name);
    if (in_force == std::set<std::string>(shown.begin(), shown.end())) return;
  }
  runtime().change("config::set_visible_devices", [&](Settings& settings) {
    settings.visible_chosen = true;
    for (const PhysicalDevice& device : list_physical_devices(type)) {
      if (std::find(shown.begin(), shown.end(), device.name) != shown.end())
        settings.hidden.erase(device.name);
      else
        settings.hidden.insert(device.name);
    }
  });
}

std::vector<PhysicalDevice> get_visible_devices(std::string_view type) {
  const std::vector<PhysicalDevice> machine = list_physical_devices();
  std::vector<PhysicalDevice> devices =
      visible_devices(runtime().settings(), machine, read_device_environment(machine));
  std::erase_if(devices, [&](const PhysicalDevice& device) { return !is_of_type(device.type, type); });
  return devices;
}

void set_memory_growth(const PhysicalDevice& device, bool enable) {
  known("set_memory_growth", device);
  if (runtime().started() && get_memory_growth(device) == enable) return;  // In force, perhaps from the environment.
  change_device("set_memory_growth", device, [&](DeviceSettings& settings) { settings.growth = enable; });
}

bool get_memory_growth(const PhysicalDevice& device) {
  const std::string name = known("get_memory_growth", device).name;
  if (const Runtime::Devices* devices = runtime().started_devices())
    for (const auto& logical : *devices)
      if (logical->properties().physical_device == name) return logical->growth();
  std::vector<std::string> warnings;  // Logged when the runtime starts.
  return forced_growth(warnings).value_or(runtime().settings().of(name).growth);
}

void set_memory_fraction(const PhysicalDevice& device, double fraction) {
  known("set_memory_fraction", device);
  if (!(fraction >= 0 && fraction <= 1))
    throw InvalidArgument(fmt::format(
        "config::set_memory_fraction: the fraction is {}; give one above 0 and up to 1, or 0 for the default",
        fraction));
  change_device("set_memory_fraction", device, [&](DeviceSettings& settings) { settings.fraction = fraction; });
}

double get_memory_fraction(const PhysicalDevice& device) {
  return runtime().settings().of(known("get_memory_fraction", device).name).fraction;
}

void set_logical_device_configuration(const PhysicalDevice& device,
                                      const std::vector<LogicalDeviceConfiguration>& logical_devices) {
  const std::string name = known("set_logical_device_configuration", device).name;
  check_limits(logical_devices);
  if (runtime().started() && limits_in_force(name) == logical_devices) return;  // Perhaps from the environment.
  change_device("set_logical_device_configuration", device, [&](DeviceSettings& settings) {
    settings.logical = logical_devices;
    if (settings.logical == std::vector<LogicalDeviceConfiguration>(1)) settings.logical.clear();  // The default.
  });
}

std::vector<LogicalDeviceConfiguration> get_logical_device_configuration(const PhysicalDevice& device) {
  return runtime().settings().of(known("get_logical_device_configuration", device).name).logical;
}

std::vector<LogicalDevice> list_logical_devices(std::string_view type) {
  if (!runtime().started()) want_devices(type.empty() ? "" : device_type(type));
  std::vector<LogicalDevice> devices;
  for (const auto& device : runtime().devices())
    if (is_of_type(device->properties().type, type)) devices.push_back(device->properties());
  return devices;
}

DeviceMemoryInfo get_memory_info(std::string_view device) {
  const MemoryStats stats = runtime().device(device).arena().stats();
  return {stats.bytes_in_use, stats.peak_bytes_in_use};
}

void set_lazy_allocation(bool enable) {
  runtime().change("config::set_lazy_allocation", [&](Settings& settings) { settings.lazy_allocation = enable; });
}
bool get_lazy_allocation() { return runtime().settings().lazy_allocation; }

void set_charge_overhead(bool enable) {
  runtime().change("config::set_charge_overhead", [&](Settings& settings) { settings.charge_overhead = enable; });
}
bool get_charge_overhead() { return runtime().settings().charge_overhead; }

void set_deferred_release(bool enable) {
  runtime().change("config::set_deferred_release", [&](Settings& settings) { settings.deferred_release = enable; });
}
bool get_deferred_release() { return runtime().settings().deferred_release; }

}  // namespace plimsoll::config
