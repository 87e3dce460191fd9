#include "plimsoll/device/runtime.h"

#include <fmt/format.h>

#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device_kind.h"
#include "plimsoll/device/device_name.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/environment.h"
#include "plimsoll/device/start_hook.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll::internal {
namespace {

std::string names_of(const Runtime::Devices& devices) {
  std::string names;
  for (const auto& device : devices) names += (names.empty() ? "" : ", ") + device->name();
  return names;
}

// For a device that the machine has, but that nobody had requested when the runtime started.
std::string late_note(const std::string& name) {
  for (const DeviceKind& kind : device_kinds())
    if (kind.waits_to_be_asked)
      for (const std::string& type : kind.types)
        if (name.starts_with(type + ":") && !is_looked_for(kind))
          return " (it was not looked for: name it, or list the devices, before the first tensor)";
  return "";
}

std::atomic<const TensorHooks*> tensor_hooks{nullptr};
constinit std::atomic<void (*)() noexcept> start_hook{nullptr};

// What a hook returns, 0 when it is not set.
std::size_t ask(std::size_t (*TensorHooks::*hook)()) {
  const TensorHooks* const hooks = tensor_hooks.load(std::memory_order_acquire);
  return hooks ? (hooks->*hook)() : 0;
}

Device* host_of(const Runtime::Devices& devices) noexcept {
  for (const auto& device : devices)
    if (device->is_host()) return device.get();
  return nullptr;
}

// Blocks freed with deferred release do not count as held.
void require_unused(const Runtime::Devices& devices) {
  if (const std::size_t tensors = ask(&TensorHooks::count))
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
  config::apply_process_environment();
  std::vector<std::string> warnings;
  const Devices* started = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (started_devices()) return *started_devices();
    started = make_devices(warnings).release();
    devices_.store(started, std::memory_order_release);
  }
  for (const std::string& warning : warnings) log_message(LogLevel::warning, warning);  // The sink may call us.
  if (const auto hook = start_hook.load()) hook();
  return *started;
}

std::unique_ptr<Runtime::Devices> Runtime::make_devices(std::vector<std::string>& warnings) const {
  auto devices = std::make_unique<Devices>();
  const DefaultLimit left = default_memory_limit();
  want_visible_devices();
  const std::vector<PhysicalDevice> machine = find_physical_devices();
  const DeviceEnvironment environment = read_device_environment(machine);
  for (LogicalDevicePlan& plan : plan_logical_devices(settings_, machine, left, warnings, environment)) {
    auto backend = make_backend(plan.device.physical_device);
    devices->push_back(
        std::make_unique<Device>(std::move(plan.device), plan.growth, settings_.charge_overhead, std::move(backend)));
    const Device& made = *devices->back();
    devices->back()->arena().set_deferred_release(settings_.deferred_release);
    devices->back()->arena().set_overhead_trimmer(&Runtime::trim_tensors);
    if (made.is_host() && !made.roomy())
      warnings.push_back(
          fmt::format("device \"{}\": only {} of addresses could be reserved for a limit of {}; when fragmented "
                      "it may refuse earlier; raise RLIMIT_AS (ulimit -v) or lower the limit",
                      made.name(), format_bytes(made.arena().range_bytes()), format_bytes(made.arena().limit())));
  }
  if (Device* const host = host_of(*devices)) host->arena().add_overhead(ask(&TensorHooks::slab_bytes));
  return devices;
}

Device& Runtime::device(std::string_view name) {
  if (!name.empty() && !started()) want_devices(parse_device_name(name).type);
  const Devices& all = devices();
  if (name.empty()) {
    const std::size_t chosen = DeviceScope::current();
    return *all[chosen < all.size() ? chosen : 0];
  }
  for (const auto& device : all)
    if (device->name() == name) return *device;
  const std::string wanted = parse_device_name(name).text();
  for (const auto& device : all)
    if (device->name() == wanted) return *device;
  throw NotFound(
      fmt::format("device \"{}\": there is no such device{}; these exist: {}", name, late_note(wanted), names_of(all)));
}

Device& Runtime::host_device() {
  for (const auto& device : devices())
    if (device->is_host()) return *device;
  throw NotFound("device: this process has no CPU device");  // CPU:0 cannot be hidden.
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

void set_runtime_start_hook(void (*hook)() noexcept) noexcept { start_hook = hook; }

void Runtime::set_tensor_hooks(const TensorHooks& hooks) noexcept {
  static TensorHooks kept;
  kept = hooks;
  tensor_hooks.store(&kept, std::memory_order_release);
}

Device* Runtime::host() const noexcept {
  const Devices* const devices = started_devices();
  return devices ? host_of(*devices) : nullptr;
}

void Runtime::add_overhead(std::size_t bytes) {
  if (Device* const device = host()) device->arena().add_overhead(bytes);
}

void Runtime::remove_overhead(std::size_t bytes) noexcept {
  if (Device* const device = host()) device->arena().remove_overhead(bytes);
}

std::size_t Runtime::overhead_bytes(const Device& device) const {
  const bool has_all = &device == host();
  return device.overhead_bytes() + (has_all ? ask(&TensorHooks::other_bytes) + ThreadRegistry::instance().bytes() : 0);
}

std::size_t Runtime::trim_tensors() { return ask(&TensorHooks::trim); }

void Runtime::reset() {
  const std::lock_guard lock(mutex_);
  const Devices* const devices = started_devices();
  if (devices) require_unused(*devices);
  trim_tensors();
  devices_.store(nullptr, std::memory_order_release);
  delete devices;
  settings_ = {};
  forget_wanted_devices();
}

}  // namespace plimsoll::internal
