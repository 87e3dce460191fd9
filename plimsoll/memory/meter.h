// Meter: one thread's share of a counted limit. Adding and subtracting cost no atomic operation.
//
// A thread may use up to `allowance` bytes, which it drew from the central count (MeterCenter) beforehand and returns
// when it holds much more than it uses. The center's sum of allowances never passes its limit, so neither does use.
// Written by its thread between enter() and leave(), or by a thread that has stopped it; read by anyone.
#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

class MeterCenter;

struct alignas(64) Meter {
  std::atomic<std::int64_t> used{0};  // Below zero when this thread frees what others allocated.
  std::atomic<std::int64_t> peak{0};
  std::atomic<std::int64_t> allowance{0};
  std::int64_t keep = 0;  // Unused allowance above this is returned to the center.
  MeterCenter* center = nullptr;
  Meter* parent = nullptr;  // The same thread's meter of the parent budget.

  bool fits(std::int64_t bytes) const noexcept { return load(used) + bytes <= load(allowance); }
  void add(std::int64_t bytes) noexcept { used.store(load(used) + bytes, std::memory_order_relaxed); }
  void note_peak() noexcept {  // After add(), once it is certain that the bytes will be used.
    if (load(used) > load(peak)) peak.store(load(used), std::memory_order_relaxed);
  }
  // True when unused allowance should be returned.
  bool subtract(std::int64_t bytes) noexcept {
    const std::int64_t now = load(used) - bytes;
    used.store(now, std::memory_order_relaxed);
    return load(allowance) - now > keep;
  }
  static std::int64_t load(const std::atomic<std::int64_t>& value) noexcept {
    return value.load(std::memory_order_relaxed);
  }
};

}  // namespace plimsoll::internal
