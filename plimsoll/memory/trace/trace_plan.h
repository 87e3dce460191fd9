// TracePlanRun: reports to a trace what is inside blocks whose contents were placed beforehand, while they are used.
//
//   TracePlanRun run(known, plan, blocks);                     // do not make one while nothing records
//   for (...) {
//     work();
//     if (run.times_steps()) run.step_done();
//   }
//   run.finish();
//
// The plan is described once per recording; a run then takes one event per 200 steps, however large the plan is. Steps
// that are long enough (kTimedStepNs) are timed one by one, otherwise the run as a whole. Thread safety: a run and its
// KnownPlan belong to one thread at a time. Cost: about 50 ns per run, 25 ns per timed step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"

namespace plimsoll::internal {

// A value that has its bytes from the start of step `first` to the start of step `end`.
struct PlacedValue {
  BlockLabel label;          // Operation, scope, name, category, shape.
  std::uint32_t extent = 0;  // The block it lies in, among those of the plan.
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t first = 0, end = 0;
};

// What the steps from `first` on are for, until the next one: "forward", "backward", "update".
struct PlacedPhase {
  std::uint32_t first = 0;
  const char* name = "";
};

struct PlacedValues {
  std::uint32_t steps = 0;
  std::vector<PlacedValue> values;
  std::vector<PlacedPhase> phases;  // By step, from step 0 on; empty when there is nothing to report.
};

// A plan's number in a trace; kept by whoever runs the plan.
struct KnownPlan {
  std::uint64_t recording = 0;  // The recording in which it is valid.
  std::uint32_t number = 0;     // UINT32_MAX: not in the trace, because there was no room.
  bool short_steps = false;     // A run has shown that they are too short to be timed one by one.
};

class PLIMSOLL_API TracePlanRun {
 public:
  static constexpr std::int64_t kTimedStepNs = 4000;

  // `blocks`: ids of the plan's blocks, 0 where it has none. All must stay valid until finish().
  TracePlanRun(KnownPlan& known, const PlacedValues& plan, std::span<const std::uint64_t> blocks) noexcept;

  bool times_steps() const noexcept { return times_steps_; }
  void step_done() noexcept;
  void finish() noexcept;  // Call when all steps are done; not when one of them failed.

 private:
  void tell(std::uint32_t steps) noexcept;

  KnownPlan& known_;
  const PlacedValues& plan_;
  const std::span<const std::uint64_t> blocks_;
  const bool times_steps_;
  std::uint32_t timed_ = 0, told_ = 0;  // Steps timed but not yet reported; steps reported.
  const std::int64_t start_ns_;
  std::int64_t last_ns_;
  std::array<std::uint32_t, 200> durations_;
};

}  // namespace plimsoll::internal
