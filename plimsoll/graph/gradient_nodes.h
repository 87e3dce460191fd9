// Gradients as nodes: applies the ops' own gradient rules to symbolic tensors.
#pragma once

#include <span>
#include <vector>

#include "plimsoll/graph/graph_state.h"

namespace plimsoll::internal {

// Adds the nodes that compute the gradients of `target`'s sum with respect to the sources; kNoNode for those it does
// not depend on. Requires that the sizes in between are known.
std::vector<ValueId> gradient_nodes(GraphState& graph, ValueId target, std::span<const ValueId> sources);

// The same for several targets, each with its incoming gradient.
struct GradientSeed {
  ValueId target, gradient;
};
std::vector<ValueId> gradient_nodes(GraphState& graph, std::span<const GradientSeed> seeds,
                                    std::span<const ValueId> sources);

// Whether `target` depends on each source through operations that have gradients.
std::vector<bool> depends_on(const GraphState& graph, ValueId target, std::span<const ValueId> sources);

}  // namespace plimsoll::internal
