// Runtime: the process's settings and, once it has started, its devices. Never destroyed.
//
//   Device& device = Runtime::instance().device("CPU:0");    // starts it if need be
//
// Before the start settings may change; afterwards they are fixed. It starts when a device is first needed: by an
// allocation, config::list_logical_devices() or a question about a device's memory. When starting throws, it has not
// started. Thread safety: any thread, except that reset() must not run beside users of devices. Cost of device(): some
// 10 ns.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/settings.h"

namespace plimsoll {

class PLIMSOLL_API Runtime {
 public:
  using Devices = std::vector<std::unique_ptr<Device>>;

  static Runtime& instance();

  bool started() const noexcept { return devices_.load(std::memory_order_acquire) != nullptr; }
  const Devices& devices();  // Starts. All visible logical devices.
  const Devices* started_devices() const noexcept { return devices_.load(std::memory_order_acquire); }

  // Starts. "" is the device of the innermost DeviceScope, the first one outside of any. Throws InvalidArgument for
  // text that is no device's name, NotFound for a device that does not exist, listing those that do.
  Device& device(std::string_view name);

  Settings settings() const;

  // Changes settings through `edit`, which may throw to refuse. Does nothing when they stay as they were; throws
  // FailedPrecondition, in the name of `function`, when they would change after the start.
  void change(std::string_view function, FunctionRef<void(Settings&)> edit);

  // Forgets devices and settings. Throws FailedPrecondition while blocks or tensors live; then nothing has changed.
  void reset();

  // Tells reset() how to count what the layers above keep on devices beside blocks.
  static void set_tensor_count(std::size_t (*count)()) noexcept;

 private:
  Runtime() = default;
  const Devices& start();
  std::unique_ptr<Devices> make_devices(std::vector<std::string>& warnings) const;

  mutable std::mutex mutex_;
  Settings settings_;                             // Guarded by mutex_.
  std::atomic<const Devices*> devices_{nullptr};  // Owned; changed under mutex_.
};

}  // namespace plimsoll
