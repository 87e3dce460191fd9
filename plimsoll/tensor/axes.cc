#include "plimsoll/tensor/axes.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/shape.h"

namespace plimsoll {

std::uint32_t Axes::mask(std::size_t rank, const char* where) const {
  if (is_all()) return rank >= 32 ? UINT32_MAX : (std::uint32_t{1} << rank) - 1;
  std::uint32_t mask = 0;
  for (const std::int64_t axis : axes_) {
    const std::uint32_t bit = std::uint32_t{1} << resolve_axis(axis, rank, where);
    if (mask & bit) throw InvalidArgument(fmt::format("{}: axis {} is given twice", where, axis));
    mask |= bit;
  }
  return mask;
}

}  // namespace plimsoll
