#include "plimsoll/plan/internal/greedy.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {
namespace {

// Offsets strictly between `low` and `high` would make an item share bytes with one that is placed.
struct Forbidden {
  Units low;
  Units high;
};

void add_forbidden(const Instance& instance, const Item& item, const Item& other, Units other_offset,
                   std::vector<Forbidden>& out) {
  if (instance.is_simple) {
    out.push_back({other_offset - item.size, other_offset + other.size});
    return;
  }
  const auto mine = instance.pieces_of(item), theirs = instance.pieces_of(other);
  for (std::size_t m = 0, t = 0; m < mine.size() && t < theirs.size();) {
    const Piece& a = mine[m];
    const Piece& b = theirs[t];
    if (std::max(a.first, b.first) < std::min(a.last, b.last))
      out.push_back({other_offset + b.low - a.high, other_offset + b.high - a.low});
    a.last < b.last ? ++m : ++t;
  }
}

Units align(Units offset, Units alignment) { return round_up(offset, alignment); }

Units find_hole(std::vector<Forbidden>& forbidden, Units alignment, Fit fit) {
  std::sort(forbidden.begin(), forbidden.end(), [](const Forbidden& a, const Forbidden& b) { return a.low < b.low; });
  Units candidate = 0, best = -1, best_slack = std::numeric_limits<Units>::max();
  for (const Forbidden& f : forbidden) {
    if (candidate <= f.low) {
      if (fit == Fit::kFirst) return candidate;
      if (f.low - candidate < best_slack) best = candidate, best_slack = f.low - candidate;
    }
    if (f.high > candidate) candidate = align(f.high, alignment);
  }
  return best >= 0 ? best : candidate;
}

}  // namespace

Neighbours::Neighbours(const Instance& instance) {
  const int n = static_cast<int>(instance.items.size());
  std::vector<int> by_first(n);
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(), [&](int a, int b) {
    return instance.items[a].first != instance.items[b].first ? instance.items[a].first < instance.items[b].first
                                                              : a < b;
  });
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> live;
  std::vector<Forbidden> shared;
  for (const int i : by_first) {
    const Item& item = instance.items[i];
    if (item.first == item.last) continue;
    std::erase_if(live, [&](int other) { return instance.items[other].last <= item.first; });
    for (const int other : live) {
      shared.clear();
      if (!instance.is_simple) add_forbidden(instance, item, instance.items[other], 0, shared);
      if (instance.is_simple || !shared.empty()) pairs.emplace_back(i, other);
    }
    live.push_back(i);
  }
  begin_.assign(n + 1, 0);
  for (const auto& [a, b] : pairs) ++begin_[a + 1], ++begin_[b + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  all_.resize(2 * pairs.size());
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  for (const auto& [a, b] : pairs) all_[next[a]++] = b, all_[next[b]++] = a;
}

std::uint64_t Neighbours::count(const Instance& instance) {
  std::vector<std::int64_t> starts(instance.sections + 1, 0), ends(instance.sections + 1, 0);
  for (const Item& item : instance.items) ++starts[item.first], ++ends[item.last];
  std::uint64_t entries = 0;
  std::int64_t live = 0;
  for (int s = 0; s < instance.sections; ++s) {
    live -= ends[s];
    entries += static_cast<std::uint64_t>(starts[s]) * static_cast<std::uint64_t>(2 * live + starts[s] - 1);
    live += starts[s];
  }
  return entries;
}

std::vector<Units> greedy_fit(const Instance& instance, const Neighbours& neighbours, std::span<const int> order,
                              Fit fit) {
  constexpr Units kUnplaced = -1;
  std::vector<Units> offsets(instance.items.size(), kUnplaced);
  std::vector<Forbidden> forbidden;
  for (const int i : order) {
    const Item& item = instance.items[i];
    forbidden.clear();
    for (const int other : neighbours.of(i))
      if (offsets[other] != kUnplaced) add_forbidden(instance, item, instance.items[other], offsets[other], forbidden);
    offsets[i] = find_hole(forbidden, item.alignment, fit);
  }
  return offsets;
}

std::vector<int> breadth_order(const Instance& instance) {
  std::vector<Units> live(instance.sections + 1, 0);
  for (const Piece& p : instance.pieces) live[p.first] += p.high - p.low, live[p.last] -= p.high - p.low;
  std::partial_sum(live.begin(), live.end(), live.begin());
  const int n = static_cast<int>(instance.items.size());
  // The busiest section of each item decides when its turn comes.
  std::vector<int> busiest(n);
  for (int i = 0; i < n; ++i) {
    const Item& item = instance.items[i];
    busiest[i] = item.first;
    for (int s = item.first; s < item.last; ++s)
      if (live[s] > live[busiest[i]]) busiest[i] = s;
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    if (live[busiest[a]] != live[busiest[b]]) return live[busiest[a]] > live[busiest[b]];
    if (busiest[a] != busiest[b]) return busiest[a] < busiest[b];
    if (instance.items[a].size != instance.items[b].size) return instance.items[a].size > instance.items[b].size;
    return a < b;
  });
  return order;
}

}  // namespace plimsoll::internal
