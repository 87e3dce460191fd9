// softmax, its logarithm, and the logarithm of a sum of exponentials, without overflow.
//
//   softmax(x); softmax(x, 0); log_softmax(x)            // Along one axis.
//   log_sum_exp(x, {1}, {.keep_dims = true})             // Over any.
//
// Takes floats. Throws InvalidArgument for other dtypes and for an axis that does not exist. The logarithm over
// nothing, or over nothing but -infinity, is -infinity.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

PLIMSOLL_API Tensor softmax(const Tensor& x, std::int64_t axis = -1);
PLIMSOLL_API Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
PLIMSOLL_API Tensor log_sum_exp(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});

}  // namespace plimsoll
