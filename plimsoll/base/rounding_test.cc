#include "plimsoll/base/rounding.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace plimsoll::internal {
namespace {

TEST(Rounding, TakesTheNextMultipleUnlessItIsOne) {
  static_assert(divide_up(10, 4) == 3 && round_up(10, 4) == 12);
  for (std::int64_t unit = 1; unit < 20; ++unit)
    for (std::int64_t n = 0; n < 100; ++n) {
      const std::int64_t up = round_up(n, unit);
      EXPECT_TRUE(up % unit == 0 && up >= n && up < n + unit) << n << " to " << unit;
      EXPECT_EQ(divide_up(n, unit) * unit, up);
    }
  EXPECT_EQ(round_up(std::size_t{0}, 64), 0u);
}

}  // namespace
}  // namespace plimsoll::internal
