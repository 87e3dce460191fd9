// Sparse tensors: from coordinates to places in dense tensors and back, row splits, transposes.
//
//   const SparseSteps steps = sparse_steps({4, 1}, 2);    // For a [4, 6]: a whole row has one place.
//   sparse_add_at(values, indices, steps, out);           // out [4, 1]: the sums of the rows
//   sparse_take(x, indices, steps, out);                  // out[k] = x[place of k]
//
// Coordinates are i64 [entries, rank], within range, in row-major order. All dtypes unless stated.
// Thread safety: any thread. Cost: no allocation, never throws; results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/kernels/sparse_products.h"

namespace plimsoll::internal {

// How far a step along each axis of a sparse tensor moves in a dense one.
struct SparseSteps {
  Strides steps = {};
  std::size_t rank = 0;
  std::int64_t place(const std::int64_t* coordinates) const noexcept {
    std::int64_t sum = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) sum += coordinates[axis] * steps[axis];
    return sum;
  }
};
// For a dense tensor whose shape is that of a sparse one of `rank`, or broadcasts to it.
PLIMSOLL_API SparseSteps sparse_steps(const Shape& dense, std::size_t rank) noexcept;

PLIMSOLL_API void sparse_take(const ConstTensorView& x, const ConstTensorView& indices, const SparseSteps& steps,
                              const TensorView& out) noexcept;
// Clears `out` first. Booleans: whether any is true.
PLIMSOLL_API void sparse_add_at(const ConstTensorView& values, const ConstTensorView& indices, const SparseSteps& steps,
                                const TensorView& out) noexcept;
// The largest value at each place, NaN if there is one; a place with fewer than `full` entries also has zeros, and a
// place without any element (full == 0) gets the lowest value. `counts` is scratch: i64, one for each element of `out`.
PLIMSOLL_API void sparse_max_at(const ConstTensorView& values, const ConstTensorView& indices, const SparseSteps& steps,
                                std::int64_t full, const TensorView& counts, const TensorView& out) noexcept;

// How many elements of x are not zero, and their coordinates in order.
PLIMSOLL_API std::int64_t count_nonzero(const ConstTensorView& x) noexcept;
PLIMSOLL_API void nonzero_coordinates(const ConstTensorView& x, std::int64_t* coordinates) noexcept;

// splits[r] = how many first coordinates (one in every `rank`) are below r; r = 0 ... rows.
PLIMSOLL_API void sparse_row_splits(const std::int64_t* indices, std::int64_t entries, std::size_t rank,
                                    std::int64_t rows, std::int64_t* splits) noexcept;

// The transpose: its splits (a.width + 1), its columns, and for each of its entries the index of the entry in `a`.
PLIMSOLL_API void sparse_transpose(const SparseRows& a, std::int64_t* splits, std::int64_t* columns,
                                   std::int64_t* order) noexcept;

}  // namespace plimsoll::internal
