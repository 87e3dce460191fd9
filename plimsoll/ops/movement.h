// Moving elements: transposing, slicing, joining, padding, repeating, choosing by index or mask.
//
//   Tensor y = concat({x, x.slice({0, 2}, {3, -1})}, 1);      // along the columns
//   Tensor rows = gather(x, constant({2, 0})); Tensor kept = boolean_mask(x, x > 0.f);
//   std::vector<Tensor> halves = split(x, 2); Tensor back = stack(unstack(x));
//
// All dtypes, including tensors without elements. Negative axes count from the end. Slices, parts and rows cut only
// along the first axis, and transposes that do not move elements, are new tensors on the same buffer.
// Throws InvalidArgument that names the operation, the shapes and what would fit, Disposed and OutOfMemory.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

// Axis i of the result is axis permutation[i] of x; none: the axes in reverse.
inline Tensor transpose(const Tensor& x, const std::vector<std::int64_t>& permutation = {}) {
  return x.transpose(permutation);
}
// `size` elements of each axis starting at `begin`; -1: to the end. Axes that are not given stay whole.
inline Tensor slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& size) {
  return x.slice(begin, size);
}

// An open begin or end: the edge of the axis that the stride starts from or runs to.
inline constexpr std::int64_t kOpen = INT64_MIN;
// NumPy's x[begin:end:stride] for each axis: negative positions count from the end, positions beyond an edge stop
// there, negative strides run backwards. No strides: all 1. Axes that are not given stay whole.
PLIMSOLL_API Tensor strided_slice(const Tensor& x, const std::vector<std::int64_t>& begin,
                                  const std::vector<std::int64_t>& end, const std::vector<std::int64_t>& strides = {});
PLIMSOLL_API Tensor reverse(const Tensor& x, const Axes& axes = {});  // Along these axes; none: along all.
inline Tensor flip(const Tensor& x, const Axes& axes = {}) { return reverse(x, axes); }
// Shifts elements by `shift` along the axis; those pushed out re-enter at the other end.
PLIMSOLL_API Tensor roll(const Tensor& x, std::int64_t shift, std::int64_t axis = 0);

// Joins tensors along an axis. For a single tensor: a tensor on the same buffer.
PLIMSOLL_API Tensor concat(std::span<const Tensor> tensors, std::int64_t axis = 0);
inline Tensor concat(std::initializer_list<Tensor> tensors, std::int64_t axis = 0) {
  return concat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}
inline Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis = 0) {
  return concat(std::span<const Tensor>(tensors), axis);
}
// Joins tensors along a new axis at that position.
PLIMSOLL_API Tensor stack(std::span<const Tensor> tensors, std::int64_t axis = 0);
inline Tensor stack(std::initializer_list<Tensor> tensors, std::int64_t axis = 0) {
  return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), axis);
}
inline Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0) {
  return stack(std::span<const Tensor>(tensors), axis);
}
// The inverse of stack: a tensor for each position of the axis, without it.
PLIMSOLL_API std::vector<Tensor> unstack(const Tensor& x, std::int64_t axis = 0);
// The inverse of concat: equal parts, or parts of these sizes, which must add up to the axis.
PLIMSOLL_API std::vector<Tensor> split(const Tensor& x, std::int64_t parts, std::int64_t axis = 0);
PLIMSOLL_API std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
inline std::vector<Tensor> split(const Tensor& x, std::initializer_list<std::int64_t> sizes, std::int64_t axis = 0) {
  return split(x, std::vector<std::int64_t>(sizes), axis);
}

// For each axis, the number of elements before and after. Filled with a value, or with x's own elements: "reflect"
// leaves out the edge, "symmetric" repeats it.
using Paddings = std::vector<std::pair<std::int64_t, std::int64_t>>;
PLIMSOLL_API Tensor pad(const Tensor& x, const Paddings& paddings, const Number& value = 0);
PLIMSOLL_API Tensor mirror_pad(const Tensor& x, const Paddings& paddings, std::string_view mode);

PLIMSOLL_API Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples);  // Repeats all of x.
PLIMSOLL_API Tensor repeat(const Tensor& x, std::int64_t repeats, std::int64_t axis);   // Repeats each position.

// Indices are i32 or i64, from 0 on; one outside the axis is refused, naming its position. result[..., i..., ...] =
// x[..., indices[i...], ...] at `axis`.
PLIMSOLL_API Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis = 0);
PLIMSOLL_API Tensor gather(const Tensor& x, std::initializer_list<std::int64_t> indices, std::int64_t axis = 0);
PLIMSOLL_API Tensor embedding_lookup(const Tensor& table, const Tensor& ids);  // Rows of the table.
// result[i, j, k] = x[i, indices[i, j, k], k] for axis 1; the other sizes of x and indices are equal.
PLIMSOLL_API Tensor take_along_axis(const Tensor& x, const Tensor& indices, std::int64_t axis);
// Change rows (positions of the first axis) of zeros or of x: updates are added at the indices, equal indices adding
// up; or they replace the rows, where the last of equal indices wins. Updates have the shape of the indices, then that
// of a row.
PLIMSOLL_API Tensor scatter(const Tensor& indices, const Tensor& updates, const Shape& shape);
PLIMSOLL_API Tensor scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates);
PLIMSOLL_API Tensor scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates);

// A new last axis of size `depth`: `on` at the index, else `off`; all `off` for an index outside the depth.
PLIMSOLL_API Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype = f32, const Number& on = 1,
                            const Number& off = 0);

// Where the mask, whose sizes are x's first ones, is true: [count, the rest of x's sizes].
PLIMSOLL_API Tensor boolean_mask(const Tensor& x, const Tensor& mask);
// The positions where it is true, in order: i64 [count, its rank].
PLIMSOLL_API Tensor where_true(const Tensor& mask);

}  // namespace plimsoll
