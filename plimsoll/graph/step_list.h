// StepList: a program under construction: steps in order, the values they read and write, and the bytes of those.
//
//   StepList list = list_steps(rewritten, false);
//   choose_order(list, passes);
//   fuse_layers(list, passes);                  // program_passes.h has them all, in the order they run
//
// Values are numbers: at first one for each output of each node, later more where a step is repeated. Several values
// may share the bytes of one root (views do). A plain value type: copying a list copies everything but the graph and
// the ops.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/graph/program_tables.h"
#include "plimsoll/graph/rewrite.h"

namespace plimsoll::internal {

struct StepList {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class Place : std::uint8_t { kPlanned, kResult, kFeed, kConstant, kVariable, kNothing };

  // Bytes that hold values: a buffer of its own, or something from outside.
  struct Root {
    Place place = Place::kPlanned;
    std::uint32_t number = 0;  // Among its kind.
    std::size_t bytes = 0;
    std::int64_t first = -1, last = -1;  // Steps.
    std::int64_t made = -1;              // The step that makes it; another value may be there before.
    Device* device = nullptr;
    const char* op = "";
    TensorSpec spec;
    Category category = Category::kActivations;
    std::uint32_t node = kNoNode;
    std::size_t offset = 0;        // When planned.
    std::uint32_t merged = kNone;  // It shares the bytes of this other root.
    const char* returned = "";     // "again" or "loaded": a copy of one that was there before.
    bool is_transferred = false;   // Stored or loaded: aligned as files require.
    bool is_stored = false;        // Its bytes do not change until the store has completed.
    bool is_parked = false;        // A variable whose bytes are in the spill file between its uses.
  };
  struct Value {
    std::uint32_t root = kNone;
    std::size_t offset = 0;
    const TensorSpec* spec = nullptr;  // Lies in the graph, or in `specs`.
  };
  struct Step {
    const Op* op = nullptr;
    std::uint32_t node = 0;
    std::vector<std::uint32_t> in, out;  // Values.
    std::size_t scratch_bytes = 0, scratch_offset = 0;
    Device* device = nullptr;
    bool checks = false;
    bool is_again = false;  // It is a repetition.
  };
  // Between steps: copies the bytes of a root to a slot of the spill file, or from there.
  struct Transfer {
    enum class Kind : std::uint8_t { kStore, kStored, kLoad };  // kStored: from here the root's bytes are free.
    Kind kind;
    std::uint32_t root;
    std::uint32_t slot;    // For a parked variable its number.
    std::size_t position;  // Before that step.
  };

  const Root& root_of(std::uint32_t value) const { return roots[find(values[value].root)]; }
  Root& root_of(std::uint32_t value) { return roots[find(values[value].root)]; }
  std::uint32_t find(std::uint32_t root) const {
    while (roots[root].merged != kNone) root = roots[root].merged;
    return root;
  }
  std::uint32_t find(std::uint32_t root) {  // Shortens the path for later calls.
    while (roots[root].merged != kNone) {
      const std::uint32_t next = roots[roots[root].merged].merged;
      if (next != kNone) roots[root].merged = next;
      root = roots[root].merged;
    }
    return root;
  }
  const TensorSpec& spec(std::uint32_t value) const { return *values[value].spec; }
  // Whether the step changes variables.
  bool changes_variables(const Step& step) const {
    const NodeKind kind = graph->node(step.node).kind;
    return kind == NodeKind::kAssign || kind == NodeKind::kUpdate;
  }
  // The same for variables whose bytes are in memory: such a change cannot be undone.
  bool changes_memory(const Step& step) const {
    if (!changes_variables(step)) return false;
    for (const std::uint32_t output : step.out)
      if (!root_of(output).is_parked) return true;
    return false;
  }
  static bool is_variable(const Root& root) { return root.place == Place::kVariable || root.is_parked; }
  // The scratch that an op needs between these values.
  std::size_t scratch_of(const Op& op, const std::vector<std::uint32_t>& in,
                         const std::vector<std::uint32_t>& out) const;
  std::uint64_t cost_of(const Step& step) const;
  SpecList outputs_of(const Op& op, const std::vector<std::uint32_t>& in) const;
  StepList without_steps() const;  // A copy of all the rest.

  std::shared_ptr<GraphState> graph;
  std::vector<Value> values;
  std::vector<Root> roots;
  std::vector<Step> steps;
  std::vector<std::uint32_t> fetches;    // Values; kNone: none.
  std::vector<ValueId> fetched_outputs;  // The same as outputs of nodes.
  std::size_t num_feeds = 0;
  bool keeps_inside = false;                             // What is fetched stays in the extent.
  std::vector<std::uint32_t> variable_roots;             // By number in the graph.
  std::vector<ProgramVariable> variables;                // In the order of their roots' numbers.
  std::vector<Storage*> constants;                       // The same.
  std::vector<std::shared_ptr<const Op>> ops;            // Made for steps that stand for no node or for several.
  std::vector<std::shared_ptr<const TensorSpec>> specs;  // Of values that are not as their nodes have them.
  std::vector<Transfer> transfers;  // By position; before one step stores, then kStored, then loads.
};

}  // namespace plimsoll::internal
