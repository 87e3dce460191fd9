// Axes: which axes of a tensor an operation works on; none given means all.
//
//   x.sum(); x.sum({1}); x.sum({0, -1}); x.sum(1)
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

class PLIMSOLL_API Axes {
 public:
  Axes() = default;
  Axes(int axis) : axes_{axis} {}
  Axes(std::initializer_list<std::int64_t> axes) : axes_(axes) {}
  Axes(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}

  bool is_all() const noexcept { return axes_.empty(); }

  // Bit i: axis i. Throws InvalidArgument that begins with `where` for an axis outside the rank and for one given
  // twice.
  std::uint32_t mask(std::size_t rank, const char* where) const;

 private:
  std::vector<std::int64_t> axes_;
};

}  // namespace plimsoll
