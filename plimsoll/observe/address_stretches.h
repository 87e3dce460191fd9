// The addresses that a run used, with the wide gaps between them cut out: what a map of addresses shows.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/observe/trace_history.h"

namespace plimsoll {

struct AddressStretch {
  std::uint32_t arena = 0;
  std::uint64_t from = 0, size = 0;  // Addresses: an offset in the arena's range.
  std::uint64_t at = 0;              // Where it lies in the map.
};

// By arena and address. A gap is kept when it is small beside what its arena uses (a hole, then), else it becomes a
// narrow strip. Arenas lie above one another.
std::vector<AddressStretch> address_stretches(const TraceHistory& history);

// Where an address lies in the map; `stretches` must have one for it.
std::uint64_t place_in_map(const std::vector<AddressStretch>& stretches, std::uint32_t arena, std::uint64_t offset);

}  // namespace plimsoll
