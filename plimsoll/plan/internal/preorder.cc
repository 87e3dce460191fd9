#include "plimsoll/plan/internal/preorder.h"

#include <algorithm>
#include <numeric>

namespace plimsoll::internal {

std::vector<Units> busiest_totals(const Instance& instance) {
  std::vector<Units> live(instance.sections + 1, 0);
  for (const Piece& p : instance.pieces) live[p.first] += p.high - p.low, live[p.last] -= p.high - p.low;
  std::partial_sum(live.begin(), live.end(), live.begin());
  // Maxima over ranges, by doubling: level k holds the largest of 2^k neighbours.
  std::vector<std::vector<Units>> largest = {live};
  for (std::size_t step = 1; 2 * step <= live.size(); step *= 2) {
    std::vector<Units> next(live.size() - 2 * step + 1);
    for (std::size_t s = 0; s < next.size(); ++s) next[s] = std::max(largest.back()[s], largest.back()[s + step]);
    largest.push_back(std::move(next));
  }
  std::vector<Units> totals(instance.items.size(), 0);
  for (std::size_t i = 0; i < totals.size(); ++i)
    for (const Piece& p : instance.pieces_of(instance.items[i])) {
      int level = 0;
      while ((2 << level) <= p.last - p.first) ++level;
      totals[i] = std::max({totals[i], largest[level][p.first], largest[level][p.last - (1 << level)]});
    }
  return totals;
}

double item_key(const Item& item, Key key) {
  switch (key) {
    case Key::kTotal:
      return 0;
    case Key::kDuration:
      return item.duration;
    case Key::kArea:
      return item.area;
    case Key::kSize:
      return static_cast<double>(item.size);
    case Key::kSections:
      return item.last - item.first;
    case Key::kStart:
      return -item.first;
  }
  return 0;
}

std::vector<int> make_order(const Instance& instance, const Preorder& keys) {
  std::vector<Units> totals;
  if (std::find(keys.begin(), keys.end(), Key::kTotal) != keys.end()) totals = busiest_totals(instance);
  const auto value = [&](Key key, int i) {
    return key == Key::kTotal ? static_cast<double>(totals[i]) : item_key(instance.items[i], key);
  };
  struct Ranked {
    std::array<double, 3> keys;
    int index;
  };
  std::vector<Ranked> ranked(instance.items.size());
  for (int i = 0; i < static_cast<int>(ranked.size()); ++i)
    ranked[i] = {{value(keys[0], i), value(keys[1], i), value(keys[2], i)}, i};
  std::sort(ranked.begin(), ranked.end(),
            [](const Ranked& a, const Ranked& b) { return a.keys != b.keys ? a.keys > b.keys : a.index < b.index; });
  std::vector<int> order(ranked.size());
  for (std::size_t r = 0; r < ranked.size(); ++r) order[r] = ranked[r].index;
  return order;
}

}  // namespace plimsoll::internal
