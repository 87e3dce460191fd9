// IndexRule: what an operation demands of the indices it is given, and what is said of one that is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

struct IndexRule {
  // "gather: index 7 at position [1, 0] of the indices [2, 3] is outside of ..."
  using Text = std::string (*)(const IndexRule& rule, const Shape& indices, std::int64_t position, std::int64_t index);

  std::size_t input = 0;   // The operand that holds them, of i32 or i64.
  std::int64_t size = 0;   // Each is in [0, size).
  const char* where = "";  // Text that lives as long as the program.
  const char* what = "";   // The same.
  Shape of;                // What they choose from,
  std::size_t axis = 0;    // along this axis.
  Text text = nullptr;
};

}  // namespace plimsoll::internal
