#include "plimsoll/device/backend.h"

#include <new>

namespace plimsoll::internal {

KernelQueue::~KernelQueue() = default;
void KernelQueue::give_word(std::uint32_t) noexcept {}
bool KernelQueue::check_indices(std::uint32_t, std::uint32_t, const ConstTensorView&, std::int64_t) noexcept {
  return false;
}
RefusedIndex KernelQueue::read_word(std::uint32_t) { return {}; }

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

// In the middle of a step, which must not fail: without memory for its name an op is counted among all only.
bool DeviceBackend::count_fallback(const char* op) {
  const std::lock_guard lock(mutex_);
  ++num_fallbacks_;
  for (auto& [known, count] : fallbacks_)
    if (known == op) {
      ++count;
      return false;
    }
  try {
    return fallbacks_.try_emplace(op, 1).second;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace plimsoll::internal
