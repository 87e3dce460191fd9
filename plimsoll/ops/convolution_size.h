// SpatialSize: rows and columns of a window, or of its steps.
//
//   SpatialSize a = {2, 3}; SpatialSize both = 2;      // 2 rows and 3 columns; 2 of each
#pragma once

#include <cstdint>

namespace plimsoll {

struct SpatialSize {
  constexpr SpatialSize(std::int64_t both) noexcept : rows(both), columns(both) {}
  constexpr SpatialSize(std::int64_t number_of_rows, std::int64_t number_of_columns) noexcept
      : rows(number_of_rows), columns(number_of_columns) {}

  std::int64_t rows, columns;
  bool operator==(const SpatialSize&) const = default;
};

}  // namespace plimsoll
