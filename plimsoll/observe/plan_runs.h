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

#include "plimsoll/memory/trace/trace_file.h"

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
  bool is_birth = false;
  std::uint32_t name = 0;  // The phase that begins.
};

class PlanRuns {
 public:
  PlanRuns(const TraceFile& trace, std::size_t most);  // Borrows the trace.

  const std::vector<TraceMoment>& moments() const noexcept { return moments_; }
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

  const TraceFile& trace_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>, std::unique_ptr<Cut>> cuts_;
  std::unordered_map<std::uint32_t, Run> runs_;              // By the event of the block's allocation.
  std::unordered_map<std::uint64_t, std::uint32_t> blocks_;  // From the ids of such blocks to that event.
  std::vector<TraceMoment> moments_;
  std::uint64_t expanded_ = 0;
};

}  // namespace plimsoll::internal
