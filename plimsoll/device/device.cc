#include "plimsoll/device/device.h"

#include <utility>

#include "plimsoll/device/host_backend.h"

namespace plimsoll::internal {

Device::Device(LogicalDevice properties, bool growth, bool charge_overhead, std::unique_ptr<DeviceBackend> backend)
    : properties_(std::move(properties)),
      growth_(growth),
      is_host_(!backend || dynamic_cast<HostBackend*>(backend.get()) != nullptr),
      backend_(backend ? std::move(backend) : std::make_unique<HostBackend>()),
      arena_(backend_->pages(), {.name = properties_.name,
                                 .limit = properties_.memory_limit,
                                 .growth = growth,
                                 .charge_overhead = charge_overhead}) {}

PmrResource& Device::pmr_resource() {
  if (PmrResource* const made = pmr_.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(making_pmr_);
  if (!pmr_owner_) pmr_owner_ = std::make_unique<PmrResource>(arena_);
  pmr_.store(pmr_owner_.get(), std::memory_order_release);
  return *pmr_owner_;
}

std::size_t Device::trim() {
  PmrResource* const pmr = pmr_.load(std::memory_order_acquire);
  return arena_.trim() + (pmr ? pmr->trim() : 0);
}

std::size_t Device::overhead_bytes() const {
  const PmrResource* const pmr = pmr_.load(std::memory_order_acquire);
  return arena_.overhead_bytes() + (pmr ? pmr->overhead_bytes() : 0);
}

}  // namespace plimsoll::internal
