// The passes that turn a rewritten graph into a program, in the order they run. Each is a function over a StepList.
//
//   StepList list = list_steps(rewritten, inside);
//   choose_order(list, passes);
//   fuse_layers(list, passes);
//   fuse_chains(list);
//   use_thrifty_ops(list, level);               // only where a budget asks for it, as the next
//   list = with_repeats(list, schedule);        // program_recompute.h
//   find_lifetimes(list);
//   place_results(list);
//   share_bytes(list);
//   BufferPlaces places = place_buffers(list);
//   ProgramTables tables = emit(list, places);
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/base/rounding.h"
#include "plimsoll/graph/passes.h"
#include "plimsoll/graph/program_tables.h"
#include "plimsoll/graph/step_list.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::internal {

// One step for each node that computes something, in the graph's order; views become offsets.
StepList list_steps(const Rewritten& rewritten, bool keeps_inside);

// Moves changes of variables as early as possible; without changes, finds an order that needs less memory.
void choose_order(StepList& list, const Passes& passes);
// Moves changes of variables in memory after everything that does not read the new values, so that a failure before
// them changes nothing.
void change_late(StepList& list);

// Turns the steps of one layer into one.
void fuse_layers(StepList& list, const Passes& passes);
// Turns consecutive elementwise steps into one.
void fuse_chains(StepList& list);
using Uses = std::vector<std::uint32_t>;
Uses count_uses(const StepList& list);                   // By root: how many steps and fetches use it.
void forget_value(StepList& list, std::uint32_t value);  // Nothing uses it any more.

// All of the above, as selected by `passes`; with changes early or late. kParked: changes late, and variables are
// parked where possible: large ones on the host that are not fetched, and that are used before the first change of one
// in memory.
enum class Changes : std::uint8_t { kEarly, kLate, kParked };
StepList list_fused_steps(const Rewritten& rewritten, const Passes& passes, bool keeps_inside,
                          Changes changes = Changes::kEarly);

// Ops that can work in less memory do so, at a level up to ThriftyOp::kMostThrift; at 0 those that it costs no time.
void use_thrifty_ops(StepList& list, int level);
// How many levels above 0 differ: none, the highest alone, or all.
int levels_of_thrift(const StepList& list);

// Turns cross entropies over large vocabularies into steps that never hold all logits, and compute them twice.
void slice_losses(StepList& list);
bool has_sliceable_loss(const StepList& list);

// The first and last step of each root.
void find_lifetimes(StepList& list);
// Gives fetched values their own memory, or keeps them to the end.
void place_results(StepList& list);
// Lets results overwrite operands that end with them. Returns for each step the root whose bytes its output took, or
// kNone.
std::vector<std::uint32_t> share_bytes(StepList& list);

// The places of buffers: of planned roots by number, then of steps' scratch.
struct BufferPlaces {
  std::vector<ProgramTables::Extent> extents;
  std::vector<std::size_t> root_offsets, scratch_offsets;  // By root and by step.
  std::size_t lower_bound = 0;                             // No placement needs less.

  std::size_t extent_bytes() const noexcept;
};
struct PlaceLimits {
  std::size_t capacity = SIZE_MAX;  // A placement within it is good enough.
  std::uint64_t nodes = 20'000;     // Placements tried after the first plan.
};
// Counts its work and uses no clock: the same list gives the same places on every machine.
BufferPlaces place_buffers(const StepList& list, const PlaceLimits& limits = {});
inline constexpr std::size_t kBufferAlignment = 64;
inline std::size_t buffer_bytes(std::size_t bytes) { return round_up(bytes, kBufferAlignment); }
// The size of a buffer that is stored or loaded. An extent with such buffers starts at a multiple of the alignment too,
// for which it has kSpillSlack extra bytes.
inline std::size_t transferred_bytes(std::size_t bytes) { return round_up(bytes, kSpillAlignment); }
inline constexpr std::size_t kSpillSlack = kSpillAlignment - kBufferAlignment;

ProgramTables emit(StepList list, const BufferPlaces& places);
// Parts of emit() that describe the program for people and for traces.
void describe_plan(const StepList& list, const BufferPlaces& places, ProgramTables& tables);
void describe_values(const StepList& list, ProgramTables& tables);
void describe_phases(const StepList& list, ProgramTables& tables);

// By node: whether it computes gradients or something from them.
std::vector<bool> backward_nodes(const GraphState& graph);

}  // namespace plimsoll::internal
