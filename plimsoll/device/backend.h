// DeviceBackend: the interface of a kind of device: memory, copies to and from the host, fills, and a queue in order.
//
//   class MyBackend final : public DeviceBackend { ... };     // one folder under plimsoll/device
//   register it: one line in device_kind.cc
//
// Addresses are the arena's: base + offset within the range that pages().reserve() returned. They need not be valid on
// the host; is_reachable() and host_address() tell whether the host can access the bytes, and where.
// Work is done in the order in which it is submitted, so that a block may be freed and reused while a kernel still uses
// it. Only copy_out() and finish() wait.
// A device that fails stays failed: every later copy_out() and finish() throws Error, and submitted work is dropped.
// Nothing hangs.
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/device/kernel_queue.h"
#include "plimsoll/memory/pages/page_source.h"

namespace plimsoll::internal {

// What a device has done since its start. All 0 for the host.
struct DeviceCounters {
  std::uint64_t launches = 0;            // Kernels of the device.
  std::uint64_t fallbacks = 0;           // Ops that ran on the host instead.
  std::uint64_t waits = 0;               // Times that the host waited for the device.
  std::uint64_t bytes_in = 0;            // Copied from the host.
  std::uint64_t bytes_out = 0;           // Copied to the host.
  std::uint64_t driver_allocations = 0;  // Memory objects requested from the driver.
};

class PLIMSOLL_API DeviceBackend {
 public:
  virtual ~DeviceBackend();

  virtual PageSource& pages() noexcept = 0;

  // Whether the host can access the memory, and where it finds these bytes. Addresses outside the arena stay unchanged.
  virtual bool is_reachable() const noexcept = 0;
  virtual std::byte* host_address(void* address) const noexcept = 0;  // Requires is_reachable().
  const std::byte* host_address(const void* address) const noexcept { return host_address(const_cast<void*>(address)); }

  // `from` may change as soon as it returns. Does not throw: see above.
  virtual void copy_in(void* to, const void* from, std::size_t bytes) noexcept = 0;
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;       // After everything submitted before.
  virtual void copy(void* to, const void* from, std::size_t bytes) noexcept = 0;  // They do not overlap.
  // Repeats the first `element_bytes` (1, 2, 4 or 8) of `pattern`.
  virtual void fill(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept = 0;
  virtual void finish() = 0;  // Waits for everything submitted.

  // (optional) Kernels; nullptr: the host's run, on copies of the operands when it cannot access them.
  virtual KernelQueue* kernels() noexcept { return nullptr; }

  // (optional) A description of this device for people.
  virtual std::string description() const { return ""; }

  DeviceCounters counters() const noexcept;
  void reset_counters() noexcept;
  std::map<std::string, std::uint64_t> fallbacks() const;  // By op.
  // True for the first fallback of this op.
  bool count_fallback(const char* op);

 protected:
  void count_launch() noexcept { launches_.fetch_add(1, std::memory_order_relaxed); }
  void count_wait() noexcept { waits_.fetch_add(1, std::memory_order_relaxed); }
  void count_in(std::size_t bytes) noexcept { bytes_in_.fetch_add(bytes, std::memory_order_relaxed); }
  void count_out(std::size_t bytes) noexcept { bytes_out_.fetch_add(bytes, std::memory_order_relaxed); }
  void count_driver_allocation() noexcept { driver_allocations_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> launches_{0}, waits_{0}, bytes_in_{0}, bytes_out_{0}, driver_allocations_{0};
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> fallbacks_;  // Guarded by mutex_.
  std::uint64_t num_fallbacks_ = 0;                 // The same.
};

}  // namespace plimsoll::internal
