// PlanRuns: the moments of a trace in order, with the blocks of plans expanded into the values inside them.
//
// A block that a plan ran in is cut into pieces that always cover it: one for each live value, and the unused rest.
// Pieces begin and end with the steps of the plan. Between two steps pieces end before others begin; at all other times
// their sizes add up to the block's.
// Where a plan names the phases of its steps, each phase is a moment too, and so is the end of the last one.
// If this would make more than `most` moments, only every n-th run of a plan is expanded; the others stay one block.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/memory/trace/trace_file.h"
#include "plimsoll/observe/internal/compact_events.h"

namespace plimsoll::internal {

struct PlanPiece {
  const TraceEvent* value = nullptr;   // The value; nullptr: unused now.
  std::uint64_t offset = 0, size = 0;  // In the extent.
};

// Something that happened: an event of the trace, or one to a piece of the block that `event` allocated.
struct TraceMoment {
  static constexpr std::uint32_t kNoPiece = UINT32_MAX, kPhase = UINT32_MAX - 1, kPhasesEnd = UINT32_MAX - 2;
  std::int64_t time_ns = 0;
  std::uint32_t event = 0;
  std::uint32_t piece = kNoPiece;
  std::uint32_t name = 0;            // The phase that begins.
  std::uint32_t is_birth : 1 = 0;    // Of a piece.
  std::uint32_t caused_by : 31 = 0;  // The event that a piece's moment follows from; at equal times they are in order.
};

class PlanRuns {
 public:
  // Borrows both: the trace's plans and durations, and its events, by time.
  PlanRuns(const TraceFile& trace, const CompactEvents& events, std::size_t most);

  void for_each(FunctionRef<void(const TraceMoment&)> f) const;  // By time.
  const PlanPiece& piece(const TraceMoment& moment) const { return runs_.at(moment.event).cut->pieces[moment.piece]; }
  std::size_t num_pieces(std::uint32_t event) const { return runs_.at(event).cut->pieces.size(); }
  // Whether an event allocates a block of a plan that is not expanded.
  bool is_whole(std::uint32_t event) const {
    const auto run = runs_.find(event);
    return run != runs_.end() && !run->second.is_expanded;
  }
  std::uint64_t runs() const noexcept { return runs_.size(); }
  std::uint64_t expanded() const noexcept { return expanded_; }

 private:
  // An extent of a plan, cut up.
  struct Cut {
    struct Change {
      std::uint32_t step, piece;
      bool is_birth = false;
      std::uint32_t name = 0;  // The phase.
    };
    std::vector<PlanPiece> pieces;
    std::vector<Change> changes;  // By step; ends before births.
    bool is_sound = false;        // No piece overlaps another or exceeds the block.
    bool has_phases = false;
  };
  struct Run {  // In a block.
    const Cut* cut = nullptr;
    std::vector<std::uint32_t> steps;  // The events of its steps.
    std::int64_t freed_ns = -1;        // When its block was freed; -1: never.
    bool is_expanded = false;
  };

  const Cut& cut_of(std::uint64_t plan, std::uint32_t extent, std::uint64_t bytes);
  static Cut make_cut(const TracePlan& plan, std::uint32_t extent, std::uint64_t bytes);
  void find_runs();
  void expand(std::uint32_t event, const Run& run);
  void add_moments();
  const Run* run_of(const CompactEvent& event) const;  // The run whose block it allocates or frees; nullptr: none.

  const TraceFile& trace_;
  const CompactEvents& events_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>, std::unique_ptr<Cut>> cuts_;
  std::unordered_map<std::uint32_t, Run> runs_;              // By the event of the block's allocation.
  std::unordered_map<std::uint64_t, std::uint32_t> blocks_;  // From the ids of such blocks to that event.
  std::vector<TraceMoment> moments_;                         // Of pieces and phases, by time.
  std::uint64_t expanded_ = 0;
};

}  // namespace plimsoll::internal
