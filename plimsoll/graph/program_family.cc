#include "plimsoll/graph/program_family.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/graph/program_recompute.h"
#include "plimsoll/memory/chunk.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kFewestLimits = 8, kMostLimits = 24;  // Tried between the natural peak and the floor.
constexpr std::size_t kHalvings = 4;                        // Of the last gap, for the leanest.
constexpr std::size_t kFailures = 2;                        // In a row: leaner limits are not tried.
constexpr std::uint64_t kLeanWork = 4;                      // Times that of others, in programs of at most
constexpr std::size_t kMostLeanSteps = 800;                 // so many steps.
constexpr std::size_t kMostSteps = 20'000;                  // Of a program that leaner plans are looked for.
constexpr std::uint64_t kPackNodes = 500;                   // Placements tried for each.
constexpr std::uint64_t kLeanPackWork = 4'000'000;          // Placements tried for the leanest times its steps.

std::string name_of(const StepList& list, int step) {
  if (step < 0) return "nothing";
  const StepList::Step& made = list.steps[static_cast<std::size_t>(step)];
  const std::string_view scope = list.graph->node(made.node).scope;
  return scope.empty() ? std::string(made.op->name()) : fmt::format("{}/{}", scope, made.op->name());
}

StepProgram spilling_program(const StepList& list, const Passes& passes) {
  StepProgram program = step_program_of(list, passes);
  allow_spilling(list, program);
  return program;
}

Changes changes_with(Eviction eviction) {
  switch (eviction) {
    case Eviction::kRecompute:
      return Changes::kEarly;
    case Eviction::kSpill:
      return Changes::kLate;
    case Eviction::kSpillVariables:
      return Changes::kParked;
  }
  return Changes::kEarly;
}

std::size_t limits_for(std::size_t steps) {
  return std::clamp<std::size_t>(60'000 / std::max<std::size_t>(steps, 1), kFewestLimits, kMostLimits);
}

// For one limit: about 20 ns each. More gains next to nothing, except for lean schedules that spill.
std::uint64_t schedule_work(std::size_t steps, bool is_lean_spill) {
  const std::uint64_t work = 12'000 + std::min<std::uint64_t>(125 * steps, 1'000'000);
  return is_lean_spill && steps <= kMostLeanSteps ? kLeanWork * work : work;
}

}  // namespace

// Looks for schedules, limit by limit, and packs them.
class ProgramFamily::Search {
 public:
  Search(const ProgramFamily& family, std::size_t natural_bytes, std::size_t floor)
      : family_(family), planner_(family.program_), natural_bytes_(natural_bytes), floor_(floor) {}

  struct Found {
    StepSchedule schedule;
    BufferPlaces places;
    std::size_t bytes = 0;  // Of the extents.
  };

  std::vector<Found> run() {
    std::size_t limit = natural_bytes_, failed = floor_;
    const std::size_t limits = limits_for(family_.program_.steps.size());
    const std::size_t step = (natural_bytes_ - floor_) / limits + 1;
    for (std::size_t k = 0, failures = 0; k < limits && failures < kFailures && limit > floor_; ++k) {
      limit -= std::min(step, limit - floor_);
      if (try_limit(limit)) {
        failures = 0;
        failed = floor_;
        limit = std::min(limit, found_.back().schedule.peak);
      } else if (failures++ == 0) {
        failed = limit;
      }
    }
    if (found_.empty()) return {};
    std::size_t good = leanest().schedule.peak;
    for (std::size_t k = 0; k < kHalvings && good > failed + 1; ++k) {
      const std::size_t middle = failed + (good - failed) / 2;
      if (try_limit(middle))
        good = std::min(middle, leanest().schedule.peak);
      else
        failed = middle;
    }
    pack_leanest();
    return not_dominated();
  }

 private:
  bool try_limit(std::size_t limit) {
    const bool is_lean_spill = family_.spills_ && limit < floor_ + (natural_bytes_ - floor_) / 2;
    const std::uint64_t work = schedule_work(family_.program_.steps.size(), is_lean_spill);
    const RecomputeOptions options{.spill_bytes_per_cost = family_.spill_bytes_per_cost_,
                                   .work = work,
                                   .attempt_work = 4 * work,
                                   .most_cost_factor = Program::kMostSlowdown};
    StepSchedule schedule = planner_.within(limit, options);
    if (!schedule.completed) return false;
#ifndef NDEBUG
    PLIMSOLL_CHECK(validate_schedule(family_.program_, schedule, limit).empty());
#endif
    BufferPlaces places = place_buffers(family_.repeated(schedule), {.capacity = limit, .nodes = kPackNodes});
    const std::size_t bytes = places.extent_bytes();
    found_.push_back({std::move(schedule), std::move(places), bytes});
    return true;
  }

  Found& leanest() {
    return *std::min_element(found_.begin(), found_.end(),
                             [](const Found& a, const Found& b) { return a.schedule.peak < b.schedule.peak; });
  }

  // Once more with more work, where it did not come down to the schedule's own peak.
  void pack_leanest() {
    Found& lean = leanest();
    if (lean.bytes <= lean.schedule.peak) return;
    BufferPlaces better =
        place_buffers(family_.repeated(lean.schedule),
                      {.capacity = lean.schedule.peak, .nodes = kLeanPackWork / (lean.schedule.entries.size() + 1)});
    if (better.extent_bytes() >= lean.bytes) return;
    lean.bytes = better.extent_bytes();
    lean.places = std::move(better);
  }

  // Leaner and dearer, one after the other.
  std::vector<Found> not_dominated() {
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      const std::uint64_t x = a.schedule.extra_cost(), y = b.schedule.extra_cost();
      return x != y ? x < y : a.bytes < b.bytes;
    });
    std::vector<Found> kept;
    std::size_t smallest = natural_bytes_;
    for (Found& each : found_) {
      if (each.bytes >= smallest) continue;
      smallest = each.bytes;
      kept.push_back(std::move(each));
    }
    return kept;
  }

  const ProgramFamily& family_;
  RecomputePlanner planner_;
  const std::size_t natural_bytes_, floor_;
  std::vector<Found> found_;
};

ProgramFamily::ProgramFamily(const Rewritten& rewritten, const Passes& passes, bool inside,
                             const ProgramTables& natural, Eviction eviction, double spill_bytes_per_cost, int thrift)
    : passes_(passes),
      spills_(eviction != Eviction::kRecompute),
      spill_bytes_per_cost_(spill_bytes_per_cost),
      list_(thrifty(list_fused_steps(rewritten, passes, inside, changes_with(eviction)), thrift)),
      program_(eviction == Eviction::kRecompute ? step_program_of(list_, passes) : spilling_program(list_, passes)) {
  const std::size_t results = natural.block_bytes() - natural.plan.extent_bytes;
  const Floors floors = floors_of(program_);
  const Floor& floor = eviction == Eviction::kRecompute ? floors.recompute : floors.spill;
  find_parked();
  const std::size_t most = natural.plan.extent_bytes + parked_bytes_;
  points_.push_back({natural.block_bytes() + parked_bytes_, 1});
  floor_bytes_ = std::min(floor.bytes, most) + results;
  floor_step_ = name_of(list_, floor.step);
  if (eviction == Eviction::kSpillVariables && parked_.empty()) return;  // As without.
  if (floor.bytes >= most || is_too_long()) return;
  for (Search::Found& found : Search(*this, most, floor.bytes).run()) {
    points_.push_back({found.bytes + results, base_factor_ * found.schedule.cost_factor()});
    members_.push_back({std::move(found.schedule), std::move(found.places), nullptr});
  }
  // Values that end early can be overwritten where they could not be naturally: such a plan may be below the floor.
  floor_bytes_ = std::min(floor_bytes_, points_.back().bytes);
}

StepList ProgramFamily::thrifty(StepList list, int thrift) {
  const auto cost = [&] {
    double sum = 0;
    for (const StepList::Step& step : list.steps) sum += static_cast<double>(list.cost_of(step));
    return sum;
  };
  const double natural = cost();
  use_thrifty_ops(list, thrift);
  if (natural > 0) base_factor_ = std::max(1.0, cost() / natural);
  return list;
}

void ProgramFamily::find_parked() {
  for (const std::uint32_t root : list_.variable_roots) {
    if (root == StepList::kNone || !list_.roots[root].is_parked) continue;
    parked_.push_back(list_.roots[root].number);
    parked_bytes_ += round_up(list_.roots[root].bytes, kGranularity);
  }
}

ProgramFamily::~ProgramFamily() = default;

bool ProgramFamily::is_too_long() const noexcept { return list_.steps.size() > kMostSteps; }

StepList ProgramFamily::repeated(const StepSchedule& schedule) const {
  StepList list = with_repeats(list_, program_, schedule);
  find_lifetimes(list);
  place_results(list);
  if (passes_.in_place) share_bytes(list);
  return list;
}

ProgramVariant& ProgramFamily::variant(std::size_t point) {
  Member& member = members_[point - 1];
  const std::lock_guard lock(mutex_);
  if (!member.variant)
    member.variant = std::make_unique<ProgramVariant>(emit(repeated(member.schedule), member.places));
  return *member.variant;
}

double ProgramFamily::repeated_fraction(std::size_t point) const noexcept {
  const StepSchedule& schedule = members_[point - 1].schedule;
  const auto base = static_cast<double>(schedule.base_cost), again = static_cast<double>(schedule.again_cost);
  return base > 0 ? 1 - base / base_factor_ / (base + again) : 0;
}

ProgramFamily::Actions ProgramFamily::actions(std::size_t point) const noexcept {
  Actions actions;
  const StepSchedule& schedule = members_[point - 1].schedule;
  actions.stored_bytes = schedule.stored_bytes;
  actions.drops = schedule.evictions;
  for (const StepSchedule::Entry& entry : schedule.entries) {
    actions.repeats += entry.action == Action::kAgain;
    actions.stores += entry.action == Action::kStore;
    actions.loads += entry.action == Action::kLoad;
  }
  return actions;
}

void ProgramFamily::release_slots() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Member& member : members_)
    if (member.variant) member.variant->release_slots();
}

std::size_t ProgramFamily::bytes() const noexcept {
  std::size_t total = sizeof(*this) + list_.values.size() * sizeof(StepList::Value) +
                      list_.roots.size() * sizeof(StepList::Root) +
                      list_.steps.size() * (sizeof(StepList::Step) + sizeof(StepProgram::Step)) +
                      program_.values.size() * sizeof(StepProgram::Value);
  const std::lock_guard lock(mutex_);
  for (const Member& member : members_) {
    total += sizeof(Member) + member.schedule.entries.size() * sizeof(StepSchedule::Entry) +
             (member.places.root_offsets.size() + member.places.scratch_offsets.size()) * sizeof(std::size_t);
    if (member.variant) total += member.variant->tables().bytes();
  }
  return total;
}

}  // namespace plimsoll::internal
