#include "plimsoll/plan/internal/local_search.h"

#include <algorithm>

#include "plimsoll/plan/internal/descent.h"

namespace plimsoll::internal {
namespace {

// xorshift64*: the same numbers everywhere.
class Random {
 public:
  std::size_t below(std::size_t n) {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return static_cast<std::size_t>((state_ * 0x2545f4914f6cdd1dull) >> 11) % n;
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ull;
};

// Ranks of the items that live in the sections of a topmost item.
std::vector<int> ranks_at_peak(const Instance& instance, const std::vector<int>& order,
                               const std::vector<Units>& offsets) {
  int first = 0, last = 0;
  Units peak = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (const Item& item = instance.items[i]; offsets[i] + item.size > peak)
      peak = offsets[i] + item.size, first = item.first, last = item.last;
  std::vector<int> ranks;
  for (std::size_t r = 0; r < order.size(); ++r)
    if (const Item& item = instance.items[order[r]]; item.first < last && first < item.last)
      ranks.push_back(static_cast<int>(r));
  return ranks;
}

Units height(const Instance& instance, const std::vector<Units>& offsets) {
  Units result = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) result = std::max(result, offsets[i] + instance.items[i].size);
  return result;
}

// Moves one to three of the items at the peak forward, by a random part of the way.
std::vector<int> shake(const std::vector<int>& order, const std::vector<int>& ranks, Random& random) {
  std::vector<int> changed = order;
  const std::size_t moves = 1 + random.below(3);
  for (std::size_t m = 0; m < moves; ++m) {
    const int from = ranks[random.below(ranks.size())];
    const int to = static_cast<int>(random.below(static_cast<std::size_t>(from) + 1));
    std::rotate(changed.begin() + to, changed.begin() + from, changed.begin() + from + 1);
  }
  return changed;
}

}  // namespace

void improve_order(const Instance& instance, Incumbent& best, std::vector<int>& order, std::uint64_t evaluations,
                   const std::function<void()>& notify) {
  Random random;
  std::vector<Units> offsets = skyline_descent(instance, order);
  Units current = height(instance, offsets);
  best.offer(offsets);
  std::vector<int> ranks = ranks_at_peak(instance, order, offsets);
  for (std::uint64_t e = 0; e < evaluations && !best.done() && best.nodes_left() >= order.size() && !ranks.empty();
       ++e) {
    std::vector<int> changed = shake(order, ranks, random);
    std::vector<Units> result = skyline_descent(instance, changed);
    best.spend(order.size());
    const Units reached = height(instance, result);
    if (reached <= current) {
      order = std::move(changed);
      ranks = ranks_at_peak(instance, order, result);
      current = reached;
      best.offer(std::move(result));
    }
    notify();
  }
}

}  // namespace plimsoll::internal
