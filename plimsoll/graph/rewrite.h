// rewrite(): the part of a graph that some values need, as a graph of its own, with all sizes known.
//
// What is not needed is left out; operations on constants are done at once; what is computed twice is computed once;
// gradients are worked out into the operations they consist of. Everything keeps its order, so results, draws of random
// numbers and changes of variables come out as when run one by one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/passes.h"

namespace plimsoll::internal {

// A value that comes from outside, and what it is; one of kNoNode is nothing.
struct Feed {
  ValueId value;
  TensorSpec spec;
};

struct Rewritten {
  std::shared_ptr<GraphState> graph;
  std::vector<ValueId> feeds, fetches;  // In `graph`; feeds that nothing needs have no node.
};

// `with_effects`: changes of variables are needed, whether or not something asks for their results. Throws
// InvalidArgument for placeholders that are needed and not fed, and what infer() throws for sizes that do not fit.
Rewritten rewrite(GraphState& from, std::span<const Feed> feeds, std::span<const ValueId> fetches, bool with_effects,
                  const Passes& passes);

}  // namespace plimsoll::internal
