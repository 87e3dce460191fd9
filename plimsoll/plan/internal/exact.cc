#include "plimsoll/plan/internal/exact.h"

#include <algorithm>
#include <limits>

#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {
namespace {

constexpr Units kPlaced = std::numeric_limits<Units>::max() / 2;

Units align(Units offset, Units alignment) { return alignment == 1 ? offset : round_up(offset, alignment); }

// A number in [0, 1) that depends on both arguments only.
double unit_random(std::uint64_t seed, int item) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(item) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

ExactSearch::ExactSearch(const SearchProblem& problem, const Strategy& strategy, std::size_t capacity)
    : problem_(problem), strategy_(strategy) {
  const Instance& instance = problem.instance();
  const std::size_t n = instance.items.size();
  capacity_ = static_cast<Units>((capacity + instance.unit - 1) / instance.unit);
  for (const Item& item : instance.items)
    limit_.push_back(item.bytes > capacity ? -1 : static_cast<Units>((capacity - item.bytes) / instance.unit));
  lowest_.assign(n, 0);
  asleep_.assign(n, 0);
  lifter_.assign(n, 0);
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

Outcome ExactSearch::run(std::uint64_t node_limit, const StopToken& stop) {
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
    for (std::size_t k = 0; k < r.keys.size(); ++k) {
      const Key key = strategy_.keys[k];
      r.keys[k] = key == Key::kTotal ? static_cast<double>(total) : item_key(item, key);
      if (key != Key::kTotal && strategy_.noise > 0)
        r.keys[k] *= 1 + strategy_.noise * unit_random(strategy_.seed + k, i);
    }
    ranked.push_back(r);
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const Ranked& a, const Ranked& b) { return a.keys != b.keys ? a.keys > b.keys : a.item < b.item; });
  for (std::size_t r = 0; r < ranked.size(); ++r) part.items[r] = ranked[r].item;
}

Outcome ExactSearch::solve(Part& part) {
  rank_items(part);
  for (std::size_t r = 0; r < part.items.size(); ++r) rank_[part.items[r]] = static_cast<int>(r);
  find_awake_floor(part);
  return search(part);
}

// Candidates that any plan must continue with: an unplaced item with the lowest offset of all lies where it stands now,
// and not above the top that another could reach below it. False when nothing is left to place.
bool ExactSearch::push_candidates(const Part& part) {
  Units lowest_top = kPlaced;
  for (const int i : part.items) lowest_top = std::min(lowest_top, lowest_[i] + problem_.size(i));
  const std::size_t begin = candidates_.size();
  for (std::size_t r = 0; r < part.items.size(); ++r) {
    const int i = part.items[r];
    const Units offset = lowest_[i];
    if (offset >= lowest_top || asleep_[i]) continue;
    const int twin = problem_.twin(i);
    if (twin >= 0 && lowest_[twin] != kPlaced) continue;
    candidates_.push_back({offset, static_cast<int>(r)});
  }
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.end());
  return lowest_top != kPlaced;
}

// How many items may come next in a section when each of them can only do so where it stands now; -1 when some item may
// come next at another place, or when there are more than `most`.
int ExactSearch::count_starters(int section, int most) {
  const Units limit = room_[section];
  int count = 0;
  for (const int i : problem_.in_section(section)) {
    if (lowest_[i] > limit) continue;
    if (can_be_lifted(i, limit)) return -1;
    if (!asleep_[i] && ++count > most) return -1;
  }
  return count;
}

// If some section leaves few choices, these are the candidates: the plan must continue there one way or another.
bool ExactSearch::push_starters(const Part& part) {
  int best = -1, fewest = strategy_.most_starters + 1;
  for (int s = part.first; s < part.last && fewest > 1; ++s) {
    if (room_[s] == capacity_) continue;
    const int count = count_starters(s, fewest - 1);
    if (count >= 0) best = s, fewest = count;
  }
  if (best < 0) return false;
  const std::size_t begin = candidates_.size();
  for (const int i : problem_.in_section(best)) {
    if (lowest_[i] > room_[best] || asleep_[i]) continue;
    const int twin = problem_.twin(i);
    if (twin >= 0 && lowest_[twin] != kPlaced) continue;
    candidates_.push_back({lowest_[i], rank_[i]});
  }
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.end());
  return true;
}

Outcome ExactSearch::search(const Part& part) {
  const std::size_t begin = candidates_.size();
  if (!push_starters(part) && !push_candidates(part)) return Outcome::kFound;
  const std::size_t end = candidates_.size();
  const std::size_t node_mark = trail_.size();
  Outcome outcome = Outcome::kExhausted;
  for (std::size_t c = begin; c < end; ++c) {
    if (nodes_ >= node_limit_ || stop_->requested(nodes_)) {
      outcome = Outcome::kStopped;
      break;
    }
    ++nodes_;
    const int item = part.items[candidates_[c].rank];
    const std::size_t mark = trail_.size();
    failed_section_ = -1;
    const bool holds = place(part, item);
    if (holds) outcome = descend(part, item);
    if (outcome != Outcome::kExhausted) break;
    undo(mark);
    sleep(item);
    // A section that nothing still awake can continue fails for all later candidates as well.
    find_awake_floor(part);
    if (failed_section_ >= 0 && !section_holds(failed_section_)) break;
  }
  candidates_.resize(begin);
  if (outcome == Outcome::kExhausted) undo(node_mark);
  return outcome;
}

Outcome ExactSearch::descend(const Part& part, int item) {
  const Item& placed = problem_.instance().items[item];
  std::vector<int> cuts;
  for (int s = placed.first; s + 1 < placed.last; ++s)
    if (spanning_[s] == 0) cuts.push_back(s + 1);
  if (cuts.empty()) return search(part);
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

bool ExactSearch::place(const Part& part, int item) {
  const Instance& instance = problem_.instance();
  const Item& placed = instance.items[item];
  const Units offset = lowest_[item];
  offsets_[item] = offset;
  lowest_[item] = kPlaced;
  trail_.push_back({item, Undo::kPlacedItem, offset, false});
  for (const Piece& p : instance.pieces_of(placed))
    for (int s = p.first; s < p.last; ++s) room_[s] += p.high - p.low;
  for (int s = placed.first; s + 1 < placed.last; ++s) --spanning_[s];
  for (const Neighbour& n : problem_.neighbours(item)) {
    Units lowest = offset + n.distance;
    if (lowest_[n.item] >= lowest) continue;
    lowest = align(lowest, instance.items[n.item].alignment);
    if (lowest > limit_[n.item]) return false;
    trail_.push_back({n.item, Undo::kRaised, lowest_[n.item], asleep_[n.item] != 0});
    lowest_[n.item] = lowest;
    asleep_[n.item] = 0;
  }
  return sections_hold(part);
}

void ExactSearch::sleep(int item) {
  trail_.push_back({item, Undo::kSlept, 0, false});
  asleep_[item] = 1;
}

// Whether some unplaced neighbour, placed below the item, leaves it at `limit` or below.
bool ExactSearch::can_be_lifted(int item, Units limit) {
  const auto lifts = [&](const Neighbour& n) {
    const Units lowest = asleep_[n.item] ? std::max(awake_floor_, lowest_[n.item]) : lowest_[n.item];
    return lowest + n.lift <= limit;
  };
  const std::span<const Neighbour> neighbours = problem_.neighbours(item);
  if (neighbours.empty()) return false;
  if (lifts(neighbours[lifter_[item]])) return true;
  for (std::size_t n = 0; n < neighbours.size() && awake_floor_ + neighbours[n].lift <= limit; ++n)
    if (lifts(neighbours[n])) {
      lifter_[item] = static_cast<int>(n);
      return true;
    }
  return false;
}

// Whether the item could be the next to start in a section that needs one at `limit` or below.
inline bool ExactSearch::can_start(int item, Units limit) {
  if (lowest_[item] > limit) return false;
  return !asleep_[item] || can_be_lifted(item, limit);
}

bool ExactSearch::section_holds(int section) {
  const Units limit = room_[section];
  if (limit == capacity_ || can_start(witness_[section], limit)) return true;
  for (const int i : problem_.in_section(section))
    if (can_start(i, limit)) {
      witness_[section] = i;
      return true;
    }
  return false;
}

void ExactSearch::find_awake_floor(const Part& part) {
  awake_floor_ = kPlaced;
  for (const int i : part.items)
    if (!asleep_[i]) awake_floor_ = std::min(awake_floor_, lowest_[i]);
}

bool ExactSearch::sections_hold(const Part& part) {
  find_awake_floor(part);
  for (int s = part.first; s < part.last; ++s)
    if (!section_holds(s)) {
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
    asleep_[last.item] = last.was_asleep;
    if (last.what == Undo::kSlept) continue;
    lowest_[last.item] = last.offset;
    if (last.what == Undo::kRaised) continue;
    const Item& item = instance.items[last.item];
    for (const Piece& p : instance.pieces_of(item))
      for (int s = p.first; s < p.last; ++s) room_[s] -= p.high - p.low;
    for (int s = item.first; s + 1 < item.last; ++s) ++spanning_[s];
  }
}

}  // namespace plimsoll::internal
