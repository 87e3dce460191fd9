// StopToken: tells a search to end, because somebody asked or because time is up.
//
//   StopToken stop(best.time_limit());
//   while (!stop.requested(nodes)) ...        // looks at the clock every few hundred nodes only
//
// Thread safety: request() and requested() may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace plimsoll::internal {

class StopToken {
 public:
  using Clock = std::chrono::steady_clock;
  explicit StopToken(Clock::time_point limit) : limit_(limit) {}

  void request() const { requested_.store(true, std::memory_order_relaxed); }

  bool requested(std::uint64_t nodes) const {
    if (nodes % 256 == 0 && Clock::now() >= limit_) request();
    return requested_.load(std::memory_order_relaxed);
  }

 private:
  const Clock::time_point limit_;
  mutable std::atomic<bool> requested_{false};
};

}  // namespace plimsoll::internal
