// rewrite(): extracts the part of a graph that some values need, as a separate graph with all sizes known.
//
// It drops what is not needed, runs operations on constants at once, computes repeated expressions once, and expands
// gradients into the operations they consist of. Everything keeps its order, so results, draws of random numbers and
// changes of variables are the same as when run one by one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/passes.h"

namespace plimsoll::internal {

// A value from outside, and its spec; kNoNode stands for none.
struct Feed {
  ValueId value;
  TensorSpec spec;
};

struct Rewritten {
  std::shared_ptr<GraphState> graph;
  std::vector<ValueId> feeds, fetches;  // In `graph`; feeds that nothing needs have no node.
};

// `with_effects`: changes of variables are needed even if nothing uses their results. Throws InvalidArgument for
// placeholders that are needed and not fed, and what infer() throws for sizes that do not fit.
Rewritten rewrite(GraphState& from, std::span<const Feed> feeds, std::span<const ValueId> fetches, bool with_effects,
                  const Passes& passes);

}  // namespace plimsoll::internal
