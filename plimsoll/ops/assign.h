// AssignOp: assigning to a variable as an op, for graphs: the operands are the variable's bytes and the value, the
// output is the variable's bytes. With one operand, it copies that.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/ops/graph_variables.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

class PLIMSOLL_API AssignOp final : public OpOf<AssignOp> {
 public:
  explicit AssignOp(AssignKind kind = AssignKind::kSet) noexcept : kind_(kind) {}
  const char* name() const noexcept override;
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  OpFacts facts() const noexcept override { return {.is_pure = false, .has_gradient = false}; }

 private:
  AssignKind kind_;
};

}  // namespace plimsoll::internal
