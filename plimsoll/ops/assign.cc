#include "plimsoll/ops/assign.h"

#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll::internal {

RunEffect::~RunEffect() = default;

const char* AssignOp::name() const noexcept {
  constexpr const char* kNames[] = {"assign", "assign_add", "assign_sub"};
  return kNames[static_cast<std::size_t>(kind_)];
}

bool AssignOp::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& value = run.in.back();
  if (kind_ == AssignKind::kSet) return value.bytes() == run.out[0].bytes() || launch_copy(queue, value, run.out[0]);
  return launch_binary(queue, kind_ == AssignKind::kAdd ? "add" : "subtract", run.in[0], value, run.out[0]);
}

void AssignOp::run(const OpRun& run) const noexcept {
  const ConstTensorView& value = run.in.back();
  if (kind_ != AssignKind::kSet)
    binary(kind_ == AssignKind::kAdd ? BinaryOp::add : BinaryOp::subtract, run.in[0], value, run.out[0]);
  else if (value.bytes() != run.out[0].bytes())
    copy(value, run.out[0]);
}

}  // namespace plimsoll::internal
