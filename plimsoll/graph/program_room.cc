// Checks, before a run starts, whether it fits the budgets that it is charged to.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/memory/budget_hold.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/evictor.h"
#include "plimsoll/memory/ledger.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

std::size_t rounded(std::size_t bytes) { return round_up(bytes, kGranularity); }

// Within the quota that the thread already has: asks nobody.
bool fits_quota(const Meter* innermost, std::size_t bytes) {
  for (const Meter* meter = innermost; meter; meter = meter->parent)
    if (!meter->fits(static_cast<std::int64_t>(bytes))) return false;
  return true;
}

const BudgetNode* without_room(const Meter* innermost, std::size_t bytes) {
  for (const Meter* meter = innermost; meter; meter = meter->parent) {
    const auto* const node = static_cast<const BudgetNode*>(meter->center);
    if (node->used() + bytes > node->limit()) return node;
  }
  return nullptr;
}

// Makes evicting budgets drop results of eager operations. True when they had too little room and now have enough.
bool make_room_by_evicting(const Meter* innermost, std::size_t bytes) {
  bool evicted = false;
  while (const BudgetNode* const node = without_room(innermost, bytes)) {
    const std::size_t missing = node->used() + bytes - node->limit();
    if (!node->evictor() || bytes > node->limit() || node->evictor()->evict(*node, nullptr, missing) == 0) return false;
    evicted = true;
  }
  return evicted;
}

bool is_within(const Budget& budget, const Meter& outer) {
  const BudgetNode* node = budget.node().get();
  while (node && node != outer.center) node = node->parent();
  return node != nullptr;
}

}  // namespace

void Program::run_charged(const ProgramCall& call) {
  const Meter* const around = ThreadMemory::current().budget;
  if (!call.own) return run_point(choose_point(call, true), call);
  std::size_t point = 0;
  {
    const BudgetScope charged(*call.own);
    point = choose_point(call, true);
    if (!around || is_within(*call.own, *around)) {
      ProgramCall here = call;
      here.own = nullptr;
      return run_point(point, here);
    }
  }
  point = std::max(point, choose_point(call, false));
  const BudgetHold held(*call.own, point == 0 ? block_bytes() : points_for(call)[point].bytes);
  run_point(point, call);
}

// The most that a run can take, whatever the state of its variables.
std::size_t Program::most_bytes() const noexcept {
  std::size_t total = block_bytes();
  for (const VariableUse& use : tables().variables) {
    const TensorSpec& spec = graph().variables()[use.number].spec;
    total += 2 * rounded(static_cast<std::size_t>(spec.shape.size()) * size_of(spec.dtype));
  }
  return total;
}

// For variables that have no bytes yet, and those that will be changed and whose bytes others also hold. `parks`:
// without the parked ones, which need none.
std::size_t Program::variable_bytes(const ProgramCall& call, bool parks) const {
  std::size_t total = 0;
  const std::vector<std::uint32_t> none;
  const std::vector<std::uint32_t>& parked = parks ? parked_variables() : none;
  for (std::uint32_t i = 0; i < tables().variables.size(); ++i) {
    if (std::find(parked.begin(), parked.end(), i) != parked.end()) continue;
    if (call.borrowed && call.borrowed->is_borrowed[i]) continue;
    const StorageRef bytes = call.variables[i].share_bytes();
    if (!bytes->is_resident()) total += rounded(bytes->bytes());
    if (tables().variables[i].writes && (bytes->references() > 2 || bytes->is_pinned()))
      total += rounded(bytes->bytes());
  }
  return total;
}

std::size_t Program::choose_point(const ProgramCall& call, bool with_variables) const {
  const Meter* const innermost = ThreadMemory::current().budget;
  if (!innermost || fits_quota(innermost, most_bytes_)) return 0;
  const std::size_t variables = with_variables ? variable_bytes(call, false) : 0;
  const auto refused_by = [&](std::size_t bytes) { return without_room(innermost, bytes); };
  if (!refused_by(block_bytes() + variables)) return 0;
  for (const ProgramTables::Extent& extent : tables().extents)
    if (extent.device) extent.device->arena().flush_deferred();
  if (!refused_by(block_bytes() + variables)) return 0;
  std::size_t least = block_bytes() + variables;
  if (call.may_recompute) {
    const std::vector<ProgramPoint>& points = points_for(call);
    std::optional<std::size_t> unparked;  // What variables besides parked ones take, once it is known.
    for (std::size_t point = 1; point < points.size() && points[point].slowdown <= call.max_slowdown; ++point) {
      const bool parks = points[point].parked_bytes > 0;
      if (parks && !unparked) unparked = with_variables ? variable_bytes(call, true) : 0;
      const std::size_t bytes = points[point].bytes + (parks ? *unparked : variables);
      if (!refused_by(bytes)) return point;
      least = std::min(least, bytes);
    }
  }
  const BudgetNode* refused = refused_by(least);
  if (make_room_by_evicting(innermost, least)) return choose_point(call, with_variables);
  refuse_room(*refused, least, call);
}

// Describes what it would need: naturally, or at least when it may recompute.
void Program::refuse_room(const BudgetNode& budget, std::size_t least, const ProgramCall& call) const {
  OutOfMemoryDetails details;
  const Eviction eviction = call.eviction();
  const std::size_t smallest = call.may_recompute ? smallest_block_bytes(call.max_slowdown, eviction) : block_bytes();
  const std::size_t variables = least - std::min(least, smallest), natural = block_bytes() + variables;
  details.requested = least;
  details.limit = budget.limit();
  details.in_use = budget.used();
  details.smallest_sufficient_limit = details.in_use + details.requested;
  std::string why;
  if (call.may_recompute) {
    double slowdown = 1;
    for (const ProgramPoint& point : points_for(call))
      if (point.slowdown <= call.max_slowdown) slowdown = point.slowdown;
    why = fmt::format(
        "{} it needs {} and takes {:.2f} times as long, and no order of these steps needs less than {}, which {} takes",
        call.spill ? "recomputing and spilling" : "recomputing", format_bytes_exactly(details.requested), slowdown,
        format_bytes_exactly(floor_bytes(eviction) + variables), floor_step(eviction));
    if (is_too_long_to_recompute()) why += fmt::format("; a program of {} steps is too long to recompute", num_steps());
  } else {
    const PlannedBuffer* largest = nullptr;
    for (const PlannedBuffer& buffer : memory_plan().buffers)
      if (!largest || buffer.bytes > largest->bytes) largest = &buffer;
    why = fmt::format("the largest buffer is that of {} with {}",
                      largest ? largest->name.substr(0, largest->name.find('#')) : "nothing",
                      format_bytes(largest ? largest->bytes : 0));
  }
  details.what =
      fmt::format("{}: the plan needs {}, budget \"{}\" of {} has {} in use; {}; give it {} bytes", call.where,
                  format_bytes_exactly(natural), budget.name(), format_bytes_exactly(details.limit),
                  format_bytes_exactly(details.in_use), why, details.smallest_sufficient_limit);
  const ProgramTables& t = tables();
  Device* const device = t.extents[0].device  ? t.extents[0].device
                         : t.storages.empty() ? nullptr
                                              : t.storages[0].device;
  if (device) details.holders = find_holders(device->arena(), &budget);
  throw_refusal(std::move(details),
                {.budget = budget.interned_name(), .device = device ? device->name().c_str() : "", .op = "plan"});
}

}  // namespace plimsoll::internal
