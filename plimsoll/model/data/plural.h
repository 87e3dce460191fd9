// plural: a number of things in words for people: "1 row", "2 rows".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll::internal {

// `what` is one of them, and a word that takes an s.
inline std::string plural(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace plimsoll::internal
