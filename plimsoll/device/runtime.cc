#include "plimsoll/device/runtime.h"

#include <fmt/format.h>

#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device_name.h"
#include "plimsoll/device/device_scope.h"

namespace plimsoll {
namespace {

std::string names_of(const Runtime::Devices& devices) {
  std::string names;
  for (const auto& device : devices) names += (names.empty() ? "" : ", ") + device->name();
  return names.empty() ? "none is visible; see config::set_visible_devices" : names;
}

std::atomic<std::size_t (*)()> tensor_count{nullptr};

// Blocks freed with deferred release do not count as held.
void require_unused(const Runtime::Devices& devices) {
  const auto count = tensor_count.load();
  if (const std::size_t tensors = count ? count() : 0)
    throw FailedPrecondition(
        fmt::format("config::reset_for_testing: {} tensors and buffers live; dispose of them first", tensors));
  for (const auto& device : devices) {
    device->arena().flush_deferred();
    const std::size_t bytes = device->arena().stats().bytes_in_use;
    if (bytes > 0)
      throw FailedPrecondition(fmt::format("config::reset_for_testing: {} of \"{}\" are in use; deallocate them first",
                                           format_bytes_exactly(bytes), device->name()));
  }
}

}  // namespace

Runtime& Runtime::instance() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

const Runtime::Devices& Runtime::devices() {
  const Devices* const devices = devices_.load(std::memory_order_acquire);
  return devices ? *devices : start();
}

const Runtime::Devices& Runtime::start() {
  std::vector<std::string> warnings;
  const Devices* started = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (started_devices()) return *started_devices();
    started = make_devices(warnings).release();
    devices_.store(started, std::memory_order_release);
  }
  for (const std::string& warning : warnings) log_message(LogLevel::warning, warning);  // The sink may ask us things.
  return *started;
}

std::unique_ptr<Runtime::Devices> Runtime::make_devices(std::vector<std::string>& warnings) const {
  auto devices = std::make_unique<Devices>();
  const DefaultLimit left = default_memory_limit();
  for (LogicalDevicePlan& plan : plan_logical_devices(settings_, find_physical_devices(), left, warnings)) {
    devices->push_back(std::make_unique<Device>(std::move(plan.device), plan.growth));
    const Device& made = *devices->back();
    devices->back()->arena().set_deferred_release(settings_.deferred_release);
    if (!made.roomy())
      warnings.push_back(
          fmt::format("device \"{}\": only {} of addresses could be reserved for a limit of {}; when fragmented "
                      "it may refuse earlier; raise RLIMIT_AS (ulimit -v) or lower the limit",
                      made.name(), format_bytes(made.arena().range_bytes()), format_bytes(made.arena().limit())));
  }
  return devices;
}

Device& Runtime::device(std::string_view name) {
  const Devices& all = devices();
  if (name.empty()) {
    if (all.empty()) throw NotFound("device: none is visible; see config::set_visible_devices");
    const std::size_t chosen = DeviceScope::current();
    return *all[chosen < all.size() ? chosen : 0];
  }
  for (const auto& device : all)
    if (device->name() == name) return *device;
  const std::string wanted = parse_device_name(name).text();
  for (const auto& device : all)
    if (device->name() == wanted) return *device;
  throw NotFound(fmt::format("device \"{}\": there is no such device; these exist: {}", name, names_of(all)));
}

Settings Runtime::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

void Runtime::change(std::string_view function, FunctionRef<void(Settings&)> edit) {
  const std::lock_guard lock(mutex_);
  Settings changed = settings_;
  edit(changed);
  if (changed == settings_) return;
  if (started())
    throw FailedPrecondition(
        fmt::format("{}: the runtime has started and its devices' settings are fixed; call it before the first "
                    "allocation, tensor or config::list_logical_devices()",
                    function));
  settings_ = std::move(changed);
}

void Runtime::set_tensor_count(std::size_t (*count)()) noexcept { tensor_count.store(count); }

void Runtime::reset() {
  const std::lock_guard lock(mutex_);
  const Devices* const devices = started_devices();
  if (devices) require_unused(*devices);
  devices_.store(nullptr, std::memory_order_release);
  delete devices;
  settings_ = {};
}

}  // namespace plimsoll
