// dense: activation(x w + bias) in one pass, and the names of activations.
//
//   dense(x, w, b, Activation::relu)             // x [.., n], w [n, m], b [m]: [.., m]
//   dense(x, w)                                  // No bias, no activation.
//   activation_of("relu")
//
// Gives the same bits as matmul, + and the activation one after the other. Takes floats. A tape keeps x, w and, with an
// activation, the result (for a large relu, one bit per element); activations whose gradient reads their input (gelu,
// swish, softplus, softsign, relu6) are an operation of their own and keep that too. Throws InvalidArgument for shapes
// that do not match, naming both, for dtypes that differ or are not floats, and for a name that is not an activation.
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

// The activation with this Keras name ("silu" is swish, "" and "linear" mean none; softmax is not elementwise).
PLIMSOLL_API Activation activation_of(std::string_view name);
PLIMSOLL_API const char* activation_name(Activation activation) noexcept;

PLIMSOLL_API Tensor activate(const Tensor& x, Activation activation);

// An empty handle for `bias` means none.
PLIMSOLL_API Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                          Activation activation = Activation::linear);

}  // namespace plimsoll
