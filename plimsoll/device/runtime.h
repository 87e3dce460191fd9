// Runtime: the process's settings and, once it has started, its devices. Never destroyed.
//
//   Device& device = Runtime::instance().device("CPU:0");    // starts it if necessary
//
// Settings may change before the start; afterwards they are fixed. It starts when a device is first needed: by an
// allocation, config::list_logical_devices() or a query of a device's memory. When starting throws, it has not started.
// Thread safety: any thread, except that reset() must not run beside users of devices. Cost of device(): about 10 ns.
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

namespace plimsoll::internal {

// What the tensor layer reports to the runtime.
struct TensorHooks {
  std::size_t (*count)() = nullptr;        // Live tensors and buffers.
  std::size_t (*slab_bytes)() = nullptr;   // Their records: what add_overhead() added, less what was returned.
  std::size_t (*other_bytes)() = nullptr;  // Kept for tensors elsewhere: names, counts.
  std::size_t (*trim)() = nullptr;         // Returns spare records to the system, and their bytes to the caller.
};

class PLIMSOLL_API Runtime {
 public:
  using Devices = std::vector<std::unique_ptr<Device>>;

  static Runtime& instance();

  bool started() const noexcept { return devices_.load(std::memory_order_acquire) != nullptr; }
  const Devices& devices();  // Starts. All visible logical devices.
  const Devices* started_devices() const noexcept { return devices_.load(std::memory_order_acquire); }

  // Starts. "" is the device of the innermost DeviceScope, the first one outside any. Throws InvalidArgument for
  // text that is not a device name, NotFound for a device that does not exist, listing those that do.
  Device& device(std::string_view name);

  Device& host_device();  // Starts. The first CPU device, which is always there.

  Settings settings() const;

  // Changes settings through `edit`, which may throw to refuse. Does nothing when they stay the same; throws
  // FailedPrecondition that begins with `function` when they would change after the start.
  void change(std::string_view function, FunctionRef<void(Settings&)> edit);

  // Forgets devices and settings. Throws FailedPrecondition while blocks or tensors live; then nothing has changed.
  void reset();

  static void set_tensor_hooks(const TensorHooks& hooks) noexcept;  // Once.

  // Records of tensors are in host memory: the first CPU device counts them as overhead. Throws OutOfMemory when
  // overhead is charged to its limit and does not fit. Does nothing before the start.
  void add_overhead(std::size_t bytes);
  void remove_overhead(std::size_t bytes) noexcept;
  std::size_t overhead_bytes(const Device& device) const;  // All records kept for it.
  static std::size_t trim_tensors();                       // Returns the released bytes.

 private:
  Runtime() = default;
  const Devices& start();
  std::unique_ptr<Devices> make_devices(std::vector<std::string>& warnings) const;
  Device* host() const noexcept;  // The first CPU device, nullptr before the start.

  mutable std::mutex mutex_;
  Settings settings_;                             // Guarded by mutex_.
  std::atomic<const Devices*> devices_{nullptr};  // Owned; changed under mutex_.
};

}  // namespace plimsoll::internal
