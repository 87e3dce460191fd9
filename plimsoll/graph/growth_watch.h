// GraphGrowthWatch: warns once when a graph keeps growing between runs, usually because a loop builds something that
// should be built once.
//
//   growth.look(graph);                                    // before each run
//
// Thread safety: any thread. Cost: the graph's lock.
#pragma once

#include <cstddef>

#include "plimsoll/graph/graph_state.h"

namespace plimsoll::internal {

class GraphGrowthWatch {
 public:
  // Logs a warning that names the last node, its operation, scope and site.
  void look(const GraphState& graph);

 private:
  std::size_t seen_size_ = 0;  // Guarded by the graph's lock, as the rest.
  int growing_ = 0;            // Consecutive runs before which nodes were added.
  bool warned_ = false;
};

}  // namespace plimsoll::internal
