#include <algorithm>
#include <limits>

#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

std::size_t next_peak_bytes(const Instance& instance, std::size_t bytes) {
  std::size_t next = std::numeric_limits<std::size_t>::max();
  for (const Item& item : instance.items) {
    const std::size_t steps = bytes < item.bytes ? 0 : (bytes - item.bytes) / instance.unit + 1;
    next = std::min(next, item.bytes + steps * instance.unit);
  }
  return next;
}

Instance clip(const Instance& instance, int first, int last) {
  Instance part;
  part.unit = instance.unit;
  part.sections = last - first;
  part.has_windows = instance.has_windows;
  part.is_simple = instance.is_simple;
  for (const Item& item : instance.items) {
    if (item.first >= last || item.last <= first) continue;
    Item cut = item;
    cut.pieces_begin = static_cast<std::uint32_t>(part.pieces.size());
    for (const Piece& p : instance.pieces_of(item))
      if (p.first < last && p.last > first)
        part.pieces.push_back({std::max(p.first, first) - first, std::min(p.last, last) - first, p.low, p.high});
    cut.pieces_end = static_cast<std::uint32_t>(part.pieces.size());
    if (cut.pieces_begin == cut.pieces_end) continue;
    cut.first = part.pieces[cut.pieces_begin].first;
    cut.last = part.pieces.back().last;
    part.items.push_back(cut);
  }
  return part;
}

}  // namespace plimsoll::internal
