#include "plimsoll/plan/internal/lower_bound.h"

#include <algorithm>
#include <set>

namespace plimsoll::internal {
namespace {

// Bytes of padding above each item that only another item on top of it makes necessary.
std::size_t padding(const Instance& instance, const Item& item) {
  return static_cast<std::size_t>(item.size) * instance.unit - item.bytes;
}

// The largest padding among the items that live in each section.
std::vector<std::size_t> largest_padding(const Instance& instance) {
  std::vector<std::size_t> most(instance.sections, 0);
  std::vector<std::vector<std::size_t>> starts(instance.sections), ends(instance.sections + 1);
  for (const Item& item : instance.items)
    if (const std::size_t p = padding(instance, item); p > 0 && item.last > item.first)
      starts[item.first].push_back(p), ends[item.last].push_back(p);
  std::multiset<std::size_t> live;
  for (int s = 0; s < instance.sections; ++s) {
    for (const std::size_t p : ends[s]) live.erase(live.find(p));
    live.insert(starts[s].begin(), starts[s].end());
    if (!live.empty()) most[s] = *live.rbegin();
  }
  return most;
}

}  // namespace

std::size_t live_bound(const Instance& instance) {
  std::size_t bound = instance.live_bytes;
  for (const Item& item : instance.items) bound = std::max(bound, item.bytes);
  if (!instance.is_simple) return bound;  // Padded windows may be larger than what they need.
  std::vector<Units> change(instance.sections + 1, 0);
  for (const Piece& p : instance.pieces) change[p.first] += p.high, change[p.last] -= p.high;
  const std::vector<std::size_t> paddings = largest_padding(instance);
  Units live = 0;
  for (int s = 0; s < instance.sections; ++s) {
    live += change[s];
    bound = std::max(bound, static_cast<std::size_t>(live) * instance.unit - paddings[s]);
  }
  return bound;
}

}  // namespace plimsoll::internal
