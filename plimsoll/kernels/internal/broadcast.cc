#include "plimsoll/kernels/internal/broadcast.h"

namespace plimsoll::internal {
namespace {

// The operand's strides on the output's axes, 0 where it is repeated.
void broadcast_strides(Sizes operand, Sizes out, std::array<std::int64_t, kMaxRank>& strides) noexcept {
  const std::size_t missing = out.size() - operand.size();
  std::int64_t stride = 1;
  for (std::size_t axis = out.size(); axis-- > 0;) {
    const std::int64_t size = axis < missing ? 1 : operand[axis - missing];
    strides[axis] = size == 1 ? 0 : stride;
    stride *= size;
  }
}

}  // namespace

Broadcast plan_broadcast(const Sizes* operands, int count, Sizes out) noexcept {
  Broadcast plan;
  std::array<std::array<std::int64_t, kMaxRank>, kMaxOperands> strides;
  for (int i = 0; i < count; ++i) broadcast_strides(operands[i], out, strides[static_cast<std::size_t>(i)]);
  for (std::size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis] == 1) continue;
    bool merges = plan.rank > 0;
    const auto last = static_cast<std::size_t>(plan.rank - 1);
    for (std::size_t i = 0; merges && i < static_cast<std::size_t>(count); ++i)
      merges = plan.strides[i][last] == strides[i][axis] * out[axis];
    const auto target = merges ? last : static_cast<std::size_t>(plan.rank++);
    plan.sizes[target] = merges ? plan.sizes[target] * out[axis] : out[axis];
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) plan.strides[i][target] = strides[i][axis];
  }
  return plan;
}

BroadcastCursor::BroadcastCursor(const Broadcast& plan, int operands, std::int64_t position) noexcept
    : plan_(&plan), operands_(operands) {
  within_ = position % plan.inner();
  position /= plan.inner();
  for (int axis = plan.rank - 1; axis-- > 0;) {
    const auto a = static_cast<std::size_t>(axis);
    index_[a] = position % plan.sizes[a];
    position /= plan.sizes[a];
    for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i) offsets_[i] += index_[a] * plan.strides[i][a];
  }
}

void BroadcastCursor::advance_rows(std::int64_t rows) noexcept {
  if (plan_->rank > 1) {
    const auto axis = static_cast<std::size_t>(plan_->rank - 2);
    index_[axis] += rows - 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(operands_); ++i)
      offsets_[i] += (rows - 1) * plan_->strides[i][axis];
  }
  next_row();
}

void BroadcastCursor::next_row() noexcept {
  within_ = 0;
  for (int axis = plan_->rank - 1; axis-- > 0;) {
    const auto a = static_cast<std::size_t>(axis);
    const bool carries = ++index_[a] == plan_->sizes[a];
    const std::int64_t steps = carries ? 1 - plan_->sizes[a] : 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(operands_); ++i) offsets_[i] += steps * plan_->strides[i][a];
    if (!carries) return;
    index_[a] = 0;
  }
}

}  // namespace plimsoll::internal
