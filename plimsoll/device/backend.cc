#include "plimsoll/device/backend.h"

namespace plimsoll::internal {

KernelQueue::~KernelQueue() = default;
DeviceBackend::~DeviceBackend() = default;

DeviceCounters DeviceBackend::counters() const noexcept {
  DeviceCounters counters;
  counters.launches = launches_.load(std::memory_order_relaxed);
  counters.waits = waits_.load(std::memory_order_relaxed);
  counters.bytes_in = bytes_in_.load(std::memory_order_relaxed);
  counters.bytes_out = bytes_out_.load(std::memory_order_relaxed);
  counters.driver_allocations = driver_allocations_.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  counters.fallbacks = num_fallbacks_;
  return counters;
}

void DeviceBackend::reset_counters() noexcept {
  for (std::atomic<std::uint64_t>* counter : {&launches_, &waits_, &bytes_in_, &bytes_out_, &driver_allocations_})
    counter->store(0, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  num_fallbacks_ = 0;
  for (auto& [op, count] : fallbacks_) count = 0;
}

std::map<std::string, std::uint64_t> DeviceBackend::fallbacks() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::uint64_t> counts = fallbacks_;
  std::erase_if(counts, [](const auto& one) { return one.second == 0; });
  return counts;
}

bool DeviceBackend::count_fallback(const char* op) {
  const std::lock_guard lock(mutex_);
  ++num_fallbacks_;
  const auto [found, is_first] = fallbacks_.try_emplace(op, 0);
  ++found->second;
  return is_first;
}

}  // namespace plimsoll::internal
