#include "plimsoll/ops/clip.h"

#include <fmt/format.h>

#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/optimizer.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/norm.h"

namespace plimsoll {
namespace {

class GlobalNorm final : public OpOf<GlobalNorm> {
 public:
  const char* name() const noexcept override { return "global_norm"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_same_dtype(*this, in);
    if (in.dtype(0) != f32 && in.dtype(0) != f64) refuse_dtype(*this, in.dtype(0));
    out.add(Shape::scalar(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    double squares = 0;
    for (const ConstTensorView& x : run.in) squares += sum_of_squares(x);
    const double norm = std::sqrt(squares);
    if (run.out[0].dtype() == f32)
      *run.out[0].data<float>() = static_cast<float>(norm);
    else
      *run.out[0].data<double>() = norm;
  }
  SavedSlots saved(SlotMask wanted) const override { return {.inputs = wanted, .outputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    const Tensor& norm = c.output(0);
    const Tensor scale = c.grad() / where(norm == 0, ones_like(norm), norm);
    for (std::size_t i = 0; i < c.num_inputs(); ++i)
      if (c.wants(i)) c.give(i, c.input(i) * scale);
  }
};

void require_limit(const char* where, double limit) {
  if (!(limit > 0) || std::isinf(limit))
    throw InvalidArgument(fmt::format("{}: the limit is {}; give a finite number above 0", where, limit));
}

// limit / max(norm, limit), and NaN when the norm is not finite: infinity times 0 is.
Tensor factor(const Tensor& norm, double limit) { return limit / maximum(norm, limit) * (1 + norm * 0); }

}  // namespace

Tensor clip_by_value(const Tensor& x, double low, double high) {
  if (!(low <= high))
    throw InvalidArgument(
        fmt::format("clip_by_value: from {} to {}; the first must not be above the second", low, high));
  return clip(x, low, high);
}

Tensor clip_by_norm(const Tensor& x, double limit, const Axes& axes) {
  require_limit("clip_by_norm", limit);
  return x * factor(norm(x, 2, axes, {.keep_dims = true}), limit);
}

Tensor global_norm(std::span<const Tensor> tensors) {
  std::vector<Tensor> given;
  for (const Tensor& tensor : tensors)
    if (!tensor.is_empty_handle()) given.push_back(tensor);
  if (given.empty()) return zeros({}, f32);
  return execute_list(GlobalNorm(), given);
}

ClippedTensors clip_by_global_norm(std::span<const Tensor> tensors, double limit) {
  require_limit("clip_by_global_norm", limit);
  ClippedTensors result{{}, global_norm(tensors)};
  const Tensor scale = factor(result.norm, limit);
  result.tensors.reserve(tensors.size());
  for (const Tensor& tensor : tensors) result.tensors.push_back(tensor.is_empty_handle() ? Tensor() : tensor * scale);
  return result;
}
ClippedTensors clip_by_global_norm(const std::vector<Tensor>& tensors, double limit) {
  return clip_by_global_norm(std::span<const Tensor>(tensors), limit);
}

}  // namespace plimsoll
