#include "plimsoll/cli/replay/replay_strip.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plimsoll::internal {
namespace {

OccupancyExtent used(std::size_t size, std::size_t requested) {
  return {.size = size, .requested = requested, .resident = size, .kind = OccupancyKind::kUsed};
}

std::string rows(const std::vector<OccupancyExtent>& extents, std::size_t count, std::size_t columns) {
  const std::string text = occupancy_strip(extents, {.rows = count, .columns = columns});
  return text.substr(0, count * (columns + 1));
}

TEST(OccupancyStrip, ShowsWhatMostOfEachCellIs) {
  EXPECT_EQ(rows({used(40, 40),
                  {.size = 20, .resident = 20, .kind = OccupancyKind::kCached},
                  {.size = 20, .resident = 20},
                  used(20, 1)},
                 1, 10),
            "####cc--xx\n");
}

TEST(OccupancyStrip, FillsItsRowsFromLowAddresses) {
  EXPECT_EQ(rows({used(3, 3), {.size = 3, .resident = 3}}, 2, 3), "###\n---\n");
}

TEST(OccupancyStrip, ShortensSpaceWithoutPages) {
  const std::string text = rows({used(980, 980), {.size = std::size_t{1} << 40}, used(1000, 1000)}, 1, 100);
  EXPECT_NE(text.find('.'), std::string::npos);
  EXPECT_LE(std::count(text.begin(), text.end(), '.'), 3);
}

TEST(OccupancyStrip, ExplainsItsCharacters) {
  EXPECT_NE(occupancy_strip({used(1, 1)}, {}).find("# used   x rounding   c cached"), std::string::npos);
  EXPECT_NE(occupancy_strip({used(1, 1)}, {.unicode = true}).find("█ used"), std::string::npos);
}

TEST(OccupancyStrip, IsEmptyWithoutMemory) {
  EXPECT_EQ(occupancy_strip({}, {}), "");
  EXPECT_EQ(occupancy_strip({used(1, 1)}, {.columns = 0}), "");
}

}  // namespace
}  // namespace plimsoll::internal
