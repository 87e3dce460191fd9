// Reductions over axes, and sum_to, their use in gradients.
#include "plimsoll/kernels/reduce.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/reduce.h"

namespace plimsoll {
namespace {

const char* reduce_name(ReduceOp op) {
  constexpr const char* kNames[] = {"sum", "mean", "prod", "max", "min", "any", "all"};
  return kNames[static_cast<std::size_t>(op)];
}

Shape reduced_shape(const Shape& shape, AxesMask axes, bool keep_dims) {
  std::int64_t sizes[kMaxRank];
  std::size_t rank = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const bool gone = axes >> axis & 1;
    if (!gone || keep_dims) sizes[rank++] = gone ? 1 : shape[axis];
  }
  return Shape(std::span<const std::int64_t>(sizes, rank));
}

class Reduce final : public OpOf<Reduce> {
 public:
  Reduce(ReduceOp op, AxesMask axes, bool keep_dims) noexcept : axes_(axes), op_(op), keep_dims_(keep_dims) {}
  const char* name() const noexcept override { return reduce_name(op_); }
  void infer(const Specs& in, SpecList& out) const override {
    if (!is_supported(op_, in.dtype(0))) refuse_dtype(*this, in.dtype(0));
    out.add(reduced_shape(in.shape(0), axes_, keep_dims_), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override { reduce(op_, run.in[0], axes_, run.out[0]); }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    if (run.in[0].dtype() != f32) return false;
    const char* const name = op_ == ReduceOp::sum    ? "reduce.sum.f32"
                             : op_ == ReduceOp::mean ? "reduce.mean.f32"
                             : op_ == ReduceOp::max  ? "reduce.max.f32"
                             : op_ == ReduceOp::min  ? "reduce.min.f32"
                                                     : nullptr;
    return name && launch_reduce(queue, name, run.in[0], axes_, run.out[0]);
  }
  OpFacts facts() const noexcept override { return {.has_gradient = op_ != ReduceOp::any && op_ != ReduceOp::all}; }
  SavedSlots saved(SlotMask) const override {
    if (op_ == ReduceOp::sum || op_ == ReduceOp::mean) return {};
    return {.inputs = slot(0), .outputs = op_ == ReduceOp::product ? SlotMask{0} : slot(0)};
  }
  void gradient(GradientContext& c) const override;
  bool operator==(const Reduce&) const = default;

 private:
  AxesMask axes_;
  ReduceOp op_;
  bool keep_dims_;
};

// The product of all other elements along the axes, exact even where elements are zero, from the prefix and suffix
// products of the flattened axes.
Tensor product_of_others(const Tensor& x, AxesMask axes);

void Reduce::gradient(GradientContext& c) const {
  const Shape& shape = c.input_shape(0);
  const Shape kept = reduced_shape(shape, axes_, true);
  const Tensor g = c.grad().reshape(kept);
  switch (op_) {
    case ReduceOp::sum:
      return c.give(0, broadcast_to(g, shape));
    case ReduceOp::mean: {
      const double count =
          static_cast<double>(shape.size()) / static_cast<double>(std::max<std::size_t>(kept.size(), 1));
      return c.give(0, broadcast_to(g * (1 / count), shape));
    }
    case ReduceOp::product:
      return c.give(0, g * product_of_others(c.input(0), axes_));
    case ReduceOp::max:
    case ReduceOp::min: {  // All elements equal to it share the gradient.
      const Tensor hit = (c.input(0) == c.output(0).reshape(kept)).cast(g.dtype());
      return c.give(0, hit * (g / execute(Reduce(ReduceOp::sum, axes_, true), hit)));
    }
    case ReduceOp::any:
    case ReduceOp::all:
      break;  // Of bools.
  }
}

Tensor product_of_others(const Tensor& x, AxesMask axes) {
  const Tensor zero = x == 0;
  const Tensor safe = where(zero, ones_like(x), x);
  const Tensor product = execute(Reduce(ReduceOp::product, axes, true), safe);
  const Tensor zeros = execute(Reduce(ReduceOp::sum, axes, true), zero.cast(x.dtype()));
  const Tensor others = zeros - zero.cast(x.dtype());  // How many of the others are zero.
  return where(others > 0, zeros_like(x), product / safe);
}

Tensor reduced(ReduceOp op, const Tensor& x, const Axes& axes, ReduceOptions options) {
  const AxesMask mask = axes.mask(x.rank(), reduce_name(op));
  return execute(Reduce(op, mask, options.keep_dims), x);
}

}  // namespace

Tensor Tensor::sum(const Axes& axes, ReduceOptions options) const {
  return reduced(ReduceOp::sum, *this, axes, options);
}
Tensor Tensor::mean(const Axes& axes, ReduceOptions options) const {
  return reduced(ReduceOp::mean, *this, axes, options);
}
Tensor Tensor::prod(const Axes& axes, ReduceOptions options) const {
  return reduced(ReduceOp::product, *this, axes, options);
}
Tensor Tensor::max(const Axes& axes, ReduceOptions options) const {
  return reduced(ReduceOp::max, *this, axes, options);
}
Tensor Tensor::min(const Axes& axes, ReduceOptions options) const {
  return reduced(ReduceOp::min, *this, axes, options);
}
Tensor Tensor::any(const Axes& axes, ReduceOptions options) const {
  return reduced(ReduceOp::any, *this, axes, options);
}
Tensor Tensor::all(const Axes& axes, ReduceOptions options) const {
  return reduced(ReduceOp::all, *this, axes, options);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const std::size_t added = x.rank() - shape.rank();
  AxesMask axes = 0;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (axis < added || (shape[axis - added] == 1 && x.shape()[axis] != 1)) axes |= AxesMask{1} << axis;
  const Tensor summed = execute(Reduce(ReduceOp::sum, axes, false), x);
  return summed.shape() == shape ? summed : summed.reshape(shape);
}

}  // namespace plimsoll
