// Elementwise operations: arithmetic, comparison, logic, mathematics, activations; NumPy's broadcasting.
//
//   Tensor y = relu(x); Tensor z = maximum(x, 0.f); Tensor w = where(mask, x, y);
//
// Operands have one dtype; numbers take the tensor's. f16 and bf16 are computed in f32 and rounded once. Operations
// that exist for floats only (logarithms, activations) throw InvalidArgument for others.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

#define PLIMSOLL_PAIR(name)                                   \
  PLIMSOLL_API Tensor name(const Tensor& a, const Tensor& b); \
  PLIMSOLL_API Tensor name(const Tensor& a, const Number& b); \
  PLIMSOLL_API Tensor name(const Number& a, const Tensor& b);
PLIMSOLL_PAIR(add)
PLIMSOLL_PAIR(subtract)
PLIMSOLL_PAIR(multiply)
PLIMSOLL_PAIR(divide)
PLIMSOLL_PAIR(floor_divide)
PLIMSOLL_PAIR(modulo)
PLIMSOLL_PAIR(power)
PLIMSOLL_PAIR(maximum)
PLIMSOLL_PAIR(minimum)
PLIMSOLL_PAIR(squared_difference)
PLIMSOLL_PAIR(equal)
PLIMSOLL_PAIR(not_equal)
PLIMSOLL_PAIR(less)
PLIMSOLL_PAIR(less_equal)
PLIMSOLL_PAIR(greater)
PLIMSOLL_PAIR(greater_equal)
PLIMSOLL_PAIR(logical_and)
PLIMSOLL_PAIR(logical_or)
PLIMSOLL_PAIR(logical_xor)
#undef PLIMSOLL_PAIR

// By value: an operand that nobody else holds gives its memory to the result.
PLIMSOLL_API Tensor negative(Tensor x);
PLIMSOLL_API Tensor abs(Tensor x);
PLIMSOLL_API Tensor sign(Tensor x);
PLIMSOLL_API Tensor square(Tensor x);
PLIMSOLL_API Tensor sqrt(Tensor x);
PLIMSOLL_API Tensor rsqrt(Tensor x);
PLIMSOLL_API Tensor reciprocal(Tensor x);
PLIMSOLL_API Tensor floor(Tensor x);
PLIMSOLL_API Tensor ceil(Tensor x);
PLIMSOLL_API Tensor round(Tensor x);
PLIMSOLL_API Tensor exp(Tensor x);
PLIMSOLL_API Tensor expm1(Tensor x);
PLIMSOLL_API Tensor log(Tensor x);
PLIMSOLL_API Tensor log1p(Tensor x);
PLIMSOLL_API Tensor sin(Tensor x);
PLIMSOLL_API Tensor cos(Tensor x);
PLIMSOLL_API Tensor tan(Tensor x);
PLIMSOLL_API Tensor asin(Tensor x);
PLIMSOLL_API Tensor acos(Tensor x);
PLIMSOLL_API Tensor atan(Tensor x);
PLIMSOLL_API Tensor sinh(Tensor x);
PLIMSOLL_API Tensor cosh(Tensor x);
PLIMSOLL_API Tensor tanh(Tensor x);
PLIMSOLL_API Tensor erf(Tensor x);
PLIMSOLL_API Tensor is_nan(Tensor x);
PLIMSOLL_API Tensor is_inf(Tensor x);
PLIMSOLL_API Tensor is_finite(Tensor x);
PLIMSOLL_API Tensor logical_not(Tensor x);
PLIMSOLL_API Tensor relu(Tensor x);
PLIMSOLL_API Tensor relu6(Tensor x);
PLIMSOLL_API Tensor elu(Tensor x);
PLIMSOLL_API Tensor selu(Tensor x);
PLIMSOLL_API Tensor gelu(Tensor x);
PLIMSOLL_API Tensor sigmoid(Tensor x);
PLIMSOLL_API Tensor hard_sigmoid(Tensor x);
PLIMSOLL_API Tensor softplus(Tensor x);
PLIMSOLL_API Tensor softsign(Tensor x);
PLIMSOLL_API Tensor swish(Tensor x);

PLIMSOLL_API Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);  // Boolean ? x : y.
PLIMSOLL_API Tensor where(const Tensor& condition, const Tensor& x, const Number& y);
PLIMSOLL_API Tensor where(const Tensor& condition, const Number& x, const Tensor& y);
PLIMSOLL_API Tensor cast(const Tensor& x, DType dtype);
PLIMSOLL_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
PLIMSOLL_API Tensor clip(const Tensor& x, const Number& low, const Number& high);
PLIMSOLL_API Tensor leaky_relu(const Tensor& x, float alpha = 0.2f);

// The sum over the axes along which `shape` was broadcast to x's: what a gradient has to do.
PLIMSOLL_API Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace plimsoll
