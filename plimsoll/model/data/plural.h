// plural: a count in words: "1 row", "2 rows".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll::internal {

// `what` is the singular of a word whose plural takes an s.
inline std::string plural(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace plimsoll::internal
