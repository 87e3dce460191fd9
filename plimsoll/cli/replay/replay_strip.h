// occupancy_strip: a picture of memory, low addresses first, one character per equal share of the bytes.
//
//   std::cout << occupancy_strip(extents, {.rows = 3, .columns = 100});
//   ################x###########cc####....####
//
// A cell shows what most of its bytes are. Space without pages is shortened: it shows where, not how much.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll::internal {

enum class OccupancyKind { kUsed, kCached, kFree };

// A range of memory in one state; ranges follow each other by address.
struct OccupancyExtent {
  std::size_t size = 0;
  std::size_t requested = 0;  // What the user asked for, when used.
  std::size_t resident = 0;   // Bytes of it that have pages.
  OccupancyKind kind = OccupancyKind::kFree;
};

struct StripOptions {
  std::size_t rows = 3;
  std::size_t columns = 100;
  bool unicode = false;  // Block characters; ASCII otherwise.
};

// The rows, each ended by a newline, and the legend. Empty when there are no extents.
std::string occupancy_strip(const std::vector<OccupancyExtent>& extents, const StripOptions& options);

}  // namespace plimsoll::internal
