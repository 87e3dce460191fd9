#include "plimsoll/ops/norm.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/reduce.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/reduced_shape.h"
#include "plimsoll/ops/scratch.h"

namespace plimsoll {
namespace {

// An op of its own, so that its gradient is 0 where it is 0.
class EuclideanNorm final : public OpOf<EuclideanNorm> {
 public:
  EuclideanNorm(AxesMask axes, bool keep_dims) noexcept : axes_(axes), keep_dims_(keep_dims) {}
  const char* name() const noexcept override { return "norm"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_floating(*this, in.dtype(0));
    out.add(shape_without(in.shape(0), axes_, keep_dims_), in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override {
    const DType dtype = compute_dtype(in.dtype(0));
    return scratch_bytes(dtype, in.shape(0).size()) + scratch_bytes(dtype, out[0].shape.size());
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].size() == 0) return;
    const ConstTensorView& x = run.in[0];
    const DType dtype = compute_dtype(x.dtype());
    ScratchViews scratch(run.scratch);
    const TensorView squares = scratch.take(dtype, x.shape()), sum = scratch.take(dtype, run.out[0].shape());
    if (dtype != x.dtype()) copy(x, squares);
    unary(UnaryOp::square, dtype == x.dtype() ? x : squares, squares);
    reduce(ReduceOp::sum, squares, axes_, sum);
    unary(UnaryOp::sqrt, sum, sum);
    copy(sum, run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0), .outputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    const Tensor& y = c.output(0);
    const Tensor scale = c.grad() / where(y == 0, ones_like(y), y);
    c.give(0, c.input(0) * scale.reshape(shape_without(c.input_shape(0), axes_, true)));
  }
  bool operator==(const EuclideanNorm&) const = default;

 private:
  AxesMask axes_;
  bool keep_dims_;
};

// sum(|x|^order)^(1/order), whose root has no gradient at 0.
Tensor power_norm(const Tensor& x, double order, const Axes& axes, ReduceOptions options) {
  const Tensor sum = power(abs(x), order).sum(axes, options), none = sum == 0;
  return where(none, zeros_like(sum), power(where(none, ones_like(sum), sum), 1 / order));
}

// 0 for no elements, where the largest element would be minus infinity.
Tensor largest_magnitude(const Tensor& x, const Axes& axes, ReduceOptions options) {
  Tensor largest = abs(x).max(axes, options);
  const bool has_elements = x.shape().is_known() && x.size() > 0;
  return has_elements ? largest : maximum(largest, 0);
}

void require_floating(const char* where, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw InvalidArgument(fmt::format("{}: is not defined for {}; cast the operand to another dtype first", where,
                                      dtype_name(x.dtype())));
}

}  // namespace

Tensor norm(const Tensor& x, double order, const Axes& axes, ReduceOptions options) {
  require_floating("norm", x);
  if (order == 2) return execute(EuclideanNorm(axes.mask(x.rank(), "norm"), options.keep_dims), x);
  if (std::isnan(order) || (order < 0 && !std::isinf(order)))
    throw InvalidArgument(fmt::format("norm: the order is {}; give 0 or more, or an infinite one", order));
  if (order == 1) return abs(x).sum(axes, options);
  if (std::isinf(order)) return order > 0 ? largest_magnitude(x, axes, options) : abs(x).min(axes, options);
  if (order == 0) return (x != 0).cast(x.dtype()).sum(axes, options);
  if (is_half(x.dtype())) return power_norm(x.cast(f32), order, axes, options).cast(x.dtype());
  return power_norm(x, order, axes, options);
}

Tensor norm(const Tensor& x, std::string_view order, const Axes& axes, ReduceOptions options) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (order == "fro" || order == "euclidean") return norm(x, 2, axes, options);
  if (order == "inf" || order == "-inf") return norm(x, order == "inf" ? kInfinity : -kInfinity, axes, options);
  throw InvalidArgument(
      fmt::format("norm: the order is \"{}\"; give \"euclidean\", \"fro\", \"inf\", \"-inf\" or a number", order));
}

Moments moments(const Tensor& x, const Axes& axes, ReduceOptions options) {
  require_floating("moments", x);
  if (is_half(x.dtype())) {
    const Moments wide = moments(x.cast(f32), axes, options);
    return {wide.mean.cast(x.dtype()), wide.variance.cast(x.dtype())};
  }
  const Tensor mean = x.mean(axes, {.keep_dims = true});
  const Tensor variance = squared_difference(x, mean).mean(axes, options);
  return {options.keep_dims ? mean : mean.reshape(variance.shape()), variance};
}

Tensor variance(const Tensor& x, const Axes& axes, ReduceOptions options) { return moments(x, axes, options).variance; }

Tensor standard_deviation(const Tensor& x, const Axes& axes, ReduceOptions options) {
  require_floating("standard_deviation", x);
  if (is_half(x.dtype())) return sqrt(variance(x.cast(f32), axes, options)).cast(x.dtype());
  return sqrt(variance(x, axes, options));
}

Tensor l2_normalize(const Tensor& x, const Axes& axes, double epsilon) {
  require_floating("l2_normalize", x);
  if (!(epsilon >= 0)) throw InvalidArgument(fmt::format("l2_normalize: epsilon is {}; give 0 or more", epsilon));
  if (is_half(x.dtype())) return l2_normalize(x.cast(f32), axes, epsilon).cast(x.dtype());
  return x * rsqrt(maximum(square(x).sum(axes, {.keep_dims = true}), epsilon));
}

}  // namespace plimsoll
