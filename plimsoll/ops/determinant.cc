#include "plimsoll/ops/determinant.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/determinant.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll::internal {
namespace {

class Determinant final : public OpOf<Determinant> {
 public:
  const char* name() const noexcept override { return "determinant"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& x = in.shape(0);
    if (in.dtype(0) != f32 && in.dtype(0) != f64) refuse_dtype(*this, in.dtype(0));
    require_rank_at_least(*this, x, 2);
    if (x.back() != x[x.rank() - 2])
      throw InvalidArgument(fmt::format("determinant: x {} has no square matrices", x.to_string()));
    out.add(Shape(std::vector<std::int64_t>(x.begin(), x.end() - 2)), in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return determinant_scratch_bytes(in.shape(0));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    return Op::cost(in, out) + multiplication_cost(in.shape(0).size() * static_cast<std::uint64_t>(in.shape(0).back()));
  }
  void run(const OpRun& run) const noexcept override { internal::determinant(run.in[0], run.out[0], run.scratch); }
  void gradient(GradientContext&) const override { throw Unsupported("determinant: has no gradient"); }
};

}  // namespace

Tensor determinant(const Tensor& x) { return execute(Determinant(), x); }

}  // namespace plimsoll::internal
