// dense: activation(x w + bias) in one pass, and the names of activations.
//
//   dense(x, w, b, Activation::relu)             // x [.., n], w [n, m], b [m]: [.., m]
//   dense(x, w)                                  // No bias, no activation.
//   activation_of("relu")
//
// Bit for bit what matmul, + and the activation give one after the other. Of floats. A tape keeps x, w and, with an
// activation, the result (of relu, when that is large, a bit for each element); activations whose gradient reads their
// input (gelu, swish, softplus, softsign, relu6) are an operation of their own and keep that too. Throws
// InvalidArgument for shapes that do not go together, naming both, for dtypes that differ or are not floats, and for a
// name that is no activation's.
#pragma once

#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

enum class Activation : unsigned char {
  linear,
  relu,
  relu6,
  tanh,
  sigmoid,
  hard_sigmoid,
  elu,
  selu,
  gelu,
  swish,
  softplus,
  softsign,
  exponential,
};

// The activation that Keras calls so ("silu" is swish, "" and "linear" none; softmax is no elementwise one).
PLIMSOLL_API Activation activation_of(std::string_view name);
PLIMSOLL_API const char* activation_name(Activation activation) noexcept;

PLIMSOLL_API Tensor activate(const Tensor& x, Activation activation);

// An empty handle for `bias` is none.
PLIMSOLL_API Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                          Activation activation = Activation::linear);

}  // namespace plimsoll
