#include "plimsoll/plan/internal/recompute_search.h"

#include <algorithm>
#include <limits>

#include "plimsoll/plan/internal/transfers.h"

namespace plimsoll::internal {
namespace {

// The same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 12345) {}
  double next() {  // In [-1, 1).
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) / 4503599627370496.0 - 1;  // 2^52
  }

 private:
  std::uint64_t state_;
};

constexpr double kDear = 1000;
constexpr std::size_t kMostWinners = 6;
constexpr std::uint64_t kMostWork = 30'000'000;  // For an attempt while there is no schedule yet.

}  // namespace

RecomputeSearch::RecomputeSearch(const StepFacts& facts, std::size_t limit, const RecomputeOptions& options,
                                 SearchMemory& memory)
    : facts_(facts),
      limit_(limit),
      options_(options),
      memory_(memory),
      bound_(options.spill_bytes_per_cost > 0 ? 0 : bound_of(facts, limit)) {
  most_cost_factor_ = std::min(2.0, options.most_cost_factor);
  best_.base_cost = facts.time.back();
  best_.lower_bound = bound_;
}

std::uint64_t RecomputeSearch::most_extra_cost() const {
  if (!best_.completed) {
    const double most = (most_cost_factor_ - 1) * static_cast<double>(facts_.time.back());
    return static_cast<std::uint64_t>(std::max(0.0, most));
  }
  return best_.extra_cost() + (spills() ? best_.extra_cost() / 2 : 0);  // Waiting is only guessed there.
}

std::optional<std::uint64_t> RecomputeSearch::attempt(const EvictionPolicy& tried, std::uint64_t most) {
  EvictionPolicy policy = tried;
  policy.most_extra_cost = most;
  const std::uint64_t at_first = options_.attempt_work > 0 ? options_.attempt_work : kMostWork;
  policy.most_work =
      best_.completed ? options_.work - std::min(work_, options_.work) : std::max(options_.work, at_first);
  policy.load_ahead = facts_.time.back() / 50;
  Rehearsal rehearsal(facts_, limit_, policy);
  const bool completed = rehearsal.run();
  work_ += rehearsal.work() + facts_.program.steps.size();
  if (options_.progress)
    options_.progress(std::min(1.0, static_cast<double>(work_) / static_cast<double>(options_.work)));
  if (!completed) return std::nullopt;
  StepSchedule schedule = rehearsal.schedule();
  if (policy.spill_bytes_per_cost > 0) settle_transfers(facts_, limit_, options_.spill_bytes_per_cost, schedule);
  const std::uint64_t cost = schedule.extra_cost();
  if (best_.completed && cost >= best_.extra_cost()) return cost;
  schedule.lower_bound = bound_;
  best_ = std::move(schedule);
  best_policy_ = tried;
  return cost;
}

// Without spilling, these few find on steps of real models what the whole portfolio does; the last two come furthest
// down. Those with segments are the cheapest.
std::vector<RecomputeSearch::Choice> RecomputeSearch::leaders() const {
  if (spills()) return {};
  const auto segments = [](int count, int quarters, bool in_order) {
    return Choice{.price = Price::kOwn, .rest_quarters = quarters, .cap = 0, .in_order = in_order, .segments = count};
  };
  const auto plain = [](Price price, int quarters, double cap, bool in_order) {
    return Choice{.price = price, .rest_quarters = quarters, .cap = cap, .in_order = in_order};
  };
  return {segments(3, 2, true),
          segments(2, 0, true),
          segments(4, 2, false),
          plain(Price::kOwn, 1, 0, false),
          segments(24, 2, false),
          segments(2, 2, true),
          segments(5, 0, true),
          segments(8, 0, false),
          segments(10, 2, true),
          segments(16, 0, false),
          plain(Price::kOwn, 4, 1.0 / 64, false),
          segments(4, 4, false),
          plain(Price::kNeighbours, 4, 0, false),
          plain(Price::kNeighbours, 2, 0, false),
          plain(Price::kNeighbours, 1, 1.0 / 16, false),
          plain(Price::kAncestors, 1, 0, true),
          plain(Price::kNeighbours, 4, 1.0 / 256, false),
          plain(Price::kNeighbours, 2, 1.0 / 64, false)};
}

// Those that win most often first: large programs have work for a few only. Last come segments of the forward steps.
std::vector<RecomputeSearch::Choice> RecomputeSearch::portfolio() const {
  std::vector<Choice> kinds = {{Price::kNeighbours, 2, 0},
                               {Price::kAncestors, 2, 0},
                               {Price::kOwn, 4, 1.0 / 16},
                               {Price::kNeighbours, 4, 1.0 / 64},
                               {Price::kNeighbours, 0, 1.0 / 64},
                               {Price::kAncestors, 1, 0},
                               {Price::kOwn, 2, 0}};
  for (const double cap : {0.0, 1.0 / 64, 1.0 / 16, 1.0 / 256, 1.0 / 4})
    for (const int quarters : {2, 4, 0, 1})
      for (const Price price : {Price::kNeighbours, Price::kOwn, Price::kAncestors})
        if (price != Price::kAncestors || cap == 0) kinds.push_back({price, quarters, cap});
  // With spilling: the part of a load's time that is taken to cost something.
  std::vector<double> discounts = {1};
  if (spills()) discounts = {1, 0.3, 0.1, 0.02};
  std::vector<Choice> choices;
  for (Choice each : kinds)
    for (const bool in_order : {true, false})
      for (const double discount : discounts) {
        each.in_order = in_order;
        each.discount = discount;
        choices.push_back(each);
      }
  for (const int segments : {2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48})
    for (const int quarters : {4, 2, 0})
      choices.push_back({.price = Price::kOwn, .rest_quarters = quarters, .cap = 0, .segments = segments});
  return choices;
}

EvictionPolicy RecomputeSearch::policy_of(const Choice& choice) const {
  EvictionPolicy policy{.price = choice.price, .rest_quarters = choice.rest_quarters};
  policy.spill_bytes_per_cost = options_.spill_bytes_per_cost;
  policy.in_order = choice.in_order;
  if (choice.segments > 0) {
    policy.weights = segment_weights(choice.segments);
    return policy;
  }
  policy.cap = choice.cap * static_cast<double>(facts_.time.back());
  policy.spill_discount = choice.discount;
  return policy;
}

std::size_t RecomputeSearch::try_portfolio(std::size_t first) {
  const std::vector<Choice> choices = portfolio();
  std::size_t tried = 0;
  for (; tried < choices.size() && !is_done(); ++tried) attempt(policy_of(choices[(first + tried) % choices.size()]));
  return tried;
}

// Values that cross a cut of the forward steps are expensive: classic checkpoints.
std::vector<double> RecomputeSearch::segment_weights(int segments) const {
  std::vector<int> forward;
  for (int step = 0; step < facts_.step_count(); ++step)
    if (const StepProgram::Step& s = facts_.program.steps[step]; s.may_repeat && !s.is_gradient)
      forward.push_back(step);
  const int count = static_cast<int>(forward.size());
  std::vector<int> place(facts_.program.steps.size(), -1);
  std::uint64_t total = 0;
  for (int k = 0; k < count; ++k) {
    place[forward[k]] = k;
    total += facts_.program.steps[forward[k]].cost;
  }
  struct Crossing {
    int value, from, to;  // Made at `from`, read by a forward step at `to` for the last time.
  };
  std::vector<Crossing> crossings;
  std::vector<std::size_t> across(count + 1, 0);
  for (int value = 0; value < facts_.value_count(); ++value) {
    if (!facts_.is_free[value] || place[facts_.maker[value]] < 0) continue;
    Crossing crossing{value, place[facts_.maker[value]], -1};
    for (const int reader : facts_.reads_of(value)) crossing.to = std::max(crossing.to, place[reader]);
    if (crossing.to <= crossing.from) continue;
    crossings.push_back(crossing);
    across[crossing.from] += facts_.bytes(value);
    across[crossing.to] -= facts_.bytes(value);
  }
  for (int k = 1; k <= count; ++k) across[k] += across[k - 1];
  std::vector<int> cuts;
  std::uint64_t passed = 0;
  for (int k = 0, next = 1; k < count && next < segments; ++k) {
    passed += facts_.program.steps[forward[k]].cost;
    if (passed < total / segments * next) continue;
    ++next;
    const int width = std::max(1, count / (4 * segments));  // The best place nearby: the fewest bytes across.
    const auto begin = across.begin() + std::max(0, k - width), end = across.begin() + std::min(count, k + width + 1);
    cuts.push_back(static_cast<int>(std::min_element(begin, end) - across.begin()));
  }
  std::vector<double> weights(facts_.program.values.size(), 1);
  std::sort(cuts.begin(), cuts.end());
  for (const Crossing& each : crossings) {
    const auto cut = std::lower_bound(cuts.begin(), cuts.end(), each.from);
    if (cut != cuts.end() && *cut < each.to) weights[each.value] = kDear;
  }
  return weights;
}

// Two climbers, from the best policy and from the plain one: make a few values more or less expensive, or all of them
// slightly.
void RecomputeSearch::try_neighbourhood() {
  if (!best_.completed) return;
  std::vector<int> droppable;
  for (int value = 0; value < facts_.value_count(); ++value)
    if (facts_.is_free[value] && facts_.bytes(value) > 0 && !facts_.makes_gradient(value)) droppable.push_back(value);
  if (droppable.empty()) return;
  struct Climber {
    EvictionPolicy policy;
    std::uint64_t cost;
  };
  Climber climbers[] = {{best_policy_, best_.extra_cost()},
                        {{.spill_bytes_per_cost = options_.spill_bytes_per_cost}, 2 * best_.extra_cost()}};
  for (int round = 0; round < 4000 && !is_done(); ++round) {
    Climber& climber = climbers[round % 2];
    EvictionPolicy policy = climber.policy;
    if (policy.weights.empty()) policy.weights.assign(facts_.program.values.size(), 1);
    Random random(static_cast<std::uint64_t>(round) * 77 + 5);
    if (round % 6 < 2) {
      const double noise = 0.05 * (1 + round % 8);
      for (double& weight : policy.weights) weight *= 1 + noise * random.next();
    } else {
      for (int k = 0; k <= round / 2 % 4; ++k) {
        const auto at = static_cast<std::size_t>((random.next() + 1) / 2 * static_cast<double>(droppable.size()));
        policy.weights[droppable[at]] *= random.next() < 0 ? 16 : 1.0 / 16;
      }
    }
    const std::optional<std::uint64_t> cost = attempt(policy, climber.cost);
    if (cost && *cost < climber.cost) climber = {std::move(policy), *cost};
  }
}

// Runs that thrash were given up early; now there are no others. First come those that reach furthest down.
void RecomputeSearch::try_expensive(std::size_t first) {
  const Choice kLean[] = {{.price = Price::kNeighbours, .rest_quarters = 2, .cap = 1.0 / 64, .in_order = false},
                          {.price = Price::kAncestors, .rest_quarters = 4, .cap = 1.0 / 64, .in_order = false},
                          {.price = Price::kNeighbours, .rest_quarters = 4, .cap = 0, .in_order = false}};
  work_ = 0;
  most_cost_factor_ = std::min(4.0, options_.most_cost_factor);
  for (const Choice& choice : kLean)
    if (!best_.completed) attempt(policy_of(choice));
  most_cost_factor_ = options_.most_cost_factor;
  if (!best_.completed) attempt(policy_of(kLean[2]));
  try_portfolio(first);
}

StepSchedule RecomputeSearch::run() {
  if (bound_ == std::numeric_limits<std::uint64_t>::max()) return std::move(best_);  // Below the floor.
  attempt({.spill_bytes_per_cost = options_.spill_bytes_per_cost});
  if (best_.completed && best_.evictions == 0) return std::move(best_);
  for (std::size_t k = 0; k < memory_.winners.size() && !is_done(); ++k) {
    EvictionPolicy policy = memory_.winners[k];
    policy.spill_bytes_per_cost = options_.spill_bytes_per_cost;
    attempt(policy);
  }
  for (const Choice& choice : leaders())
    if (!is_done()) attempt(policy_of(choice));
  const std::size_t first = memory_.tried;
  memory_.tried += try_portfolio(first);
  if (!best_.completed) try_expensive(first);
  try_neighbourhood();
  best_.work = work_;
  if (best_.completed) {
    memory_.winners.insert(memory_.winners.begin(), best_policy_);
    if (memory_.winners.size() > kMostWinners) memory_.winners.pop_back();
  }
  return std::move(best_);
}

}  // namespace plimsoll::internal
