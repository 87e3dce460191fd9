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

PLIMSOLL_API Tensor negative(const Tensor& x);
PLIMSOLL_API Tensor abs(const Tensor& x);
PLIMSOLL_API Tensor sign(const Tensor& x);
PLIMSOLL_API Tensor square(const Tensor& x);
PLIMSOLL_API Tensor sqrt(const Tensor& x);
PLIMSOLL_API Tensor rsqrt(const Tensor& x);
PLIMSOLL_API Tensor reciprocal(const Tensor& x);
PLIMSOLL_API Tensor floor(const Tensor& x);
PLIMSOLL_API Tensor ceil(const Tensor& x);
PLIMSOLL_API Tensor round(const Tensor& x);
PLIMSOLL_API Tensor exp(const Tensor& x);
PLIMSOLL_API Tensor expm1(const Tensor& x);
PLIMSOLL_API Tensor log(const Tensor& x);
PLIMSOLL_API Tensor log1p(const Tensor& x);
PLIMSOLL_API Tensor sin(const Tensor& x);
PLIMSOLL_API Tensor cos(const Tensor& x);
PLIMSOLL_API Tensor tan(const Tensor& x);
PLIMSOLL_API Tensor asin(const Tensor& x);
PLIMSOLL_API Tensor acos(const Tensor& x);
PLIMSOLL_API Tensor atan(const Tensor& x);
PLIMSOLL_API Tensor sinh(const Tensor& x);
PLIMSOLL_API Tensor cosh(const Tensor& x);
PLIMSOLL_API Tensor tanh(const Tensor& x);
PLIMSOLL_API Tensor erf(const Tensor& x);
PLIMSOLL_API Tensor is_nan(const Tensor& x);
PLIMSOLL_API Tensor is_inf(const Tensor& x);
PLIMSOLL_API Tensor is_finite(const Tensor& x);
PLIMSOLL_API Tensor logical_not(const Tensor& x);
PLIMSOLL_API Tensor relu(const Tensor& x);
PLIMSOLL_API Tensor relu6(const Tensor& x);
PLIMSOLL_API Tensor elu(const Tensor& x);
PLIMSOLL_API Tensor selu(const Tensor& x);
PLIMSOLL_API Tensor gelu(const Tensor& x);
PLIMSOLL_API Tensor sigmoid(const Tensor& x);
PLIMSOLL_API Tensor hard_sigmoid(const Tensor& x);
PLIMSOLL_API Tensor softplus(const Tensor& x);
PLIMSOLL_API Tensor softsign(const Tensor& x);
PLIMSOLL_API Tensor swish(const Tensor& x);

PLIMSOLL_API Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);  // Boolean ? x : y.
PLIMSOLL_API Tensor cast(const Tensor& x, DType dtype);
PLIMSOLL_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
PLIMSOLL_API Tensor clip(const Tensor& x, const Number& low, const Number& high);
PLIMSOLL_API Tensor leaky_relu(const Tensor& x, float alpha = 0.2f);

// The sum over the axes along which `shape` was broadcast to x's: what a gradient has to do.
PLIMSOLL_API Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace plimsoll
