// The order of a program's steps: changes of variables as early as they may happen, so that what they read goes early;
// and, where nothing is changed, an order that needs less memory than the one the graph was built in.
#include <algorithm>

#include "plimsoll/graph/program_builder.h"
#include "plimsoll/plan/order.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostReordered = 600;  // Steps; longer programs keep their order.
constexpr OrderLimits kOrderLimits{.exact_states = 4'000, .beam_states = 20'000};

}  // namespace

void ProgramBuilder::choose_order() {
  if (!passes_.reorder) return;
  const bool changes = std::any_of(changes_.begin(), changes_.end(), [](const auto& list) { return !list.empty(); });
  if (changes)
    change_early();
  else if (steps_.size() <= kMostReordered)
    reorder();
}

// A change may happen after the steps that make its operands, after those that use the variables' old values, and
// after those that may still refuse: so that a step happens as a whole or not at all.
void ProgramBuilder::change_early() {
  struct Key {
    std::int64_t after;
    std::size_t step;
  };
  std::vector<Key> keys;
  std::vector<std::int64_t> made(roots_.size(), -1), used(roots_.size(), -1);  // By root: the last step of each kind.
  std::int64_t last_check = -1;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const BuildStep& step = steps_[i];
    const Node& node = graph_.node(step.node);
    const bool changes = node.kind == NodeKind::kAssign || node.kind == NodeKind::kUpdate;
    auto position = static_cast<std::int64_t>(i);
    if (changes) {
      position = last_check;
      for (const ValueId& input : step.in) position = std::max(position, made[value(input).root]);
      for (const ValueId& output : step.out) position = std::max(position, used[value(output).root]);
    }
    keys.push_back({position, i});
    if (step.op->facts().checks) last_check = position;
    if (node.kind == NodeKind::kRead) {
      std::int64_t& use = used[variable_roots_[node.variable]];
      use = std::max(use, position);
    }
    for (const ValueId& input : step.in) used[value(input).root] = std::max(used[value(input).root], position);
    for (const ValueId& output : step.out) {
      made[value(output).root] = std::max(made[value(output).root], position);
      used[value(output).root] = std::max(used[value(output).root], position);
    }
  }
  std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.after < b.after; });
  std::vector<BuildStep> ordered;
  for (const Key& key : keys) ordered.push_back(std::move(steps_[key.step]));
  steps_ = std::move(ordered);
}

void ProgramBuilder::reorder() {
  std::vector<int> maker(roots_.size(), -1);
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Operation operation{.workspace_bytes = steps_[i].scratch_bytes};
    for (const ValueId& input : steps_[i].in) {
      const int from = maker[value(input).root];
      if (from >= 0 && std::find(operation.inputs.begin(), operation.inputs.end(), from) == operation.inputs.end())
        operation.inputs.push_back(from);
    }
    for (const ValueId& output : steps_[i].out) {
      maker[value(output).root] = static_cast<int>(i);
      operation.output_bytes += roots_[value(output).root].bytes;
    }
    operations.push_back(std::move(operation));
  }
  for (const ValueId& fetch : rewritten_.fetches)
    if (fetch.node != kNoNode && maker[value(fetch).root] >= 0)
      operations[static_cast<std::size_t>(maker[value(fetch).root])].keep_output = true;
  const OrderResult found = order_operations(operations, kOrderLimits);
  if (found.peak >= found.natural_peak) return;
  std::vector<BuildStep> ordered;
  for (const int step : found.order) ordered.push_back(std::move(steps_[static_cast<std::size_t>(step)]));
  steps_ = std::move(ordered);
}

}  // namespace plimsoll
