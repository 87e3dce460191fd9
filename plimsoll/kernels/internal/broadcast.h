// Broadcast: how an operand's elements line up with those of an output, with as few axes as possible.
//
// Axes along which all operands advance like the output are merged, axes of size 1 dropped. What remains has at most
// one stride of 0 or 1 on the innermost axis, so that a row is a run of elements or one element repeated.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

inline constexpr int kMaxOperands = 3;

struct Broadcast {
  int rank = 0;                                                          // After merging; 0 for a single element.
  std::array<std::int64_t, kMaxRank> sizes;                              // Outermost first.
  std::array<std::array<std::int64_t, kMaxRank>, kMaxOperands> strides;  // In elements; 0 where repeated.

  std::int64_t inner() const noexcept { return rank == 0 ? 1 : sizes[static_cast<std::size_t>(rank - 1)]; }
  std::int64_t inner_stride(int operand) const noexcept {
    return rank == 0 ? 0 : strides[static_cast<std::size_t>(operand)][static_cast<std::size_t>(rank - 1)];
  }
  std::int64_t row_stride(int operand) const noexcept {  // From row to row of the next axis.
    return rank < 2 ? 0 : strides[static_cast<std::size_t>(operand)][static_cast<std::size_t>(rank - 2)];
  }

  // The place of the operand's element for the output's element `position`.
  std::int64_t offset(int operand, std::int64_t position) const noexcept {
    std::int64_t offset = 0;
    for (int axis = rank; axis-- > 0;) {
      const auto a = static_cast<std::size_t>(axis);
      offset += position % sizes[a] * strides[static_cast<std::size_t>(operand)][a];
      position /= sizes[a];
    }
    return offset;
  }
  bool rows_are_alike(int operand) const noexcept {
    for (int axis = 0; axis + 1 < rank; ++axis)
      if (strides[static_cast<std::size_t>(operand)][static_cast<std::size_t>(axis)] != 0) return false;
    return true;
  }
};

// Walks through the output's elements, row piece by row piece, tracking the operands' elements.
class BroadcastCursor {
 public:
  BroadcastCursor(const Broadcast& plan, int operands, std::int64_t position) noexcept;

  std::int64_t left_in_row() const noexcept { return plan_->inner() - within_; }
  std::int64_t rows_left() const noexcept {  // This one and those after it along the next axis.
    if (plan_->rank < 2) return 1;
    const auto axis = static_cast<std::size_t>(plan_->rank - 2);
    return plan_->sizes[axis] - index_[axis];
  }
  bool at_row_start() const noexcept { return within_ == 0; }
  std::int64_t offset(int operand) const noexcept {
    return offsets_[static_cast<std::size_t>(operand)] + within_ * plan_->inner_stride(operand);
  }
  void advance(std::int64_t n) noexcept {  // Requires n <= left_in_row().
    within_ += n;
    if (within_ == plan_->inner()) next_row();
  }
  void advance_rows(std::int64_t rows) noexcept;  // Requires a row's start, 0 < rows <= rows_left().

 private:
  void next_row() noexcept;

  const Broadcast* plan_;
  int operands_;
  std::int64_t within_ = 0;                              // The row.
  std::array<std::int64_t, kMaxOperands> offsets_ = {};  // The row's first elements.
  std::array<std::int64_t, kMaxRank> index_;             // The row's index.
};

// Requires shapes that broadcast to `out`, none of whose sizes is 0.
using Sizes = std::span<const std::int64_t>;
Broadcast plan_broadcast(const Sizes* operands, int count, Sizes out) noexcept;

}  // namespace plimsoll::internal
