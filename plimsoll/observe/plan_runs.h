// PlanRuns: the moments of a trace in order, with blocks of plans told as what lies inside of them.
//
// A block that a plan ran in is cut into pieces, at each time without gaps: one for each value that is live, and the
// unused rest. Pieces come and go as the steps of the plan do. Between two steps pieces end before others begin; at all
// other times their sizes add up to the block's.
// Where a plan says what its steps are for, each phase is a moment too, and the end of the last one.
// Where that would make more than `most` moments, only every n-th run of a plan is told so; the others stay one block.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "plimsoll/memory/trace/trace_file.h"

namespace plimsoll {

struct PlanPiece {
  const TraceEvent* value = nullptr;   // What it is; nullptr: nothing lies there now.
  std::uint64_t offset = 0, size = 0;  // In the extent.
};

// Something that happened: an event of the trace, or one to a piece of the block that `event` allocated.
struct TraceMoment {
  static constexpr std::uint32_t kNoPiece = UINT32_MAX, kPhase = UINT32_MAX - 1, kPhasesEnd = UINT32_MAX - 2;
  std::int64_t time_ns = 0;
  std::uint32_t event = 0;
  std::uint32_t piece = kNoPiece;
  bool is_birth = false;
  std::uint32_t name = 0;  // Of the phase that begins.
};

class PlanRuns {
 public:
  PlanRuns(const TraceFile& trace, std::size_t most);  // Borrows the trace.

  const std::vector<TraceMoment>& moments() const noexcept { return moments_; }
  const PlanPiece& piece(const TraceMoment& moment) const { return runs_.at(moment.event).cut->pieces[moment.piece]; }
  std::size_t num_pieces(std::uint32_t event) const { return runs_.at(event).cut->pieces.size(); }
  // Whether an event allocates a block of a plan whose contents are not told.
  bool is_whole(std::uint32_t event) const {
    const auto run = runs_.find(event);
    return run != runs_.end() && !run->second.is_told;
  }
  std::uint64_t runs() const noexcept { return runs_.size(); }
  std::uint64_t told() const noexcept { return told_; }

 private:
  // An extent of a plan, cut up.
  struct Cut {
    struct Change {
      std::uint32_t step, piece;
      bool is_birth = false;
      std::uint32_t name = 0;  // Of a phase.
    };
    std::vector<PlanPiece> pieces;
    std::vector<Change> changes;  // By step; ends before births.
    bool is_sound = false;        // Nothing overlaps, nothing reaches beyond.
    bool has_phases = false;
  };
  struct Run {  // In a block.
    const Cut* cut = nullptr;
    std::vector<std::uint32_t> steps;  // Events that tell of its steps.
    std::int64_t freed_ns = -1;        // When its block was; -1: never.
    bool is_told = false;
  };

  const Cut& cut_of(std::uint64_t plan, std::uint32_t extent, std::uint64_t bytes);
  static Cut make_cut(const TracePlan& plan, std::uint32_t extent, std::uint64_t bytes);
  void find_runs();
  void tell_run(std::uint32_t event, const Run& run);
  void tell_all();

  const TraceFile& trace_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>, std::unique_ptr<Cut>> cuts_;
  std::unordered_map<std::uint32_t, Run> runs_;              // By the event of the block's allocation.
  std::unordered_map<std::uint64_t, std::uint32_t> blocks_;  // Ids of such blocks: that event.
  std::vector<TraceMoment> moments_;
  std::uint64_t told_ = 0;
};

}  // namespace plimsoll
