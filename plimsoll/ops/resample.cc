#include "plimsoll/ops/resample.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll::internal {
namespace {

// Either way: from the axis to its places, or a gradient back.
class Resample final : public OpOf<Resample> {
 public:
  Resample(std::size_t axis, const ResampleRule& rule, bool back) noexcept : axis_(axis), back_(back), rule_(rule) {}
  const char* name() const noexcept override { return back_ ? "resample_gradient" : "resample"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return resample_scratch_bytes(rule_, in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    if (back_)
      resample_adjoint(rule_, run.in[0], axis_, run.out[0], run.scratch);
    else
      internal::resample(rule_, run.in[0], axis_, run.out[0], run.scratch);
  }
  void gradient(GradientContext& c) const override {
    ResampleRule linear = rule_;
    linear.outside = 0;  // It has no part in the gradient.
    c.give(0, execute(Resample(axis_, linear, !back_), c.grad(0)));
  }
  bool operator==(const Resample&) const = default;

 private:
  std::size_t axis_;
  bool back_;
  ResampleRule rule_;
};

void Resample::infer(const Specs& in, SpecList& out) const {
  const Shape& x = in.shape(0);
  const std::int64_t from = back_ ? rule_.to : rule_.from;
  if (axis_ >= x.rank() || (x[axis_] != from && x[axis_] != kUnknownSize))
    throw InvalidArgument(fmt::format("{}: axis {} of x {} has no size of {}", name(), axis_, x.to_string(), from));
  const bool floats = in.dtype(0) == f32 || in.dtype(0) == f64;
  if (!floats && (back_ || rule_.mode != ResampleMode::nearest)) refuse_dtype(*this, in.dtype(0));
  std::vector<std::int64_t> sizes(x.begin(), x.end());
  sizes[axis_] = back_ ? rule_.from : rule_.to;
  out.add(Shape(sizes), in.dtype(0));
}

}  // namespace

Tensor resample(const Tensor& x, std::size_t axis, const ResampleRule& rule) {
  if (rule.from < 1 || rule.to < 0 || !(rule.scale > 0))
    throw InvalidArgument(
        fmt::format("resample: an axis from {} to {} by a scale of {}", rule.from, rule.to, rule.scale));
  return execute(Resample(axis, rule, false), x);
}

}  // namespace plimsoll::internal
