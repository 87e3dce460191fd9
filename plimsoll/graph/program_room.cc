// Whether a run has room in the budgets that it is charged to: asked before it begins.
#include <fmt/format.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/memory/budget_hold.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/holders.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + kGranularity - 1) / kGranularity * kGranularity; }

// By the quota that the thread has already: asks nobody.
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

bool is_within(const Budget& budget, const Meter& outer) {
  const BudgetNode* node = budget.node().get();
  while (node && node != outer.center) node = node->parent();
  return node != nullptr;
}

}  // namespace

void Program::run_charged(const ProgramCall& call) {
  const Meter* const around = ThreadMemory::current().budget;
  if (!call.own) {
    require_room(call, true);
    return run_now(call);
  }
  {
    const BudgetScope charged(*call.own);
    require_room(call, true);
    if (!around || is_within(*call.own, *around)) {
      ProgramCall here = call;
      here.own = nullptr;
      return run_now(here);
    }
  }
  const BudgetHold held(*call.own, block_bytes());
  require_room(call, false);
  run_now(call);
}

std::size_t Program::block_bytes() const noexcept {
  std::size_t total = plan_.extent_bytes;
  for (const ResultStorage& result : storages_) total += rounded(result.bytes);
  return total;
}

// The most that a run takes, whatever its variables are like.
std::size_t Program::most_bytes() const noexcept {
  std::size_t total = block_bytes();
  for (const VariableUse& use : variables_) {
    const TensorSpec& spec = graph_->variables()[use.number].spec;
    total += 2 * rounded(static_cast<std::size_t>(spec.shape.size()) * size_of(spec.dtype));
  }
  return total;
}

// Of those that have no bytes yet, and of those that are to be changed and whose bytes others hold too.
std::size_t Program::variable_bytes(std::span<const Variable> variables) const {
  std::size_t total = 0;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const StorageRef bytes = variables[i].share_bytes();
    if (!bytes->is_resident()) total += rounded(bytes->bytes());
    if (variables_[i].writes && (bytes->references() > 2 || bytes->is_pinned())) total += rounded(bytes->bytes());
  }
  return total;
}

void Program::require_room(const ProgramCall& call, bool with_variables) const {
  const Meter* const innermost = ThreadMemory::current().budget;
  if (!innermost || fits_quota(innermost, most_bytes_)) return;
  const std::size_t needed = block_bytes() + (with_variables ? variable_bytes(call.variables) : 0);
  if (!without_room(innermost, needed)) return;
  for (const Extent& extent : extents_)
    if (extent.device) extent.device->arena().flush_deferred();
  if (const BudgetNode* const refused = without_room(innermost, needed)) refuse_room(*refused, needed, call.where);
}

void Program::refuse_room(const BudgetNode& budget, std::size_t needed, std::string_view where) const {
  const PlannedBuffer* largest = nullptr;
  for (const PlannedBuffer& buffer : plan_.buffers)
    if (!largest || buffer.bytes > largest->bytes) largest = &buffer;
  OutOfMemoryDetails details;
  details.requested = needed;
  details.limit = budget.limit();
  details.in_use = budget.used();
  details.smallest_sufficient_limit = details.in_use + needed;
  details.what = fmt::format(
      "{}: the plan needs {}, budget \"{}\" of {} has {} in use; the largest buffer is that of {} with {}; give it {} "
      "bytes",
      where, format_bytes_exactly(needed), budget.name(), format_bytes_exactly(details.limit),
      format_bytes_exactly(details.in_use), largest ? largest->name.substr(0, largest->name.find('#')) : "nothing",
      format_bytes(largest ? largest->bytes : 0), details.smallest_sufficient_limit);
  Device* const device = extents_[0].device ? extents_[0].device : storages_.empty() ? nullptr : storages_[0].device;
  if (device) details.holders = find_holders(device->arena(), &budget);
  throw_refusal(std::move(details),
                {.budget = budget.interned_name(), .device = device ? device->name().c_str() : "", .op = "plan"});
}

}  // namespace plimsoll
