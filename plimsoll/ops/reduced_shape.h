// The shape that remains when axes are reduced.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

// Bit i of `axes`: axis i is removed, or stays with size 1.
inline Shape shape_without(const Shape& shape, std::uint32_t axes, bool keep_dims) {
  std::int64_t sizes[kMaxRank];
  std::size_t rank = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const bool gone = axes >> axis & 1;
    if (!gone || keep_dims) sizes[rank++] = gone ? 1 : shape[axis];
  }
  return Shape(std::span<const std::int64_t>(sizes, rank));
}

}  // namespace plimsoll::internal
