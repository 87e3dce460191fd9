// The order of a program's steps: changes of variables as early as they may happen, so that what they read goes early;
// and, where nothing is changed, an order that needs less memory than the one the graph was built in.
#include <algorithm>

#include "plimsoll/graph/program_passes.h"
#include "plimsoll/plan/order.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostReordered = 600;  // Steps; longer programs keep their order.
constexpr OrderLimits kOrderLimits{.exact_states = 4'000, .beam_states = 20'000};

// A change may happen after the steps that make its operands, after those that use the variables' old values, and
// after those that may still refuse: so that a step happens as a whole or not at all.
void change_early(StepList& list) {
  struct Key {
    std::int64_t after;
    std::size_t step;
  };
  std::vector<Key> keys;
  std::vector<std::int64_t> made(list.roots.size(), -1),
      used(list.roots.size(), -1);  // By root: the last step of each kind.
  std::int64_t last_check = -1;
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    const StepList::Step& step = list.steps[i];
    auto position = static_cast<std::int64_t>(i);
    if (list.changes_variables(step)) {
      position = last_check;
      for (const std::uint32_t input : step.in) position = std::max(position, made[list.values[input].root]);
      for (const std::uint32_t output : step.out) position = std::max(position, used[list.values[output].root]);
    }
    keys.push_back({position, i});
    if (step.checks) last_check = position;
    for (const std::uint32_t input : step.in)
      used[list.values[input].root] = std::max(used[list.values[input].root], position);
    for (const std::uint32_t output : step.out) {
      made[list.values[output].root] = std::max(made[list.values[output].root], position);
      used[list.values[output].root] = std::max(used[list.values[output].root], position);
    }
  }
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.after < b.after; });
  std::vector<StepList::Step> ordered;
  for (const Key& key : keys) ordered.push_back(std::move(list.steps[key.step]));
  list.steps = std::move(ordered);
}

void reorder(StepList& list) {
  std::vector<int> maker(list.roots.size(), -1);
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    Operation operation{.workspace_bytes = list.steps[i].scratch_bytes};
    for (const std::uint32_t input : list.steps[i].in) {
      const int from = maker[list.values[input].root];
      if (from >= 0 && std::find(operation.inputs.begin(), operation.inputs.end(), from) == operation.inputs.end())
        operation.inputs.push_back(from);
    }
    for (const std::uint32_t output : list.steps[i].out) {
      maker[list.values[output].root] = static_cast<int>(i);
      operation.output_bytes += list.roots[list.values[output].root].bytes;
    }
    operations.push_back(std::move(operation));
  }
  for (const std::uint32_t fetch : list.fetches)
    if (fetch != StepList::kNone && maker[list.values[fetch].root] >= 0)
      operations[static_cast<std::size_t>(maker[list.values[fetch].root])].keep_output = true;
  const OrderResult found = order_operations(operations, kOrderLimits);
  if (found.peak >= found.natural_peak) return;
  std::vector<StepList::Step> ordered;
  for (const int step : found.order) ordered.push_back(std::move(list.steps[static_cast<std::size_t>(step)]));
  list.steps = std::move(ordered);
}

}  // namespace

void change_late(StepList& list) {
  std::vector<StepList::Step> ordered, waiting;
  std::vector<bool> is_changed(list.roots.size(), false);  // By one that waits.
  for (StepList::Step& step : list.steps) {
    if (list.changes_memory(step)) {
      for (const std::uint32_t output : step.out) is_changed[list.values[output].root] = true;
      waiting.push_back(std::move(step));
      continue;
    }
    const auto reads_changed = [&](std::uint32_t input) { return is_changed[list.values[input].root]; };
    if (std::any_of(step.in.begin(), step.in.end(), reads_changed)) {
      for (StepList::Step& change : waiting) ordered.push_back(std::move(change));
      waiting.clear();
      is_changed.assign(list.roots.size(), false);
    }
    ordered.push_back(std::move(step));
  }
  for (StepList::Step& change : waiting) ordered.push_back(std::move(change));
  list.steps = std::move(ordered);
}

void choose_order(StepList& list, const Passes& passes) {
  if (!passes.reorder) return;
  const auto changes = [&](const StepList::Step& step) { return list.changes_variables(step); };
  if (std::any_of(list.steps.begin(), list.steps.end(), changes))
    change_early(list);
  else if (list.steps.size() <= kMostReordered)
    reorder(list);
}

}  // namespace plimsoll::internal
