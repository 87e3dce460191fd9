// Sorting, the k largest, and running sums.
//
//   sort(x, {.descending = true}, values, indices);   // Along the last axis; indices are i64.
//   top_k(x, 3, values, indices, scratch);            // x [.., n], values and indices [.., 3]
//   cumsum(x, 1, {.exclusive = true}, out);
//
// NaN counts as the largest value; equal elements keep their order, so that the first index comes first.
// Thread safety: any thread, with its own scratch. Cost: no allocation, never throws; results do not depend on the
// number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct SortFlags {
  bool descending = false;
};

// Requires rank > 0, values of x's dtype and indices of i64, both of x's shape. No overlap.
PLIMSOLL_API void sort(const ConstTensorView& x, SortFlags flags, const TensorView& values,
                       const TensorView& indices) noexcept;

// Requires 0 <= k <= n, scratch of top_k_scratch_bytes() aligned to 8 bytes.
PLIMSOLL_API std::size_t top_k_scratch_bytes(const Shape& x) noexcept;
PLIMSOLL_API void top_k(const ConstTensorView& x, std::int64_t k, const TensorView& values, const TensorView& indices,
                        std::span<std::byte> scratch) noexcept;

struct CumsumFlags {
  bool exclusive = false;  // Without the element itself.
  bool reverse = false;    // From the end.
};

// Floats are summed in f64, integers wrap. `out` may be `x`. All dtypes but bool.
PLIMSOLL_API void cumsum(const ConstTensorView& x, std::size_t axis, CumsumFlags flags, const TensorView& out) noexcept;

}  // namespace plimsoll::internal
