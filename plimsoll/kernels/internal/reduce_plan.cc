#include "plimsoll/kernels/internal/reduce_plan.h"

namespace plimsoll::internal {
namespace {

struct Axis {
  std::int64_t size, stride;
  bool reduced;
};

void append(AxisWalk& walk, const Axis& axis) noexcept {
  walk.sizes[static_cast<std::size_t>(walk.rank)] = axis.size;
  walk.strides[static_cast<std::size_t>(walk.rank++)] = axis.stride;
}

}  // namespace

ReducePlan plan_reduction(const Shape& shape, AxesMask axes) noexcept {
  std::array<Axis, kMaxRank> merged;  // Innermost first.
  std::size_t count = 0;
  std::int64_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    const bool reduced = (axes >> axis & 1) != 0;
    if (shape[axis] == 1) continue;
    if (count > 0 && merged[count - 1].reduced == reduced)
      merged[count - 1].size *= shape[axis];
    else
      merged[count++] = {shape[axis], stride, reduced};
    stride *= shape[axis];
  }
  ReducePlan plan;
  if (count == 0) return plan;
  plan.inner_is_reduced = merged[0].reduced;
  (plan.inner_is_reduced ? plan.run : plan.columns) = merged[0].size;
  std::size_t first = 1;
  if (!plan.inner_is_reduced && count > 1) {
    plan.rows = merged[1].size;
    plan.row_stride = merged[1].stride;
    first = 2;
  }
  for (std::size_t i = count; i-- > first;) append(merged[i].reduced ? plan.reduced : plan.kept, merged[i]);
  return plan;
}

}  // namespace plimsoll::internal
