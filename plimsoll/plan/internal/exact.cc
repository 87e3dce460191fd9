#include "plimsoll/plan/internal/exact.h"

#include <algorithm>
#include <limits>

namespace plimsoll::internal {
namespace {

constexpr Units kPlaced = std::numeric_limits<Units>::max() / 2;

Units align(Units offset, Units alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

// A number in [0, 1) that depends on both arguments only.
double unit_random(std::uint64_t seed, int item) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(item) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

ExactSearch::ExactSearch(const SearchProblem& problem, const Preorder& keys, std::size_t capacity, Noise noise)
    : problem_(problem), keys_(keys), noise_(noise) {
  const Instance& instance = problem.instance();
  const std::size_t n = instance.items.size();
  capacity_ = static_cast<Units>((capacity + instance.unit - 1) / instance.unit);
  for (const Item& item : instance.items)
    limit_.push_back(item.bytes > capacity ? -1 : static_cast<Units>((capacity - item.bytes) / instance.unit));
  lowest_.assign(n, 0);
  offsets_.assign(n, 0);
  rank_.assign(n, 0);
  room_.assign(instance.sections, capacity_);
  witness_.assign(instance.sections, 0);
  spanning_.assign(instance.sections, 0);
  for (const Item& item : instance.items)
    for (int s = item.first; s + 1 < item.last; ++s) ++spanning_[s];
  for (const Piece& p : instance.pieces)
    for (int s = p.first; s < p.last; ++s) room_[s] -= p.high - p.low;
}

Outcome ExactSearch::run(std::uint64_t node_limit, const std::atomic<bool>& stop) {
  node_limit_ = nodes_ + node_limit;
  stop_ = &stop;
  undo(0);
  for (const Units limit : limit_)
    if (limit < 0) return Outcome::kExhausted;
  for (const Units room : room_)
    if (room < 0) return Outcome::kExhausted;
  Part whole{0, problem_.instance().sections, {}};
  for (int i = 0; i < problem_.items(); ++i)
    if (problem_.instance().items[i].first < problem_.instance().items[i].last) whole.items.push_back(i);
  std::vector<int> cuts;
  for (int s = 0; s + 1 < whole.last; ++s)
    if (spanning_[s] == 0) cuts.push_back(s + 1);
  return split(whole, cuts);
}

void ExactSearch::rank_items(Part& part) {
  const Instance& instance = problem_.instance();
  struct Ranked {
    std::array<double, 3> keys;
    int item;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(part.items.size());
  for (const int i : part.items) {
    const Item& item = instance.items[i];
    Units total = 0;
    for (const Piece& p : instance.pieces_of(item))
      for (int s = p.first; s < p.last; ++s) total = std::max(total, capacity_ - room_[s]);
    Ranked r{{}, i};
    for (std::size_t k = 0; k < keys_.size(); ++k)
      r.keys[k] = keys_[k] == Key::kTotal ? static_cast<double>(total) : item_key(item, keys_[k]);
    for (std::size_t k = 0; k < keys_.size() && noise_.seed != 0; ++k)
      if (keys_[k] != Key::kTotal) r.keys[k] *= 1 + noise_.amount * unit_random(noise_.seed + k, i);
    ranked.push_back(r);
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const Ranked& a, const Ranked& b) { return a.keys != b.keys ? a.keys > b.keys : a.item < b.item; });
  for (std::size_t r = 0; r < ranked.size(); ++r) part.items[r] = ranked[r].item;
}

Outcome ExactSearch::solve(Part& part) {
  rank_items(part);
  for (std::size_t r = 0; r < part.items.size(); ++r) rank_[part.items[r]] = static_cast<int>(r);
  return search(part, 0, 0);
}

std::size_t ExactSearch::push_candidates(const Part& part, Units floor, int floor_rank) {
  Units lowest_top = kPlaced;
  for (const int i : part.items) lowest_top = std::min(lowest_top, lowest_[i] + problem_.size(i));
  const std::size_t begin = candidates_.size();
  for (std::size_t r = 0; r < part.items.size(); ++r) {
    const Units offset = lowest_[part.items[r]];
    if (offset >= lowest_top || offset < floor || (offset == floor && static_cast<int>(r) < floor_rank)) continue;
    const int twin = problem_.twin(part.items[r]);
    if (twin >= 0 && lowest_[twin] != kPlaced) continue;
    candidates_.push_back({offset, static_cast<int>(r)});
  }
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.end());
  return lowest_top == kPlaced ? std::numeric_limits<std::size_t>::max() : begin;
}

Outcome ExactSearch::search(const Part& part, Units floor, int floor_rank) {
  if (nodes_ >= node_limit_ || stop_->load(std::memory_order_relaxed)) return Outcome::kStopped;
  ++nodes_;
  const std::size_t begin = push_candidates(part, floor, floor_rank);
  if (begin == std::numeric_limits<std::size_t>::max()) return Outcome::kFound;
  const std::size_t end = candidates_.size();
  Outcome outcome = Outcome::kExhausted;
  for (std::size_t c = begin; c < end && outcome == Outcome::kExhausted; ++c) {
    const int rank = candidates_[c].rank;
    const int item = part.items[rank];
    const std::size_t mark = trail_.size();
    failed_section_ = -1;
    const bool holds = place(part, item, rank);
    if (holds) outcome = descend(part, item, rank);
    if (outcome != Outcome::kExhausted) break;
    undo(mark);
    // A section that nothing from this candidate on can continue fails for all later candidates as well.
    if (!holds && failed_section_ >= 0 && !section_holds(failed_section_, candidates_[c].offset, rank)) break;
  }
  candidates_.resize(begin);
  return outcome;
}

Outcome ExactSearch::descend(const Part& part, int item, int rank) {
  const Item& placed = problem_.instance().items[item];
  std::vector<int> cuts;
  for (int s = placed.first; s + 1 < placed.last; ++s)
    if (spanning_[s] == 0) cuts.push_back(s + 1);
  if (cuts.empty()) return search(part, offsets_[item], rank);
  const Outcome outcome = split(part, cuts);
  if (outcome == Outcome::kExhausted)
    for (std::size_t r = 0; r < part.items.size(); ++r) rank_[part.items[r]] = static_cast<int>(r);
  return outcome;
}

Outcome ExactSearch::split(const Part& part, std::span<const int> cuts) {
  const Instance& instance = problem_.instance();
  int first = part.first;
  for (std::size_t c = 0; c <= cuts.size(); ++c) {
    Part side{first, c < cuts.size() ? cuts[c] : part.last, {}};
    for (const int i : part.items)
      if (lowest_[i] != kPlaced && instance.items[i].first >= side.first && instance.items[i].last <= side.last)
        side.items.push_back(i);
    if (!side.items.empty())
      if (const Outcome outcome = solve(side); outcome != Outcome::kFound) return outcome;
    first = side.last;
  }
  return Outcome::kFound;
}

bool ExactSearch::place(const Part& part, int item, int rank) {
  const Instance& instance = problem_.instance();
  const Item& placed = instance.items[item];
  const Units offset = lowest_[item];
  offsets_[item] = offset;
  lowest_[item] = kPlaced;
  trail_.push_back({~item, offset});
  for (const Piece& p : instance.pieces_of(placed))
    for (int s = p.first; s < p.last; ++s) room_[s] += p.high - p.low;
  for (int s = placed.first; s + 1 < placed.last; ++s) --spanning_[s];
  for (const Neighbour& n : problem_.neighbours(item)) {
    Units lowest = offset + n.distance;
    if (lowest_[n.item] >= lowest) continue;
    lowest = align(lowest, instance.items[n.item].alignment);
    if (lowest > limit_[n.item]) return false;
    trail_.push_back({n.item, lowest_[n.item]});
    lowest_[n.item] = lowest;
  }
  return sections_hold(part, offset, rank);
}

// Whether the item could be the next to start in a section that needs one at `limit` or below. One that comes before
// (floor, floor_rank) has missed its turn and must first be lifted by a neighbour placed at `floor` or above.
inline bool ExactSearch::can_start(int item, Units limit, Units floor, int floor_rank) const {
  const Units lowest = lowest_[item];
  if (lowest > limit) return false;
  if (lowest > floor || (lowest == floor && rank_[item] >= floor_rank)) return true;
  return floor + problem_.least_lift(item) <= limit;
}

bool ExactSearch::section_holds(int section, Units floor, int floor_rank) {
  const Units limit = room_[section];
  if (limit == capacity_ || can_start(witness_[section], limit, floor, floor_rank)) return true;
  for (const int i : problem_.in_section(section))
    if (can_start(i, limit, floor, floor_rank)) {
      witness_[section] = i;
      return true;
    }
  return false;
}

bool ExactSearch::sections_hold(const Part& part, Units floor, int floor_rank) {
  for (int s = part.first; s < part.last; ++s)
    if (!section_holds(s, floor, floor_rank)) {
      failed_section_ = s;
      return false;
    }
  return true;
}

void ExactSearch::undo(std::size_t mark) {
  const Instance& instance = problem_.instance();
  while (trail_.size() > mark) {
    const Undo last = trail_.back();
    trail_.pop_back();
    if (last.item >= 0) {
      lowest_[last.item] = last.offset;
      continue;
    }
    const Item& item = instance.items[~last.item];
    lowest_[~last.item] = last.offset;
    for (const Piece& p : instance.pieces_of(item))
      for (int s = p.first; s < p.last; ++s) room_[s] -= p.high - p.low;
    for (int s = item.first; s + 1 < item.last; ++s) ++spanning_[s];
  }
}

}  // namespace plimsoll::internal
