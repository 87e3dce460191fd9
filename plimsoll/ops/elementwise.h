// Elementwise operations: arithmetic, comparison, logic, mathematics, activations; NumPy's broadcasting.
//
//   Tensor y = relu(x); Tensor z = maximum(x, 0.f); Tensor w = where(mask, x, y);
//
// docs/operations.md lists them by family.
// Operands have one dtype; numbers take the tensor's. f16 and bf16 are computed in f32 and rounded once. Operations
// that exist for floats only (logarithms, activations) throw InvalidArgument for others.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

// One function for each row of elementwise_ops.inc, by its name. Unary ones take x by value: an operand that nobody
// else holds lends its memory to the result.
#define PLIMSOLL_UNARY_OP(name, reads, gradient) PLIMSOLL_API Tensor name(Tensor x);
#define PLIMSOLL_BINARY_OP(name, reads_for_a, gradient_of_a, reads_for_b, gradient_of_b) \
  PLIMSOLL_API Tensor name(const Tensor& a, const Tensor& b);                            \
  PLIMSOLL_API Tensor name(const Tensor& a, const Number& b);                            \
  PLIMSOLL_API Tensor name(const Number& a, const Tensor& b);
#include "plimsoll/ops/elementwise_ops.inc"

// With `approximate`, gelu_tanh(x): 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
PLIMSOLL_API Tensor gelu(Tensor x, bool approximate);

PLIMSOLL_API Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);  // Boolean ? x : y.
PLIMSOLL_API Tensor where(const Tensor& condition, const Tensor& x, const Number& y);
PLIMSOLL_API Tensor where(const Tensor& condition, const Number& x, const Tensor& y);
PLIMSOLL_API Tensor cast(const Tensor& x, DType dtype);
PLIMSOLL_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
// Clamps to [low, high]; NaN stays. Throws InvalidArgument unless low <= high.
PLIMSOLL_API Tensor clip(const Tensor& x, const Number& low, const Number& high);
PLIMSOLL_API Tensor leaky_relu(const Tensor& x, double alpha = 0.2);  // x > 0 ? x : alpha x

// The sum over the axes along which `shape` was broadcast to x's shape, as gradients need it.
PLIMSOLL_API Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace plimsoll
