// AxisSplit: a dense tensor as [outer, size, inner] around one axis, for ops along an axis whose kernels need it last.
//
//   const AxisSplit split(x.shape(), axis);
//   split.move_last(x, scratch.take(x.dtype(), x.shape()));     // [outer, inner, size]
//   split.move_back(moved, out);
#pragma once

#include <cstdint>

#include "plimsoll/base/tensor_view.h"
#include "plimsoll/kernels/movement.h"

namespace plimsoll::internal {

struct AxisSplit {
  AxisSplit(const Shape& shape, std::size_t axis) noexcept : size(shape[axis]) {
    for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }

  bool is_last() const noexcept { return inner == 1; }  // Or all after it have size 1.
  // The first element of a lane, of which there are outer * inner.
  std::int64_t start(std::int64_t lane) const noexcept { return lane / inner * size * inner + lane % inner; }

  Shape moved() const { return {outer, inner, size}; }
  // Requires views of as many elements; `from` and `to` do not overlap.
  void move_last(const ConstTensorView& from, const TensorView& to) const noexcept {
    constexpr std::int64_t kSwap[] = {0, 2, 1};
    transpose(from.reshaped({outer, size, inner}), kSwap, to.reshaped(moved()));
  }
  void move_back(const ConstTensorView& from, const TensorView& to) const noexcept {
    constexpr std::int64_t kSwap[] = {0, 2, 1};
    transpose(from.reshaped(moved()), kSwap, to.reshaped({outer, size, inner}));
  }

  std::int64_t outer = 1, size, inner = 1;
};

}  // namespace plimsoll::internal
