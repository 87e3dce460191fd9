// DeviceSteps: runs the steps of a call whose values are on devices that the host cannot access.
//
//   steps.obtain(context, call.read);            // before the first step: everything that can run out of memory
//   steps.check(context, i);                     // labels and indices
//   steps.run(context, i);                       // on the device, or on the host with copies
//   steps.settle(context);                       // after the last step: what checks have found
//   call.read(steps.fetched(context));           // results, copied to the host
//   steps.release();                             // however the call ended
//
// Checks do not stop the queue. Indices that were fed on the host are checked there. Others are checked by the device,
// in the order of its queue, and what it finds is read when the call waits for the device, at the latest at its end:
// then the call throws what the host's check would have thrown. Until then a step that changes a variable does nothing
// once an index was refused. A call that neither changes variables nor reads results leaves its checks to the device
// (device/index_checks.h), so that it need not wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/graph/program_context.h"
#include "plimsoll/tensor/run_on.h"

namespace plimsoll::internal {

class DeviceSteps {
 public:
  // Throws OutOfMemory; and what was refused on these devices before, when the call changes variables.
  void obtain(const ProgramContext& context, bool reads_results);
  void check(const ProgramContext& context, std::size_t step);
  void run(const ProgramContext& context, std::size_t step);
  void settle(const ProgramContext& context);
  std::span<const ConstTensorView> fetched(const ProgramContext& context);
  void release() noexcept;

 private:
  // Bytes on a device that were fed, that the host has too, and that have not been overwritten.
  struct HostCopy {
    const std::byte *there, *here;
    std::size_t bytes;
  };
  // Where a device leaves what the checks of this call refuse.
  struct Word {
    Device* device;
    std::uint32_t number;
    bool is_pending;
  };

  void prepare_moves(const ProgramContext& context);
  bool check_on_host(const ProgramContext& context, const ProgramTables::Step& step);
  bool check_there(const ProgramContext& context, std::size_t step, Device& device);
  Word* word_of(Device& device);  // nullptr: the device has none left.
  void settle(const ProgramContext& context, Word& word);
  void settle(const ProgramContext& context, Device& device);
  // Before a variable changes on this device. Returns the word that such steps depend on.
  std::uint32_t guard_changes(const ProgramContext& context, const Device& device);

  HostRun there_;
  bool is_prepared_ = false;  // All steps are, in there_.
  bool has_words_ = false;    // Of its own; otherwise checks are left to their devices.
  std::vector<Word> words_;
  std::vector<HostCopy> host_copies_;
  std::vector<ConstTensorView> checked_;  // Of the step that is being checked.
  std::vector<ConstTensorView> fetched_;  // Views of fetched_bytes_.
  StorageRef fetched_bytes_;
  std::size_t most_moved_ = 0;  // Bytes, between two devices that the host cannot access.
  StorageRef moved_bytes_;      // For them on their way.
};

}  // namespace plimsoll::internal
