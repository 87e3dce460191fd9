// The addresses that a run used, without the wide gaps between them: what a map of addresses shows.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/observe/trace_history.h"

namespace plimsoll::internal {

struct AddressStretch {
  std::uint32_t arena = 0;
  std::uint64_t from = 0, size = 0;  // Addresses: an offset in the arena's range.
  std::uint64_t at = 0;              // Its place in the map.
};

// By arena and address. A gap is kept when it is small compared with what its arena uses (it is then a hole), else it
// becomes a narrow strip. Arenas are stacked.
std::vector<AddressStretch> address_stretches(const TraceHistory& history);

// The place of an address in the map; one of `stretches` must contain it.
std::uint64_t place_in_map(const std::vector<AddressStretch>& stretches, std::uint32_t arena, std::uint64_t offset);

}  // namespace plimsoll::internal
