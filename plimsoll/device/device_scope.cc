#include "plimsoll/device/device_scope.h"

#include <algorithm>
#include <utility>

#include "plimsoll/device/runtime.h"

namespace plimsoll {
namespace {

thread_local std::size_t current_device = 0;

std::size_t position_of(std::string_view name) {
  Runtime& runtime = Runtime::instance();
  const Device& wanted = runtime.device(name);
  const Runtime::Devices& all = runtime.devices();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& device) { return device.get() == &wanted; });
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace

DeviceScope::DeviceScope(std::string_view device) : before_(std::exchange(current_device, position_of(device))) {}
DeviceScope::~DeviceScope() { current_device = before_; }
std::size_t DeviceScope::current() noexcept { return current_device; }

}  // namespace plimsoll
