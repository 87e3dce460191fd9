// Device: a logical device at work: its backend, and the arena that places blocks in the backend's pages.
//
//   Device device({.name = "CPU:0", .type = "CPU", .memory_limit = 1_GiB}, false);
//   device.arena().allocate(1_MiB);
//   if (!device.is_host()) device.backend().copy_in(address, bytes, size);
//
// Made by the runtime when it starts, see runtime.h.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "plimsoll/device/backend.h"
#include "plimsoll/device/index_checks.h"
#include "plimsoll/device/physical_device.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/pmr_resource.h"

namespace plimsoll::internal {

class PLIMSOLL_API Device {
 public:
  // Without a backend: the host's. Throws InvalidArgument for a limit below one page, OutOfMemory when its addresses
  // cannot be reserved.
  Device(LogicalDevice properties, bool growth, bool charge_overhead = false,
         std::unique_ptr<DeviceBackend> backend = nullptr);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const LogicalDevice& properties() const noexcept { return properties_; }
  const std::string& name() const noexcept { return properties_.name; }
  bool growth() const noexcept { return growth_; }
  bool is_host() const noexcept { return is_host_; }  // Its addresses are this process's, and kernels run at once.
  DeviceBackend& backend() const noexcept { return *backend_; }
  IndexChecks& index_checks() noexcept { return index_checks_; }
  Arena& arena() noexcept { return arena_; }
  const Arena& arena() const noexcept { return arena_; }

  PmrResource& pmr_resource();         // Made at first use.
  std::size_t trim();                  // Returns the bytes released to the operating system.
  std::size_t overhead_bytes() const;  // Our own records for it, outside its limit.

  // False when fewer addresses than twice the limit could be reserved: there may be no room to move pages to.
  bool roomy() const noexcept { return arena_.range_bytes() / 2 >= arena_.limit(); }

 private:
  const LogicalDevice properties_;
  const bool growth_;
  const bool is_host_;
  const std::unique_ptr<DeviceBackend> backend_;
  Arena arena_;
  IndexChecks index_checks_{*backend_};
  std::mutex making_pmr_;
  std::unique_ptr<PmrResource> pmr_owner_;  // Guarded by making_pmr_; read through the next.
  std::atomic<PmrResource*> pmr_{nullptr};
};

}  // namespace plimsoll::internal
