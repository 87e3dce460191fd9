#include "plimsoll/plan/internal/victims.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace plimsoll::internal {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kMostLookedThrough = 48, kMostAncestors = 200;

double in_cost(std::uint64_t cost) { return static_cast<double>(cost); }

}  // namespace

Victims::Victims(const StepFacts& facts, const EvictionPolicy& policy) : facts_(facts), policy_(policy) {
  const std::size_t count = facts.program.values.size();
  there_.assign(count, 0);
  stored_.assign(count, 0);
  pins_.assign(count, 0);
  wanted_.assign(count, 0);
  position_.assign(count, -1);
  read_position_.assign(count, 0);
  touched_.assign(count, 0);
  group_of_.assign(count, -1);
  mark_.assign(count, 0);
  version_.assign(count, 0);
  for (std::size_t value = 0; value < count; ++value) stored_[value] = facts.program.values[value].starts_stored;
}

int Victims::next_read(int value) {
  const auto readers = facts_.reads_of(value);
  std::size_t& k = read_position_[value];
  while (k < readers.size() && readers[k] < at) ++k;
  return k < readers.size() ? readers[k] : kNever;
}

bool Victims::may_drop(int value) {
  if (!facts_.is_free[value]) return false;
  if (!policy_.knows_future) return facts_.last_read(value) <= facts_.until[value];
  const int next = next_read(value);
  return next == kNever || next <= facts_.until[value];
}

bool Victims::is_dead(int value) const {
  if (!policy_.knows_future || !facts_.is_free[value]) return facts_.last_held[value] < at;
  return facts_.last_read(value) < at;
}

void Victims::arrive(int value) {
  if (group_of_[value] >= 0) {
    group_cost_[root(group_of_[value])] -= own_price(value);
    group_of_[value] = -1;
  }
  there_[value] = 1;
  touched_[value] = now;
  if (facts_.bytes(value) == 0 || !(facts_.is_free[value] || may_spill(value))) return;
  position_[value] = static_cast<int>(candidates_.size());
  candidates_.push_back(value);
  if (!policy_.knows_future) return;
  rank_again(value);
  if (policy_.price == Price::kOwn) return;
  for (const int other : facts_.far_children[value])  // It costs them less now.
    if (there_[other]) rank_again(other);
  for (const int other : facts_.far_parents[value])
    if (there_[other]) rank_again(other);
}

void Victims::leave(int value) {
  there_[value] = 0;
  ++version_[value];
  if (position_[value] < 0) return;
  const int last = candidates_.back();
  candidates_[position_[value]] = last;
  position_[last] = position_[value];
  candidates_.pop_back();
  position_[value] = -1;
}

int Victims::root(int group) {
  while (group_parent_[group] != group) group = group_parent_[group] = group_parent_[group_parent_[group]];
  return group;
}

void Victims::join(int value, int other) {
  if (there_[other] || group_of_[other] < 0 || other == value) return;
  const int into = root(group_of_[value]), from = root(group_of_[other]);
  if (into == from) return;
  group_cost_[into] += group_cost_[from];
  group_parent_[from] = into;
}

// Calls `visit` for neighbours that may belong to a group; gives the cost of dead ones that are looked through upwards.
template <typename Visit>
void Victims::visit_neighbours(int value, const Visit& visit) {
  if (policy_.price == Price::kDirect) {
    for (const int other : facts_.parents[value]) visit(other, 0.0);
    for (const int other : facts_.children[value])
      if (facts_.maker[other] <= at) visit(other, 0.0);
    return;
  }
  if (policy_.price != Price::kThroughDead) {
    for (const int other : facts_.far_parents[value]) visit(other, 0.0);
    for (const int other : facts_.far_children[value]) visit(other, 0.0);
    return;
  }
  for (const bool upwards : {false, true}) {
    ++stamp_;
    open_.assign(1, value);
    for (int left = kMostLookedThrough; !open_.empty() && left > 0; --left) {
      const int here = open_.back();
      open_.pop_back();
      for (const int other : upwards ? facts_.parents[here] : facts_.children[here]) {
        if (mark_[other] == stamp_ || !facts_.is_free[other] || facts_.maker[other] > at) continue;
        mark_[other] = stamp_;
        if (there_[other]) continue;
        const bool looks_through = group_of_[other] < 0 && is_dead(other);
        visit(other, looks_through && upwards ? own_price(other) : 0.0);
        if (looks_through) open_.push_back(other);
      }
    }
  }
}

void Victims::note_dropped(int value) {
  group_of_[value] = static_cast<int>(group_parent_.size());
  group_parent_.push_back(group_of_[value]);
  group_cost_.push_back(own_price(value));
  visit_neighbours(value, [&](int other, double) { join(value, other); });
}

double Victims::own_price(int value) const {
  const bool is_online = policy_.price == Price::kDirect || policy_.price == Price::kThroughDead;
  return in_cost(is_online ? facts_.own_cost[value] : facts_.far_cost[value]);
}

void Victims::look_at_group(int value, double& sum) {
  if (there_[value] || group_of_[value] < 0) return;
  const int group = root(group_of_[value]);
  if (std::find(seen_groups_.begin(), seen_groups_.end(), group) != seen_groups_.end()) return;
  if (seen_groups_.size() < 64) seen_groups_.push_back(group);
  sum += std::max(0.0, group_cost_[group]);
}

double Victims::neighbours(int value) {
  double sum = 0;
  seen_groups_.clear();
  visit_neighbours(value, [&](int other, double dead) {
    ++work;
    sum += dead;
    look_at_group(other, sum);
  });
  return sum;
}

double Victims::ancestors(int value) {
  double sum = 0;
  ++stamp_;
  open_.assign(1, value);
  for (int left = kMostAncestors; !open_.empty() && left > 0; --left) {
    const int here = open_.back();
    open_.pop_back();
    for (const int other : facts_.parents[here]) {
      ++work;
      if (mark_[other] == stamp_ || there_[other] || stored_[other]) continue;
      mark_[other] = stamp_;
      sum += in_cost(facts_.own_cost[other]);
      open_.push_back(other);
    }
  }
  return sum;
}

double Victims::price_again(int value) {
  if (!may_drop(value)) return kInfinite;
  switch (policy_.price) {
    case Price::kNothing:
      return 1;
    case Price::kOwn:
      return own_price(value);
    case Price::kAncestors:
      return in_cost(facts_.own_cost[value]) + ancestors(value);
    case Price::kNeighbours:
    case Price::kThroughDead:
    case Price::kDirect:
      return own_price(value) + neighbours(value);
  }
  return 0;
}

std::uint64_t Victims::transfer(int value) const {
  return static_cast<std::uint64_t>(in_cost(facts_.bytes(value)) / policy_.spill_bytes_per_cost) + 1;
}

// The link is a resource: what a store makes the run wait for now, and a part of the load later.
double Victims::price_stored(int value) const {
  if (!may_spill(value)) return kInfinite;
  const std::uint64_t length = transfer(value), done = std::max(link_free_, touched_[value]) + length;
  const double wait = stored_[value] || done <= now ? 0 : in_cost(done - now);
  return wait + policy_.spill_discount * in_cost(length);
}

std::uint64_t Victims::use_link(std::uint64_t ready, std::uint64_t length) {
  link_free_ = std::max(link_free_, ready) + length;
  const std::uint64_t wait = link_free_ > now ? link_free_ - now : 0;
  now += wait;
  return wait;
}

bool Victims::prefers_store(int value) { return !is_dead(value) && price_stored(value) < price_again(value); }

std::uint64_t Victims::store(int value) {
  stored_[value] = 1;
  return use_link(touched_[value], transfer(value));
}

std::uint64_t Victims::load(int value) {
  return use_link(now > policy_.load_ahead ? now - policy_.load_ahead : 0, transfer(value));
}

double Victims::rest(int value) {
  if (!policy_.knows_future) return std::max(1.0, in_cost(now - touched_[value]));
  int next = next_read(value);
  if (next == kNever)
    for (const int child : facts_.children[value])
      if (!there_[child]) next = std::min(next, next_read(child));
  if (next == kNever) {
    if (facts_.last_held[value] < kNever) return kInfinite;
    next = facts_.step_count();
  }
  return std::max(1.0, in_cost(facts_.time[next] - facts_.time[at]));
}

double Victims::score(int value) {
  const double bytes = in_cost(facts_.bytes(value)), time = rest(value);
  if (policy_.price == Price::kNothing) return 1 / time;
  double price = std::min(price_again(value), price_stored(value));
  if (!policy_.weights.empty()) price *= policy_.weights[value];
  double factor = 1;
  if (policy_.rest_quarters == 1) factor = std::sqrt(std::sqrt(time));
  if (policy_.rest_quarters == 2) factor = std::sqrt(time);
  if (policy_.rest_quarters == 4) factor = time;
  return price / (bytes * factor);
}

Victims::Rank Victims::rank(int value) {
  ++work;
  Rank rank{.score = score(value), .value = value, .version = version_[value]};
  constexpr int kGradientLevel = 1000, kWantedLevel = 2000;
  if (wanted_[value] > 0) rank.level = kWantedLevel;
  if (may_spill(value) || rank.score == 0) return rank;
  if (policy_.keeps_gradients && facts_.makes_gradient(value)) rank.level += kGradientLevel;
  if (policy_.cap <= 0) return rank;
  const double group = own_price(value) + neighbours(value);
  for (double cap = policy_.cap; group > cap; cap *= 2) ++rank.level;
  return rank;
}

// Puts a value among those to choose from, or renews its rank.
void Victims::rank_again(int value) {
  if (!policy_.knows_future || position_[value] < 0 || pins_[value] > 0) return;
  if (!may_drop(value) && !may_spill(value)) return;  // Until it has been read.
  ++version_[value];
  heap_.push_back(rank(value));
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

int Victims::pick_by_scan() {
  Rank best{.level = std::numeric_limits<int>::max()};
  for (const int value : candidates_) {
    if (pins_[value] > 0) continue;
    if (facts_.is_free[value] && is_dead(value)) return value;
    if (!may_drop(value) && !may_spill(value)) continue;
    if (const Rank each = rank(value); best > each) best = each;
  }
  return best.value;
}

int Victims::pick_by_heap() {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Rank top = heap_.back();
    heap_.pop_back();
    if (top.version != version_[top.value] || pins_[top.value] > 0) continue;  // It gets a rank when it is unpinned.
    const Rank now_ranked = rank(top.value);
    heap_.push_back(now_ranked);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    if (!(now_ranked > top)) return top.value;
  }
  return StepProgram::kNone;
}

bool Victims::may_drop_from(int value, int from) {
  const int here = std::exchange(at, from);
  const bool may = may_drop(value);
  at = here;
  return may;
}

bool Victims::goes_before(int value, int other, int from) {
  const int here = std::exchange(at, from);
  const Rank later = rank(value);
  at = here;
  return rank(other) > later;
}

int Victims::pick() { return policy_.knows_future ? pick_by_heap() : pick_by_scan(); }

}  // namespace plimsoll::internal
