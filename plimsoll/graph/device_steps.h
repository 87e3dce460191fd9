// DeviceSteps: runs the steps of a call whose values are on devices that the host cannot access.
//
//   steps.obtain(context, call.read);            // before the first step: everything that can run out of memory
//   steps.check(context, step);                  // labels and indices, on the host's copy where it has one
//   steps.run(context, i);                       // on the device, or on the host with copies
//   call.read(steps.fetched(context));           // results, copied to the host
//   steps.release();                             // however the call ended
//
// Integers that were fed are checked without waiting for the device: they are read before anything is submitted.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plimsoll/graph/program_context.h"
#include "plimsoll/tensor/run_on.h"

namespace plimsoll::internal {

class DeviceSteps {
 public:
  void obtain(const ProgramContext& context, bool reads_results);  // Throws OutOfMemory.
  void check(const ProgramContext& context, const ProgramTables::Step& step);
  void run(const ProgramContext& context, std::size_t step);
  std::span<const ConstTensorView> fetched(const ProgramContext& context);
  void release() noexcept;

 private:
  void read_fed_indices(const ProgramContext& context);

  // Bytes on a device that were fed, that the host has too, and that have not been overwritten.
  struct HostCopy {
    const std::byte *there, *here;
    std::size_t bytes;
  };
  HostRun there_;
  bool is_prepared_ = false;  // All steps are, in there_.
  std::vector<HostCopy> host_copies_;
  std::vector<ConstTensorView> fetched_;  // Views of fetched_bytes_.
  StorageRef fetched_bytes_, fed_indices_;
};

}  // namespace plimsoll::internal
