// HeapCounters: what was asked of an arena's heap so far, and what moving pages cost.
#pragma once

#include <cstddef>

namespace plimsoll {

struct HeapCounters {
  std::size_t takes = 0, gives = 0;  // Blocks.
  std::size_t moves = 0;             // Calls of PageRange::move.
  std::size_t pages_moved = 0;       // Pages that went from a hole to a new block.
  std::size_t pages_refaulted = 0;   // Of these, the ones that had to be given back and faulted in again.
};

}  // namespace plimsoll
