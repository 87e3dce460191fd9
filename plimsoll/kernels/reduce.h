// Reductions over any set of axes, positions of extremes, and softmax.
//
//   reduce(ReduceOp::sum, x, axes_mask({0, 2}), out);   // x [4, 5, 6]; out [5], or [1, 5, 1]: only its size counts
//   argmax(x, 1, out);                                  // x [4, 5]; out [4] of i64
//   softmax(x, out);                                    // Along the last axis.
//
// Sums are computed in blocks: floats within a block in f32, between blocks in f64, so that the error hardly grows with
// the length. Integers are summed in 64 bits and then wrap. max, min, argmax and argmin: NaN wins. Over nothing: sum 0,
// mean NaN (integers 0), product 1, max the lowest and min the highest value (infinite for floats), any false, all
// true. Thread safety: any thread. Cost: no allocation, never throws; split by shape only, so results do not depend on
// the number of threads.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

enum class ReduceOp : unsigned char { sum, mean, product, max, min, any, all };

// Bit i: axis i is reduced. Requires axes of 0 ... rank - 1.
using AxesMask = std::uint32_t;
constexpr AxesMask axes_mask(std::initializer_list<int> axes) noexcept {
  AxesMask mask = 0;
  for (const int axis : axes) mask |= AxesMask{1} << axis;
  return mask;
}
inline constexpr AxesMask kAllAxes = ~AxesMask{0};

// any, all: bool only; sum, mean, product: not bool; max, min: all dtypes.
PLIMSOLL_API bool is_supported(ReduceOp op, DType dtype) noexcept;

// Requires out of x's dtype with as many elements as the axes that stay; no overlap.
PLIMSOLL_API void reduce(ReduceOp op, const ConstTensorView& x, AxesMask axes, const TensorView& out) noexcept;

// The position along `axis` of the first largest (smallest) element. Requires out of i64, and an axis that is not
// empty.
PLIMSOLL_API void argmax(const ConstTensorView& x, std::size_t axis, const TensorView& out) noexcept;
PLIMSOLL_API void argmin(const ConstTensorView& x, std::size_t axis, const TensorView& out) noexcept;

// exp(x - max) / sum and its logarithm, along the last axis. Requires floats, rank > 0; `out` may be `x`.
PLIMSOLL_API void softmax(const ConstTensorView& x, const TensorView& out) noexcept;
PLIMSOLL_API void log_softmax(const ConstTensorView& x, const TensorView& out) noexcept;

// The gradient of the input, from the output y and its gradient dy: y (dy - sum(y dy)), and dy - exp(y) sum(dy).
// Requires one shape and dtype; `out` may be `y` or `dy`.
PLIMSOLL_API void softmax_grad(const ConstTensorView& y, const ConstTensorView& dy, const TensorView& out) noexcept;
PLIMSOLL_API void log_softmax_grad(const ConstTensorView& y, const ConstTensorView& dy, const TensorView& out) noexcept;

}  // namespace plimsoll::internal
