// custom_gradient: a function with your own gradient; stop_gradient: a value that passes no gradient on.
//
//   Tensor y = custom_gradient({x},
//       [](const std::vector<Tensor>& in) { return clip(in[0], 0.f, 1.f); },        // the value; not watched
//       [](const Tensor& dy, const std::vector<Tensor>& in) { return std::vector{dy}; });   // straight through
//
// The second function gets the gradient of the result, and the inputs; it returns one gradient for each input, with its
// shape and dtype (an empty handle: none), made of operations, so that it can be differentiated again.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

using CustomForward = std::function<Tensor(const std::vector<Tensor>& inputs)>;
using CustomBackward = std::function<std::vector<Tensor>(const Tensor& gradient, const std::vector<Tensor>& inputs)>;

// Throws what the functions throw, Disposed, and InvalidArgument for inputs that are not tensors; gradients of the
// wrong number, shape or dtype are InvalidArgument when the gradient is computed.
PLIMSOLL_API Tensor custom_gradient(const std::vector<Tensor>& inputs, const CustomForward& forward,
                                    const CustomBackward& backward);

// The same value, on the same bytes, which tapes treat as a constant.
PLIMSOLL_API Tensor stop_gradient(const Tensor& x);

}  // namespace plimsoll
