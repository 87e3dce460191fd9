#include "plimsoll/graph/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/json.h"
#include "plimsoll/graph/program_family.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/graph/program_variant.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/memory/trace/trace_recording.h"

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
  std::vector<BudgetPoint> points;
  std::vector<std::pair<ProgramFamily*, std::size_t>> members;
  std::unique_ptr<ProgramFamily> family;           // Of this kind of eviction.
  mutable std::atomic<std::uint64_t> told_key{0};  // Of the recording and the point that a trace was last told of.

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
    larger += fmt::format("{}[{},{:.3f}]", larger.empty() ? "" : ",", points[i].bytes, points[i].slowdown);
  }
  trace_text(fmt::format(R"(@recompute {{"where":{},"natural_bytes":{},"now":[{},{:.3f}],"drops":{},"repeats":{},)"
                         R"("stores":{},"loads":{},"stored_bytes":{},"larger":[{}]}})",
                         json_text(nlohmann::json(std::string(where))), points[0].bytes, points[point].bytes,
                         points[point].slowdown, actions.drops, actions.repeats, actions.stores, actions.loads,
                         actions.stored_bytes, larger));
}

namespace {

Eviction eviction_of(const ProgramCall& call) { return call.spill ? Eviction::kSpill : Eviction::kRecompute; }

}  // namespace

void Program::run_point(std::size_t point, const ProgramCall& call) {
  if (call.recomputed_cost_fraction) *call.recomputed_cost_fraction = 0;
  if (point == 0) return natural_->run(call);
  const Front& front = front_of(eviction_of(call));
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

const ProgramTables& Program::tables() const noexcept { return natural_->tables(); }
std::size_t Program::block_bytes() const noexcept { return tables().block_bytes(); }

// With spilling both kinds of members compete: a leaner one is kept only where it is not dearer.
const Program::Front& Program::front_of(Eviction eviction) const {
  const auto index = static_cast<std::size_t>(eviction);
  if (const Front* const made = fronts_[index].load(std::memory_order_acquire)) return *made;
  const Front* const lower = eviction == Eviction::kSpill ? &front_of(Eviction::kRecompute) : nullptr;
  const std::lock_guard lock(mutex_);
  if (owned_fronts_[index]) return *owned_fronts_[index];
  auto front = std::make_unique<Front>();
  front->family =
      std::make_unique<ProgramFamily>(rewritten_, passes_, inside_, tables(), lower ? spill_bytes_per_cost_ : 0);
  struct Candidate {
    BudgetPoint point;
    std::pair<ProgramFamily*, std::size_t> member;
  };
  std::vector<Candidate> candidates;
  for (ProgramFamily* const family : {lower ? lower->family.get() : nullptr, front->family.get()})
    for (std::size_t i = 1; family && i < family->points().size(); ++i)
      candidates.push_back({family->points()[i], {family, i}});
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.point.slowdown != b.point.slowdown ? a.point.slowdown < b.point.slowdown : a.point.bytes < b.point.bytes;
  });
  front->points.push_back({block_bytes(), 1});
  front->members.emplace_back(nullptr, 0);
  for (const Candidate& candidate : candidates) {
    if (candidate.point.bytes >= front->points.back().bytes) continue;
    front->points.push_back(candidate.point);
    front->members.push_back(candidate.member);
  }
  owned_fronts_[index] = std::move(front);
  fronts_[index].store(owned_fronts_[index].get(), std::memory_order_release);
  return *owned_fronts_[index];
}

std::vector<BudgetPoint> Program::front(Eviction eviction) const { return front_of(eviction).points; }
const std::vector<BudgetPoint>& Program::points_for(const ProgramCall& call) const {
  return front_of(eviction_of(call)).points;
}

bool Program::is_too_long_to_recompute() const { return front_of(Eviction::kRecompute).family->is_too_long(); }

std::size_t Program::smallest_block_bytes(double max_slowdown, Eviction eviction) const {
  std::size_t smallest = block_bytes();
  for (const BudgetPoint& point : front_of(eviction).points)
    if (point.slowdown <= max_slowdown) smallest = std::min(smallest, point.bytes);
  return smallest;
}

std::size_t Program::floor_bytes(Eviction eviction) const {
  const std::size_t own = front_of(eviction).family->floor_bytes();
  return eviction == Eviction::kRecompute ? own : std::min(own, floor_bytes(Eviction::kRecompute));
}
std::string Program::floor_step(Eviction eviction) const {
  if (eviction == Eviction::kSpill && front_of(eviction).family->floor_bytes() > floor_bytes(eviction))
    return floor_step(Eviction::kRecompute);
  return front_of(eviction).family->floor_step();
}

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
    if (const Front* const front = made.load(std::memory_order_acquire)) front->family->release_slots();
}

std::size_t Program::bytes() const noexcept {
  std::size_t total = sizeof(Program) + tables().bytes() + graph().nodes().size() * sizeof(Node);
  for (const Storage* constant : tables().constants) total += constant->bytes();
  for (const std::atomic<const Front*>& made : fronts_)
    if (const Front* const front = made.load(std::memory_order_acquire)) total += front->family->bytes();
  return total;
}

}  // namespace plimsoll::internal
