#include "plimsoll/plan/recompute.h"

#include <algorithm>
#include <limits>

#include "plimsoll/plan/internal/recompute_search.h"
#include "plimsoll/plan/internal/rehearsal.h"

namespace plimsoll::internal {

double StepSchedule::cost_factor() const {
  if (base_cost == 0) return 1;
  return (static_cast<double>(base_cost) + static_cast<double>(extra_cost())) / static_cast<double>(base_cost);
}

namespace {

// About 50 ms for 400 steps, and less than a second for 10,000.
std::uint64_t default_work(const StepProgram& program) {
  return 200'000 + std::min<std::uint64_t>(3'000 * program.steps.size(), 30'000'000);
}

// With spilling the better of with and without: being allowed to store never makes a step slower.
StepSchedule cheapest(const StepFacts& facts, std::size_t limit, const RecomputeOptions& options,
                      SearchMemory& memory) {
  StepSchedule found = RecomputeSearch(facts, limit, options, memory).run();
  if (options.spill_bytes_per_cost <= 0 || (found.completed && found.extra_cost() == 0)) return found;
  RecomputeOptions without = options;
  without.spill_bytes_per_cost = 0;
  SearchMemory fresh;
  StepSchedule other = RecomputeSearch(facts, limit, without, fresh).run();
  const std::uint64_t work = found.work + other.work;
  if (other.completed && (!found.completed || other.extra_cost() < found.extra_cost())) {
    found = std::move(other);
    found.lower_bound = 0;  // It holds for schedules that do not spill.
  }
  found.work = work;
  return found;
}

}  // namespace

struct RecomputePlanner::State {
  explicit State(const StepProgram& program)
      : facts(program), may_spill(std::any_of(program.values.begin(), program.values.end(), [](const auto& value) {
          return value.may_spill;
        })) {}
  StepFacts facts;
  const bool may_spill;  // Any of its values.
  SearchMemory memory;
};

RecomputePlanner::RecomputePlanner(const StepProgram& program) {
  check_program(program);
  state_ = std::make_unique<State>(program);
}
RecomputePlanner::~RecomputePlanner() = default;

StepSchedule RecomputePlanner::within(std::size_t limit, const RecomputeOptions& options) {
  RecomputeOptions bounded = options;
  if (!state_->may_spill) bounded.spill_bytes_per_cost = 0;
  if (bounded.work == 0) bounded.work = default_work(state_->facts.program);
  return cheapest(state_->facts, limit, bounded, state_->memory);
}

StepSchedule recompute(const StepProgram& program, std::size_t limit, const RecomputeOptions& options) {
  return RecomputePlanner(program).within(limit, options);
}

StepSchedule recompute_online(const StepProgram& program, std::size_t limit, OnlinePolicy policy,
                              const RecomputeOptions& options) {
  check_program(program);
  const StepFacts facts(program);
  EvictionPolicy eviction{.rest_quarters = 4, .knows_future = false, .robs_waiting = false, .in_order = false};
  eviction.spill_bytes_per_cost = options.spill_bytes_per_cost;
  const double base = static_cast<double>(facts.time.back());
  eviction.most_extra_cost = static_cast<std::uint64_t>(std::max(0.0, (options.most_cost_factor - 1) * base));
  eviction.price = policy == OnlinePolicy::kOnline ? Price::kThroughDead
                   : policy == OnlinePolicy::kDtr  ? Price::kDirect
                                                   : Price::kNothing;
  eviction.keeps_gradients = policy == OnlinePolicy::kOnline;
  if (policy == OnlinePolicy::kOnline)
    eviction.cap = options.group_cost > 0 ? static_cast<double>(options.group_cost) : base / 64;
  Rehearsal rehearsal(facts, limit, eviction);
  rehearsal.run();
  StepSchedule schedule = rehearsal.schedule();
  schedule.work = rehearsal.work();
  if (!schedule.completed) schedule.entries.clear();
  return schedule;
}

std::size_t Front::smallest_peak() const {
  return schedules.empty() ? std::numeric_limits<std::size_t>::max() : schedules.back().peak;
}

const StepSchedule* Front::cheapest_within(std::size_t limit) const {
  for (const StepSchedule& schedule : schedules)
    if (schedule.peak <= limit) return &schedule;
  return nullptr;
}

Front recompute_front(const StepProgram& program, const RecomputeOptions& options,
                      const std::function<bool(const StepSchedule&)>& accept) {
  constexpr std::size_t kSteps = 64;
  const Floors floors = floors_of(program);
  const StepFacts facts(program);
  const std::size_t floor = options.spill_bytes_per_cost > 0 ? floors.spill.bytes : floors.recompute.bytes;
  const std::size_t step = (floors.natural_peak - std::min(floor, floors.natural_peak)) / kSteps + 1;
  RecomputeOptions bounded = options;
  bounded.work = (options.work == 0 ? 4 * default_work(program) : options.work) / kSteps;
  Front front;
  SearchMemory memory;
  std::size_t limit = floors.natural_peak;
  for (std::size_t k = 0; k <= kSteps; ++k) {
    StepSchedule schedule = cheapest(facts, limit, bounded, memory);
    if (schedule.completed && (!accept || accept(schedule))) {
      while (!front.schedules.empty() && front.schedules.back().extra_cost() >= schedule.extra_cost())
        front.schedules.pop_back();
      front.schedules.push_back(std::move(schedule));
      limit = std::min(limit, front.schedules.back().peak);
    }
    if (limit <= floor) break;
    limit -= std::min(step, limit - floor);
  }
  return front;
}

}  // namespace plimsoll::internal
