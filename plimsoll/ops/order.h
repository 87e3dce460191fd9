// Sorting, the k largest, running sums; positions of extremes are Tensor::argmax and argmin.
//
//   auto [values, indices] = top_k(x, 3);                  // For each row: values as x, indices i64, [.., 3]
//   sort(x); sort(x, 0, {.descending = true}); argsort(x)  // argsort is i64
//   cumsum(x, 1, {.exclusive = true})                      // [1, 2, 3] becomes [0, 1, 3]
//
// NaN counts as the largest value; equal elements keep their order. Gradients flow to the chosen elements.
// Throws InvalidArgument for an axis that does not exist and for a k larger than the last axis.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct TopK {
  Tensor values;
  Tensor indices;
};
PLIMSOLL_API TopK top_k(const Tensor& x, std::int64_t k = 1);  // Along the last axis, the largest first.

struct SortOptions {
  bool descending = false;
  bool operator==(const SortOptions&) const = default;
};
PLIMSOLL_API Tensor sort(const Tensor& x, std::int64_t axis = -1, SortOptions options = {});
PLIMSOLL_API Tensor argsort(const Tensor& x, std::int64_t axis = -1, SortOptions options = {});

struct CumsumOptions {
  bool exclusive = false;  // Without the element itself.
  bool reverse = false;    // From the end.
  bool operator==(const CumsumOptions&) const = default;
};
PLIMSOLL_API Tensor cumsum(const Tensor& x, std::int64_t axis = 0, CumsumOptions options = {});

}  // namespace plimsoll
