// HeapCounters: the requests an arena's heap has served so far, and the cost of moving pages.
#pragma once

#include <cstddef>

namespace plimsoll {

struct HeapCounters {
  std::size_t takes = 0, gives = 0;  // Blocks.
  std::size_t moves = 0;             // Calls of PageRange::move.
  std::size_t pages_moved = 0;       // Pages moved from a hole to a new block.
  std::size_t pages_refaulted = 0;   // Of these, the pages that had to be released and faulted in again.
};

}  // namespace plimsoll
