// ReducePlan: a reduction with neighbouring axes of one kind merged and axes of size 1 left out.
#pragma once

#include <array>
#include <cstdint>

#include "plimsoll/base/shape.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll::internal {

// Axes that are walked one after the other, outermost first.
struct AxisWalk {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> sizes, strides;  // In elements of the input.

  std::int64_t count() const noexcept {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= sizes[static_cast<std::size_t>(i)];
    return count;
  }
  std::int64_t offset(std::int64_t position) const noexcept {
    std::int64_t offset = 0;
    for (int i = rank; i-- > 0;) {
      const auto axis = static_cast<std::size_t>(i);
      offset += position % sizes[axis] * strides[axis];
      position /= sizes[axis];
    }
    return offset;
  }
};

struct ReducePlan {
  AxisWalk kept, reduced;       // Without the innermost axis of each where it is named below.
  std::int64_t run = 1;         // Contiguous elements that fold into one output, if the innermost axis is reduced.
  std::int64_t columns = 1;     // Contiguous outputs, if the innermost axis is kept.
  std::int64_t rows = 1;        // Then: the innermost reduced axis,
  std::int64_t row_stride = 0;  // and how far its elements are apart.
  bool inner_is_reduced = true;
};

ReducePlan plan_reduction(const Shape& shape, AxesMask axes) noexcept;

}  // namespace plimsoll::internal
