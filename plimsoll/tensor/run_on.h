// run_on: runs an op on the device of its operands. HostRun: what that needs on a device that is not the host.
//
//   run_on(device, op, {in, out, scratch});
//
// On the host: op.run(). Elsewhere, in this order: the device's own kernels (Op::launch()); the host's kernel on the
// bytes themselves, where the host can access them under other addresses; or the host's kernel on copies: the operands
// are copied to host memory, are checked, the op runs there, and its results are copied back. The last is a fallback:
// counted per op, logged the first time, shown by profile. Throws OutOfMemory when the copies do not fit in host
// memory, and Error when the device fails.
#pragma once

#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/device/device.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

// For callers that acquire everything that can fail before they begin: prepare() every op that will run, then run()
// them.
class PLIMSOLL_API HostRun {
 public:
  void prepare(Device& device, const Op& op, const OpRun& run);  // Uses sizes, not addresses.
  void take();                                                   // Allocates for the largest. Throws OutOfMemory.
  void give_back() noexcept { staged_ = {}; }
  void run(Device& device, const Op& op, const OpRun& run) {
    if (!launch(device, op, run)) run_here(device, op, run);
  }
  // The device's own kernels. False, having done nothing, when it has none for this op. They do nothing when there is
  // something in the word `guard` (kernel_queue.h).
  static bool launch(Device& device, const Op& op, const OpRun& run, std::uint32_t guard = UINT32_MAX);
  // The host's kernel. After prepare() and take() it throws only when the device fails (Error) and, on copies, what the
  // op's check throws.
  void run_here(Device& device, const Op& op, const OpRun& run);
  // Calls op.check() with the operands that checks read (integers), where the host can read them.
  void check(Device& device, const Op& op, const OpRun& run);
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct HereViews;
  void make_room(const OpRun& run);
  void fall_back(Device& device, const Op& op, const OpRun& run);
  std::size_t bytes_ = 0;
  std::vector<ConstTensorView> many_in_;  // Room for the operands of ops that have many.
  std::vector<TensorView> many_out_;
  StorageRef staged_;
};

// The number of ops that this thread has run on the host, on copies, since it started.
std::uint64_t fallbacks_of_thread() noexcept;

PLIMSOLL_API bool has_kernel(Device& device, const Op& op, const OpRun& run) noexcept;

namespace run_on_detail {
PLIMSOLL_API void run_elsewhere(Device& device, const Op& op, const OpRun& run);
}

inline void run_on(Device& device, const Op& op, const OpRun& run) {
  if (device.is_host()) [[likely]]
    op.run(run);
  else
    run_on_detail::run_elsewhere(device, op, run);
}

}  // namespace plimsoll::internal
