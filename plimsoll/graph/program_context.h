// ProgramContext: the state of one running call of a program that does not depend on the call: views of all operands
// and results with their addresses filled in, and copies of the ops that draw random numbers.
//
//   ProgramContext context(tables);
//   context.begin();
//   context.set_base(0, device, extent);        // all views of base 0 now point there
//   step.op->run(context.run_of(step));
//
// A context serves one call at a time; ProgramVariant keeps idle ones for the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/device/device.h"
#include "plimsoll/graph/program_tables.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

struct ProgramContext {
  explicit ProgramContext(const ProgramTables& tables);
  ~ProgramContext();
  ProgramContext(const ProgramContext&) = delete;
  ProgramContext& operator=(const ProgramContext&) = delete;

  void begin() noexcept { is_elsewhere = false; }
  // The address is the device's; views get the one that the host uses, where it can access the device.
  void set_base(std::uint32_t base, Device& device, void* address) {
    devices[base] = &device;
    if (!device.is_host()) [[unlikely]]
      address = reach(device, address);
    set_here(base, address);
  }
  void set_here(std::uint32_t base, void* address) {  // An address that the host can use.
    if (bases[base] != address) set_views(base, address);
  }

  // The device of a step is the one of its results, which for a move is not the one of its operand.
  Device& device_of(const ProgramTables::Step& step) const;
  OpRun run_of(const ProgramTables::Step& step) const {
    return {{in.data() + step.first_in, step.num_in},
            {out.data() + step.first_out, step.num_out},
            {static_cast<std::byte*>(bases[step.extent]) + step.scratch_offset, step.scratch_bytes}};
  }

  const ProgramTables& tables;
  std::vector<ConstTensorView> in;
  mutable std::vector<TensorView> out;
  std::vector<void*> bases;
  std::vector<Device*> devices;  // Of each base.
  std::vector<const Op*> ops;
  std::vector<Op*> drawing_ops;  // One for each random step, then for each seeded one.
  bool is_elsewhere = false;     // Some of it is on a device that the host cannot access.

 private:
  void* reach(Device& device, void* address);
  void set_views(std::uint32_t base, void* address);

  std::vector<std::unique_ptr<std::byte[]>> drawing_;  // Where drawing_ops are.
};

}  // namespace plimsoll::internal
