#include "plimsoll/device/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "plimsoll/base/bytes.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kLeastShare = 1_MiB;  // For a device without its own limit.

// The limit of each logical device: its own, or an equal share of what is left of `pool`.
std::vector<std::size_t> limits_of(const std::vector<LogicalDeviceConfiguration>& logical, std::size_t pool) {
  if (logical.empty()) return {std::max(pool, kLeastShare)};
  std::size_t given = 0, without = 0;
  for (const LogicalDeviceConfiguration& device : logical) {
    given += std::min(device.memory_limit, pool - std::min(given, pool));
    without += device.memory_limit == 0 ? 1 : 0;
  }
  const std::size_t share = without > 0 ? std::max((pool - given) / without, kLeastShare) : 0;
  std::vector<std::size_t> limits;
  for (const LogicalDeviceConfiguration& device : logical)
    limits.push_back(device.memory_limit > 0 ? device.memory_limit : share);
  return limits;
}

bool growth_of(const DeviceSettings& device, std::optional<bool> forced) { return forced.value_or(device.growth); }

}  // namespace

std::optional<bool> forced_growth(std::vector<std::string>& warnings) {
  for (const char* name : {"PLIMSOLL_FORCE_ALLOW_GROWTH", "TF_FORCE_GPU_ALLOW_GROWTH"}) {
    const char* const value = std::getenv(name);
    if (!value) continue;
    if (std::string_view(value) == "true") return true;
    if (std::string_view(value) == "false") return false;
    warnings.push_back(
        fmt::format("environment: {} is \"{}\", neither \"true\" nor \"false\"; it is ignored", name, value));
    return std::nullopt;
  }
  return std::nullopt;
}

std::vector<PhysicalDevice> visible_devices(const Settings& settings, const std::vector<PhysicalDevice>& physical,
                                            const DeviceEnvironment& environment) {
  std::vector<PhysicalDevice> devices = physical;
  if (settings.visible_chosen || !environment.visible) {
    std::erase_if(devices, [&](const PhysicalDevice& device) {
      return device.name != kHostDevice && settings.hidden.contains(device.name);
    });
    return devices;
  }
  const std::vector<std::string>& names = *environment.visible;
  const auto place = [&](const PhysicalDevice& device) {
    return std::find(names.begin(), names.end(), device.name) - names.begin();
  };
  std::erase_if(devices, [&](const auto& device) { return place(device) == std::ssize(names); });
  std::sort(devices.begin(), devices.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  // The order counts within a type: the default device stays the machine's first.
  std::stable_partition(devices.begin(), devices.end(),
                        [&](const auto& device) { return device.type == physical.front().type; });
  return devices;
}

std::vector<LogicalDevicePlan> plan_logical_devices(const Settings& settings,
                                                    const std::vector<PhysicalDevice>& physical,
                                                    const DefaultLimit& left, std::vector<std::string>& warnings,
                                                    const DeviceEnvironment& environment) {
  const std::optional<bool> forced = forced_growth(warnings);
  std::vector<LogicalDevicePlan> plans;
  std::map<std::string, std::size_t> next_index;  // By type.
  std::size_t sum = 0;
  for (const PhysicalDevice& device : visible_devices(settings, physical, environment)) {
    const DeviceSettings set = settings.of(device.name);
    if (forced && *forced != set.growth && settings.devices.contains(device.name))
      warnings.push_back(
          fmt::format("device \"{}\": the environment turns memory growth {}", device.name, *forced ? "on" : "off"));
    const auto share = static_cast<std::size_t>(set.fraction * static_cast<double>(device.memory_bytes));
    const std::size_t all = device.type == "CPU" ? left.bytes : device.memory_bytes;
    const std::size_t pool = set.fraction > 0 ? share : environment.memory_limit.value_or(all);
    for (const std::size_t limit : limits_of(set.logical, pool)) {
      const std::string name = fmt::format("{}:{}", device.type, next_index[device.type]++);
      plans.push_back({{name, device.type, limit, device.name}, growth_of(set, forced)});
      if (device.type == "CPU") sum += std::min(limit, SIZE_MAX - sum);
    }
  }
  if (sum > left.bytes)
    warnings.push_back(
        fmt::format("devices: the memory limits add up to {}, but only {} should be taken ({}); the system may end "
                    "the process before a limit is reached; lower the limits",
                    format_bytes(sum), format_bytes(left.bytes), left.from));
  return plans;
}

}  // namespace plimsoll::internal
