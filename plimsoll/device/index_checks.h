// IndexChecks: indices that operations outside of programs are given on a device, checked there in the queue's order.
//
//   if (!device.index_checks().defer(rule, indices)) ...    // the host has to read them, which waits
//   if (device.index_checks().is_pending()) device.index_checks().settle();
//
// Whoever waits for the device or is about to change a variable settles first, so that nothing that was computed with a
// refused index is seen or kept. What settle() finds is thrown once, in the thread that calls it; and once more in the
// thread whose operation it was, if that is another one.
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/device/backend.h"
#include "plimsoll/device/index_rule.h"

namespace plimsoll::internal {

class PLIMSOLL_API IndexChecks {
 public:
  explicit IndexChecks(DeviceBackend& backend) : backend_(backend) {}
  ~IndexChecks();
  IndexChecks(const IndexChecks&) = delete;
  IndexChecks& operator=(const IndexChecks&) = delete;

  // Submits a check. False, having done nothing, when the device cannot. Throws what settle() throws: now and then it
  // settles those before.
  bool defer(const IndexRule& rule, const ConstTensorView& indices);

  bool is_pending() const noexcept { return is_pending_.load(std::memory_order_acquire); }
  // Waits for the checks since the last time; does nothing without any. Throws InvalidArgument for the first index that
  // was refused, Error when the device fails.
  void settle();

 private:
  struct Deferred {
    IndexRule rule;
    Shape indices;
    std::thread::id owner;
  };
  struct Refused {
    std::string text;
    std::thread::id owner;
  };

  DeviceBackend& backend_;
  std::atomic<bool> is_pending_{false};
  std::mutex mutex_;                           // Guards all below.
  std::uint32_t word_ = KernelQueue::kNoWord;  // Taken at the first check.
  std::vector<Deferred> deferred_;             // Check n is at n - 1.
  std::vector<Refused> untold_;                // That their threads have not been told of.
};

}  // namespace plimsoll::internal
