// The purpose of a program's steps: computing values, their gradients, or new values of variables.
#include <algorithm>

#include "plimsoll/graph/program_passes.h"

namespace plimsoll::internal {
namespace {

enum Phase : std::uint8_t { kAny, kForward, kBackward, kUpdate };

constexpr const char* kNames[] = {"", "forward", "backward", "update"};

Phase own_phase(const Node& node) {
  if (node.kind == NodeKind::kUpdate) return kUpdate;
  if (node.kind == NodeKind::kOp && node.category == Category::kGradients) return kBackward;
  return node.kind == NodeKind::kPlaceholder ? kForward : kAny;
}

// By node. What tapes and gradients add is backward, and so is everything computed from it; optimizers' updates and
// variables set from gradients are the update. A node that depends on neither of them nor on a feed (an optimizer's
// step count) belongs to the phase that it runs in.
std::vector<Phase> phases_of(const GraphState& graph) {
  std::vector<Phase> phases;
  phases.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    Phase phase = own_phase(node);
    for (const ValueId& input : node.inputs)
      if (input.node != kNoNode) phase = std::max(phase, phases[input.node]);
    if (node.kind == NodeKind::kAssign && phase == kBackward) phase = kUpdate;
    phases.push_back(phase);
  }
  return phases;
}

}  // namespace

std::vector<bool> backward_nodes(const GraphState& graph) {
  std::vector<bool> backward;
  for (const Phase phase : phases_of(graph)) backward.push_back(phase >= kBackward);
  return backward;
}

// A program that computes no gradients has no phases: its caller knows its purpose. A repeated step belongs to the
// phase in which it is repeated.
void describe_phases(const StepList& list, ProgramTables& tables) {
  const std::vector<Phase> of_nodes = phases_of(*list.graph);
  std::vector<PlacedPhase>& phases = tables.placed.phases;
  bool told = false;
  Phase now = kForward;
  for (std::uint32_t i = 0; i < list.steps.size(); ++i) {
    const StepList::Step& step = list.steps[i];
    const Phase before = now, wanted = step.is_again ? kAny : of_nodes[step.node];
    now = wanted == kAny ? before : wanted;
    told |= now != kForward;
    if (i == 0 || now != before) phases.push_back({i, kNames[now]});
  }
  if (!told) phases.clear();
}

}  // namespace plimsoll::internal
