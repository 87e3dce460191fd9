#include "plimsoll/graph/program_context.h"

namespace plimsoll::internal {

ProgramContext::ProgramContext(const ProgramTables& program)
    : tables(program), bases(program.num_bases, nullptr), devices(program.num_bases, nullptr) {
  for (const ProgramTables::View& view : tables.in)
    in.emplace_back(nullptr, view.offset, view.spec.dtype, view.spec.shape);
  for (const ProgramTables::View& view : tables.out)
    out.emplace_back(nullptr, view.offset, view.spec.dtype, view.spec.shape);
  for (const ProgramTables::Step& step : tables.steps) ops.push_back(step.op);
  const auto copy_op = [&](std::uint32_t step) {
    const Op& op = *tables.steps[step].op;
    drawing_.push_back(std::make_unique<std::byte[]>(op.object_bytes()));
    drawing_ops.push_back(op.copy_to(drawing_.back().get()));
    ops[step] = drawing_ops.back();
  };
  for (const ProgramTables::RandomStep& random : tables.random_steps) copy_op(random.step);
  for (const ProgramTables::SeededStep& seeded : tables.seeded_steps) copy_op(seeded.step);
}

ProgramContext::~ProgramContext() {
  for (Op* op : drawing_ops) op->~Op();
}

void* ProgramContext::reach(Device& device, void* address) {
  const bool is_reachable = device.backend().is_reachable();
  is_elsewhere = is_elsewhere || !is_reachable;
  return is_reachable && address ? device.backend().host_address(address) : address;
}

void ProgramContext::set_views(std::uint32_t base, void* address) {
  bases[base] = address;
  for (std::uint32_t i = tables.base_views_begin[base]; i < tables.base_views_begin[base + 1]; ++i) {
    const std::uint32_t view = tables.base_views[i];
    if (view & ProgramTables::kOutBit) {
      TensorView& to = out[view & ~ProgramTables::kOutBit];
      to = TensorView(address, to.offset(), to.dtype(), to.shape());
    } else {
      ConstTensorView& to = in[view];
      to = ConstTensorView(address, to.offset(), to.dtype(), to.shape());
    }
  }
}

Device& ProgramContext::device_of(const ProgramTables::Step& step) const {
  Device* const device = step.num_out > 0 ? devices[tables.out[step.first_out].base] : nullptr;
  return device ? *device : *tables.extents[step.extent].device;
}

}  // namespace plimsoll::internal
