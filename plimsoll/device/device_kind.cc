#include "plimsoll/device/device_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/device/far/far_kind.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/memory/system_memory.h"
#if PLIMSOLL_HAS_OPENCL
#include "plimsoll/device/opencl/opencl_kind.h"
#endif

namespace plimsoll {
namespace {

bool has_type(const DeviceKind& kind, std::string_view type) {
  return std::find(kind.types.begin(), kind.types.end(), type) != kind.types.end();
}

DeviceKind host_kind() {
  return {
      .name = "host",
      .types = {"CPU"},
      .find = []() -> std::vector<PhysicalDevice> {
        return {{"CPU:0", "CPU", read_system_memory().capacity()}};
      },
      .make = [](const PhysicalDevice&) -> std::unique_ptr<DeviceBackend> { return std::make_unique<HostBackend>(); }};
}

// For tests: PLIMSOLL_TEST_DEVICE puts the devices of a kind before the host's, so that the first of them is the
// default. CPU: there are no others.
void put_test_devices_first(std::vector<DeviceKind>& all) {
  const char* const value = std::getenv("PLIMSOLL_TEST_DEVICE");
  const std::string_view wanted = value ? value : "";
  if (wanted == "CPU") std::erase_if(all, [](const DeviceKind& kind) { return !has_type(kind, "CPU"); });
  if (wanted == "FAR" || wanted == "FAR_STAGED") all.insert(all.begin(), far_kind(wanted == "FAR_STAGED"));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (has_type(all[i], wanted)) {
      all[i].waits_to_be_asked = false;
      std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                  all.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
}

// All kinds: one line each.
std::vector<DeviceKind>& kinds() {
  static std::vector<DeviceKind>& all = *new std::vector<DeviceKind>([] {
    std::vector<DeviceKind> made{host_kind()};
#if PLIMSOLL_HAS_OPENCL
    made.push_back(opencl_kind());
#endif
    put_test_devices_first(made);
    return made;
  }());
  return all;
}

std::mutex wanted_mutex;
std::vector<std::string>& wanted() {  // Names of kinds. Guarded by wanted_mutex.
  static std::vector<std::string>& names = *new std::vector<std::string>;
  return names;
}

}  // namespace

bool internal::is_looked_for(const DeviceKind& kind) {
  if (!kind.waits_to_be_asked) return true;
  const std::lock_guard lock(wanted_mutex);
  return std::find(wanted().begin(), wanted().end(), kind.name) != wanted().end();
}

void internal::forget_wanted_devices() {
  const std::lock_guard lock(wanted_mutex);
  wanted().clear();
}

const std::vector<DeviceKind>& internal::device_kinds() { return kinds(); }

void internal::want_devices(std::string_view type) {
  const std::lock_guard lock(wanted_mutex);
  for (const DeviceKind& kind : kinds())
    if (kind.waits_to_be_asked && (type.empty() || has_type(kind, type)) &&
        std::find(wanted().begin(), wanted().end(), kind.name) == wanted().end())
      wanted().push_back(kind.name);
}

std::vector<PhysicalDevice> find_physical_devices() {
  std::vector<PhysicalDevice> devices;
  for (const DeviceKind& kind : kinds())
    if (is_looked_for(kind))
      for (PhysicalDevice& device : kind.find()) devices.push_back(std::move(device));
  return devices;
}

std::unique_ptr<DeviceBackend> internal::make_backend(const std::string& physical_device) {
  for (const DeviceKind& kind : kinds())
    if (is_looked_for(kind))
      for (const PhysicalDevice& device : kind.find())
        if (device.name == physical_device) return kind.make(device);
  throw NotFound(fmt::format("device \"{}\": there is no such device", physical_device));
}

}  // namespace plimsoll
