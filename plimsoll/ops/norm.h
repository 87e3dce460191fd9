// Norms, moments, and normalized vectors.
//
//   norm(x)                            // Over all elements: the root of the sum of squares.
//   norm(x, 1, {1}, {.keep_dims = true})
//   norm(x, "fro", {-2, -1})           // For matrices; norm(x, "inf") is the largest magnitude.
//   auto [mean, variance] = moments(x, {0});
//   l2_normalize(x, {-1})
//
// Takes floats; f16 and bf16 are computed in f32. The elements over the axes form one vector: there are no operator
// norms of matrices. The gradient of a norm that is 0 is 0.
// Throws InvalidArgument for other dtypes, orders below 0 (except -infinity) and axes that do not exist.
#pragma once

#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

// sum(|x|^order)^(1/order). Infinite: the largest magnitude, or the smallest; 0: the number of nonzero elements.
PLIMSOLL_API Tensor norm(const Tensor& x, double order = 2, const Axes& axes = {}, ReduceOptions options = {});
// "euclidean", "fro": 2; "inf", "-inf".
PLIMSOLL_API Tensor norm(const Tensor& x, std::string_view order, const Axes& axes = {}, ReduceOptions options = {});

struct Moments {
  Tensor mean;
  Tensor variance;  // Divided by the number of elements.
};
PLIMSOLL_API Moments moments(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
// One of the moments, and its root, which has no gradient where all elements are equal.
PLIMSOLL_API Tensor variance(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
PLIMSOLL_API Tensor standard_deviation(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});

// x / max(norm(x), sqrt(epsilon)).
PLIMSOLL_API Tensor l2_normalize(const Tensor& x, const Axes& axes = {-1}, double epsilon = 1e-12);

}  // namespace plimsoll
