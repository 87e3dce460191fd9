#include "plimsoll/graph/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/json.h"
#include "plimsoll/graph/borrowed_variables.h"
#include "plimsoll/graph/program_family.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/graph/program_variant.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/memory/trace/trace_recording.h"
#include "plimsoll/ops/thrifty_op.h"

namespace plimsoll::internal {
namespace {

ProgramTables natural_tables(const Rewritten& rewritten, const Passes& passes, bool inside) {
  StepList list = list_fused_steps(rewritten, passes, inside);
  find_lifetimes(list);
  place_results(list);
  if (passes.in_place) share_bytes(list);
  const BufferPlaces places = place_buffers(list);
  return emit(std::move(list), places);
}

}  // namespace

std::exception_ptr& pending_error() noexcept {
  thread_local std::exception_ptr error;
  return error;
}

Program::Program(Rewritten rewritten, const Passes& passes, bool inside, double spill_bytes_per_cost)
    : rewritten_(std::move(rewritten)),
      passes_(passes),
      inside_(inside),
      spill_bytes_per_cost_(spill_bytes_per_cost),
      natural_(std::make_unique<ProgramVariant>(natural_tables(rewritten_, passes_, inside_))) {
  most_bytes_ = most_bytes();
}
Program::~Program() = default;

void Program::run(const ProgramCall& call) {
  if (call.own || ThreadMemory::current().budget) [[unlikely]]
    run_charged(call);
  else
    run_point(0, call);
}

// Points, and whose members they are; the first is natural and has none.
struct Program::Front {
  std::vector<ProgramPoint> points;
  std::vector<std::pair<ProgramFamily*, std::size_t>> members;
  std::vector<std::unique_ptr<ProgramFamily>> families;  // Of this kind of eviction, by thrift; the first has none.
  mutable std::atomic<std::uint64_t> told_key{0};  // Of the recording and the point that a trace was last told of.

  // Of a point, what it takes with all variables that may be parked.
  std::size_t bytes_with_variables(std::size_t point) const {
    return points[point].bytes + families[0]->parked_bytes() - points[point].parked_bytes;
  }
  void tell_trace(std::size_t point, std::string_view where) const;
};

// Once for each recording and point: docs/trace_format.md.
void Program::Front::tell_trace(std::size_t point, std::string_view where) const {
  const std::uint64_t key = Recording::instance().number.load(std::memory_order_relaxed) * 4096 + point;
  if (told_key.exchange(key, std::memory_order_relaxed) == key) return;
  constexpr std::size_t kMostPoints = 16;
  const ProgramFamily::Actions actions = members[point].first->actions(members[point].second);
  std::string larger;
  const std::size_t step = 1 + point / kMostPoints;
  for (std::size_t i = point; i > 0;) {
    i -= std::min(i, step);
    larger += fmt::format("{}[{},{:.3f}]", larger.empty() ? "" : ",", bytes_with_variables(i), points[i].slowdown);
  }
  trace_text(fmt::format(R"(@recompute {{"where":{},"natural_bytes":{},"now":[{},{:.3f}],"drops":{},"repeats":{},)"
                         R"("stores":{},"loads":{},"stored_bytes":{},"larger":[{}]}})",
                         json_text(nlohmann::json(std::string(where))), bytes_with_variables(0),
                         bytes_with_variables(point), points[point].slowdown, actions.drops, actions.repeats,
                         actions.stores, actions.loads, actions.stored_bytes, larger));
}

void Program::run_point(std::size_t point, const ProgramCall& call) {
  if (call.recomputed_cost_fraction) *call.recomputed_cost_fraction = 0;
  if (point == 0) return natural_->run(call);
  const Front& front = front_of(call.eviction());
  const auto [family, member] = front.members[point];
  if (trace_is_recording()) [[unlikely]]
    front.tell_trace(point, call.where == "run" ? "step" : call.where);
  if (call.recomputed_cost_fraction) *call.recomputed_cost_fraction = family->repeated_fraction(member);
  family->variant(member).run(call);
}

void Program::run_inside(std::span<const ConstTensorView> feeds, std::span<const TensorView> results,
                         std::byte* extent) {
  natural_->run_inside(feeds, results, extent);
}

// Leaner plans have the same steps, some of them repeatedly.
std::size_t Program::borrowed_bytes(const std::vector<bool>& is_borrowed) const {
  const ProgramTables& t = tables();
  for (std::uint32_t i = 0; i < t.variables.size(); ++i) {
    const auto is_result = [&](const ProgramTables::Result& result) {
      return result.kind == ProgramTables::Result::Kind::kVariable && result.number == i;
    };
    if (is_borrowed[i] && (t.variables[i].writes || std::any_of(t.fetches.begin(), t.fetches.end(), is_result)))
      throw Unsupported("run: a variable that is elsewhere is changed by the program, or is one of its results");
  }
  std::size_t most = 0;
  for (const ProgramTables::Step& step : t.steps) {
    std::size_t bytes = 0;
    t.visit_read_variables(step, [&](std::uint32_t variable, std::size_t size) {
      if (is_borrowed[variable]) bytes += round_up(size, kBorrowedAlignment);
    });
    most = std::max(most, bytes);
  }
  return most;
}

const ProgramTables& Program::tables() const noexcept { return natural_->tables(); }
std::size_t Program::block_bytes() const noexcept { return tables().block_bytes(); }

namespace {

constexpr std::size_t kMostThriftySteps = 1000;  // Of a program for which each level of thrift is looked at.

struct Candidate {
  ProgramPoint point;
  std::pair<ProgramFamily*, std::size_t> member;
};

}  // namespace

// With spilling all kinds of members compete: a leaner one is kept only where it is not dearer.
const Program::Front& Program::front_of(Eviction eviction) const {
  const auto index = static_cast<std::size_t>(eviction);
  if (const Front* const made = fronts_[index].load(std::memory_order_acquire)) return *made;
  const Front* const lower = index > 0 ? &front_of(static_cast<Eviction>(index - 1)) : nullptr;
  const std::lock_guard lock(mutex_);
  if (owned_fronts_[index]) return *owned_fronts_[index];
  auto front = std::make_unique<Front>();
  const auto add_family = [&](int thrift) {
    front->families.push_back(std::make_unique<ProgramFamily>(rewritten_, passes_, inside_, tables(), eviction,
                                                              spill_bytes_per_cost_, thrift));
  };
  add_family(0);
  if (const int levels = front->families[0]->levels_of_thrift(); levels > 0) {
    const bool is_coarse =
        levels == 1 || eviction != Eviction::kRecompute || front->families[0]->num_steps() > kMostThriftySteps;
    for (int thrift = is_coarse ? ThriftyOp::kMostThrift : 1; thrift <= ThriftyOp::kMostThrift; ++thrift)
      add_family(thrift);
  }
  std::vector<Candidate> candidates;
  for (std::size_t i = 1; lower && i < lower->points.size(); ++i)
    candidates.push_back({lower->points[i], lower->members[i]});
  for (const std::unique_ptr<ProgramFamily>& own : front->families)
    for (std::size_t i = 1; i < own->points().size(); ++i)
      candidates.push_back({{own->points()[i].bytes, own->points()[i].slowdown, own->parked_bytes()}, {own.get(), i}});
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.point.slowdown != b.point.slowdown ? a.point.slowdown < b.point.slowdown : a.point.net() < b.point.net();
  });
  front->points.push_back({.bytes = block_bytes()});
  front->members.emplace_back(nullptr, 0);
  for (const Candidate& candidate : candidates) {
    if (candidate.point.net() >= front->points.back().net()) continue;
    front->points.push_back(candidate.point);
    front->members.push_back(candidate.member);
  }
  owned_fronts_[index] = std::move(front);
  fronts_[index].store(owned_fronts_[index].get(), std::memory_order_release);
  return *owned_fronts_[index];
}

const std::vector<ProgramPoint>& Program::points(Eviction eviction) const { return front_of(eviction).points; }
const std::vector<ProgramPoint>& Program::points_for(const ProgramCall& call) const { return points(call.eviction()); }
std::vector<BudgetPoint> Program::front(Eviction eviction) const {
  std::vector<BudgetPoint> front;
  for (const ProgramPoint& point : points(eviction)) front.push_back({point.bytes, point.slowdown});
  return front;
}
const std::vector<std::uint32_t>& Program::parked_variables() const {
  return front_of(Eviction::kSpillVariables).families[0]->parked();
}

bool Program::is_too_long_to_recompute() const { return front_of(Eviction::kRecompute).families[0]->is_too_long(); }

ProgramPoint Program::smallest_point(double max_slowdown, Eviction eviction) const {
  ProgramPoint smallest{.bytes = block_bytes()};
  for (const ProgramPoint& point : points(eviction))
    if (point.slowdown <= max_slowdown && point.net() < smallest.net()) smallest = point;
  return smallest;
}

// Of this kind and those before it, the one with the lowest floor.
const ProgramFamily& Program::floor_family(Eviction eviction) const {
  const auto net = [](const ProgramFamily& family) {
    return static_cast<std::ptrdiff_t>(family.floor_bytes()) - static_cast<std::ptrdiff_t>(family.parked_bytes());
  };
  const ProgramFamily* lowest =
      eviction == Eviction::kRecompute ? nullptr : &floor_family(static_cast<Eviction>(static_cast<int>(eviction) - 1));
  for (const std::unique_ptr<ProgramFamily>& own : front_of(eviction).families)
    if (!lowest || net(*own) < net(*lowest)) lowest = own.get();
  return *lowest;
}
ProgramPoint Program::floor(Eviction eviction) const {
  const ProgramFamily& family = floor_family(eviction);
  return {.bytes = family.floor_bytes(), .parked_bytes = family.parked_bytes()};
}
std::string Program::floor_step(Eviction eviction) const { return floor_family(eviction).floor_step(); }

const MemoryPlan& Program::memory_plan_of(std::size_t point, Eviction eviction) const {
  if (point == 0) return memory_plan();
  const auto [family, member] = front_of(eviction).members[point];
  return family->variant(member).tables().plan;
}

MemoryPlan Program::memory_plan_with_front(Eviction eviction) const {
  MemoryPlan plan = memory_plan();
  plan.front = front(eviction);
  plan.smallest_bytes = plan.front.back().bytes;
  plan.floor_bytes = floor_bytes(eviction);
  plan.floor_step = floor_step(eviction);
  return plan;
}

void Program::release_slots() const noexcept {
  for (const std::atomic<const Front*>& made : fronts_)
    if (const Front* const front = made.load(std::memory_order_acquire))
      for (const auto& family : front->families) family->release_slots();
}

std::size_t Program::bytes() const noexcept {
  std::size_t total = sizeof(Program) + tables().bytes() + graph().nodes().size() * sizeof(Node);
  for (const Storage* constant : tables().constants) total += constant->bytes();
  for (const std::atomic<const Front*>& made : fronts_)
    if (const Front* const front = made.load(std::memory_order_acquire))
      for (const auto& family : front->families) total += family->bytes();
  return total;
}

}  // namespace plimsoll::internal
