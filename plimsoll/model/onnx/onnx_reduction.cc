// Sums, means, extremes and norms over axes, and where the extremes are.
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll::internal {
namespace {

using Reducer = Tensor (*)(const Tensor& x, const Axes& axes, ReduceOptions options);

Tensor sum_of(const Tensor& x, const Axes& axes, ReduceOptions options) { return sum(x, axes, options); }
Tensor mean_of(const Tensor& x, const Axes& axes, ReduceOptions options) { return mean(x, axes, options); }
Tensor prod_of(const Tensor& x, const Axes& axes, ReduceOptions options) { return prod(x, axes, options); }
Tensor l1_of(const Tensor& x, const Axes& axes, ReduceOptions options) { return sum(abs(x), axes, options); }
Tensor l2_of(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const Tensor wide = is_floating(x.dtype()) ? x : x.cast(f64);
  return sqrt(sum(square(wide), axes, options)).cast(x.dtype());
}
Tensor log_sum_of(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const Tensor wide = is_floating(x.dtype()) ? x : x.cast(f64);
  return log(sum(wide, axes, options)).cast(x.dtype());
}
Tensor log_sum_exp_of(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const Tensor wide = is_floating(x.dtype()) ? x : x.cast(f64);
  return log_sum_exp(wide, axes, options).cast(x.dtype());
}
Tensor sum_square_of(const Tensor& x, const Axes& axes, ReduceOptions options) { return sum(square(x), axes, options); }
Tensor max_of(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return x.dtype() == boolean ? any(x, axes, options) : max(x, axes, options);
}
Tensor min_of(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return x.dtype() == boolean ? all(x, axes, options) : min(x, axes, options);
}

template <Reducer kFunction>
void reduce(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::vector<std::int64_t> axes = node.integers("axes", std::size_t{1});
  const ReduceOptions options{.keep_dims = node.integer("keepdims", 1) != 0};
  if (axes.empty() && node.integer("noop_with_empty_axes", 0) != 0) return node.give(x);
  if (x.rank() == 0) return node.give(kFunction(x.reshape({1}), {}, {}));
  node.give(kFunction(x, Axes(axes), options));
}

template <bool kLargest>
void find_extreme(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const auto axis = static_cast<std::int64_t>(node.axis("axis", 0, x.rank()));
  const bool last = node.integer("select_last_index", 0) != 0;
  const Tensor from = last ? reverse(x, Axes({axis})) : x;
  Tensor found = kLargest ? from.argmax(axis) : from.argmin(axis);
  if (last) found = x.shape()[static_cast<std::size_t>(axis)] - 1 - found;
  node.give(node.integer("keepdims", 1) != 0 ? found.expand_dims(axis) : found);
}

// From the version given on, the axes are operand 1; earlier they are an attribute.
constexpr OnnxOperator kReductionRows[] = {
    {"ArgMax", 1, kNewest, find_extreme<true>},
    {"ArgMin", 1, kNewest, find_extreme<false>},
    {"ReduceL1", 1, kNewest, reduce<l1_of>, kOperand1},
    {"ReduceL2", 1, kNewest, reduce<l2_of>, kOperand1},
    {"ReduceLogSum", 1, kNewest, reduce<log_sum_of>, kOperand1},
    {"ReduceLogSumExp", 1, kNewest, reduce<log_sum_exp_of>, kOperand1},
    {"ReduceMax", 1, kNewest, reduce<max_of>, kOperand1},
    {"ReduceMean", 1, kNewest, reduce<mean_of>, kOperand1},
    {"ReduceMin", 1, kNewest, reduce<min_of>, kOperand1},
    {"ReduceProd", 1, kNewest, reduce<prod_of>, kOperand1},
    {"ReduceSum", 1, kNewest, reduce<sum_of>, kOperand1},
    {"ReduceSumSquare", 1, kNewest, reduce<sum_square_of>, kOperand1},
};

}  // namespace

OnnxOperators onnx_reduction_operators() { return kReductionRows; }

}  // namespace plimsoll::internal
