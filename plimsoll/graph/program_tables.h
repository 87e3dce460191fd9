// ProgramTables: the data that running a program reads: steps, their operands as views into bases, and what to acquire
// first.
//
// Made once by emit() and never changed. Bases are numbered: extents, result storages, feeds, constants, variables.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/memory_plan.h"
#include "plimsoll/memory/trace/trace_plan.h"

namespace plimsoll::internal {

struct ProgramVariable {
  std::uint32_t number = 0;  // In the graph.
  bool writes = false;
  bool is_parked = false;
};

struct ProgramTables {
  static constexpr std::uint32_t kNoBase = UINT32_MAX;
  static constexpr std::uint32_t kOutBit = std::uint32_t{1} << 31;

  struct Step {
    const Op* op;
    std::uint32_t first_in, num_in, first_out, num_out;
    std::uint32_t extent;  // The base its scratch is in.
    std::size_t scratch_offset, scratch_bytes;
    bool checks;
    bool changes;  // Variables.
  };
  struct View {  // An operand of a step.
    std::uint32_t base;
    std::size_t offset;
    TensorSpec spec;
  };
  struct Extent {
    Device* device;
    std::size_t bytes;
    std::size_t alignment = 1;  // Of the first used byte; `bytes` includes the padding for it.
  };
  // Before a step: a transfer between an extent and a slot of the spill file starts, or must have finished.
  struct Transfer {
    enum class Kind : std::uint8_t { kStore, kLoad, kWait, kWaitForLoad, kEnd } kind = Kind::kEnd;
    std::uint32_t slot = 0;  // Or of a parked variable: its number among them.
    bool is_parked = false;
    std::uint32_t extent = 0;
    std::size_t offset = 0, bytes = 0;
    std::size_t position = SIZE_MAX;  // Before that step.
  };
  // A variable whose bytes are in the spill file between its uses.
  struct Parked {
    std::uint32_t variable;  // Among `variables`.
    std::size_t bytes;
  };
  struct Result {  // A fetched value.
    enum class Kind : std::uint8_t { kStorage, kFeed, kConstant, kVariable, kNothing } kind = Kind::kNothing;
    std::uint32_t number = 0;
    std::size_t offset = 0;
  };
  struct FetchEnd {  // A fetched value that no step touches after this one.
    std::uint32_t step, fetch;
  };
  struct ResultStorage {
    Device* device;
    std::size_t bytes;
    const char* op;
    TensorSpec spec;
  };
  struct RandomStep {
    std::uint32_t step;
    std::uint32_t ticket;  // Among the tickets.
  };
  struct Ticket {
    std::uint64_t number;
    std::size_t elements;
  };
  // A step whose seed comes from a stream.
  struct SeededStep {
    std::uint32_t step;
    std::uint32_t seed;  // Among the graph's.
  };
  struct Effect {
    std::shared_ptr<RunEffect> effect;
    std::size_t times;
  };
  struct Advance {  // How many seeds a run takes from a stream.
    std::shared_ptr<SeedStream> stream;
    std::uint64_t count;
  };

  // Calls f(variable, bytes) for each variable that a step reads, once.
  template <class F>
  void visit_read_variables(const Step& step, F&& f) const {
    for (std::uint32_t i = step.first_in; i < step.first_in + step.num_in; ++i) {
      if (in[i].base < first_variable) continue;
      bool is_known = false;
      for (std::uint32_t k = step.first_in; k < i; ++k) is_known |= in[k].base == in[i].base;
      if (is_known) continue;
      const TensorSpec& spec = graph->variables()[variables[in[i].base - first_variable].number].spec;
      f(in[i].base - first_variable, static_cast<std::size_t>(spec.shape.size()) * size_of(spec.dtype));
    }
  }
  std::size_t block_bytes() const noexcept;  // The budget that a run needs, without what variables take.
  std::size_t bytes() const noexcept;        // Of the tables themselves.
  const TensorSpec& fetch_spec(std::size_t fetch) const noexcept { return graph->output(fetch_values[fetch]).spec; }

  std::shared_ptr<GraphState> graph;
  std::vector<std::shared_ptr<const Op>> ops;  // Those not owned by the graph.
  std::vector<Step> steps;
  std::vector<View> in, out;
  std::vector<Extent> extents;
  std::vector<Transfer> transfers;      // By position; the last is kEnd.
  std::vector<std::size_t> slot_bytes;  // Of the spill file's slots that a run needs.
  std::vector<Parked> parked;           // By the variables' ids: the lock order.
  std::vector<ResultStorage> storages;
  std::vector<std::uint32_t> feed_base;
  std::vector<Storage*> constants;
  std::vector<ProgramVariable> variables;
  std::uint32_t first_storage = 0, first_feed = 0, first_constant = 0, first_variable = 0, num_bases = 0;
  std::vector<std::uint32_t> base_views_begin, base_views;  // Which views each base has.
  std::vector<Result> fetches;
  std::vector<ValueId> fetch_values;
  std::vector<FetchEnd> fetch_ends;  // By step; what no step touches belongs to the first.
  std::vector<RandomStep> random_steps;
  std::vector<Ticket> tickets;
  std::vector<SeededStep> seeded_steps;
  std::vector<Advance> advances;
  std::vector<Effect> effects;             // By address: the order in which they begin.
  std::vector<std::uint32_t> write_order;  // Of variables, by id: the lock order.
  bool keeps_inside = false;
  bool changes_variables = false;
  std::size_t staged_bytes = 0;     // Host memory, beside the extents, for devices that the host cannot reach.
  std::uint32_t first_fetched = 0;  // In `in`: views of the fetches that stay inside.
  MemoryPlan plan;
  PlacedValues placed;  // The same for traces.
};

}  // namespace plimsoll::internal
