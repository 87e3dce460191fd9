// Moving elements: transposes, slices, padding, concatenation, tiling, gathering and scattering. All dtypes.
//
//   transpose(x, {1, 0}, out);                    // x [3, 4], out [4, 3]
//   copy_box(x, box_layout(x.shape(), begin), out, box_layout(out.shape(), {}), size);   // Slice.
//   gather(x, indices, 0, out);                   // Rows by number.
//
// Requires inputs and outputs that do not overlap, of one dtype. Indices are i32 or i64 within range: the caller checks
// them with first_bad_index().
// Thread safety: any thread. Cost: no allocation, never throws; results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

// The place of a box in a tensor: its first element, and the step along each axis, in elements. A step may be
// negative (reversal) or 0 (repetition, when read).
struct BoxLayout {
  std::int64_t start = 0;
  Strides strides = {};
};

// The box whose first element is at `begin` in a dense tensor, every `step`-th along each axis.
PLIMSOLL_API BoxLayout box_layout(const Shape& tensor, std::span<const std::int64_t> begin,
                                  std::span<const std::int64_t> step = {}) noexcept;

// Copies a box of `shape` elements from one tensor into another. Slices read a box, padding and concatenation write
// one.
PLIMSOLL_API void copy_box(const ConstTensorView& x, const BoxLayout& from, const TensorView& out, const BoxLayout& to,
                           const Shape& shape) noexcept;

// out's axis i is x's axis permutation[i].
PLIMSOLL_API void transpose(const ConstTensorView& x, std::span<const std::int64_t> permutation,
                            const TensorView& out) noexcept;

// Repeats x along each axis; out's sizes are multiples of x's, of the same rank.
PLIMSOLL_API void tile(const ConstTensorView& x, const TensorView& out) noexcept;

// Concatenates along `axis`: writes x into `out` from position `begin` of the axis on. Returns the position after it.
PLIMSOLL_API std::int64_t concat_part(const ConstTensorView& x, std::size_t axis, std::int64_t begin,
                                      const TensorView& out) noexcept;

// The position of the first index that is not in [0, size), or -1.
PLIMSOLL_API std::int64_t first_bad_index(const ConstTensorView& indices, std::int64_t size) noexcept;

// out[..., i..., ...] = x[..., indices[i...], ...] at `axis`.
PLIMSOLL_API void gather(const ConstTensorView& x, const ConstTensorView& indices, std::size_t axis,
                         const TensorView& out) noexcept;

// out[indices[i]] += updates[i] for rows (axis 0) of `out`, in order of i for each row. f32, f64, i32, i64.
PLIMSOLL_API void scatter_add(const ConstTensorView& updates, const ConstTensorView& indices,
                              const TensorView& out) noexcept;
// The same, but overwriting; the last of equal indices wins.
PLIMSOLL_API void scatter(const ConstTensorView& updates, const ConstTensorView& indices,
                          const TensorView& out) noexcept;

// out [..., depth]: 1 where the last axis's position is the index, else 0; all 0 for an index outside the depth.
PLIMSOLL_API void one_hot(const ConstTensorView& indices, const TensorView& out) noexcept;

}  // namespace plimsoll::internal
