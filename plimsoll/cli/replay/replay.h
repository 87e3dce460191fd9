// replay: measures a trace under a policy: time per operation, bytes reserved, requests refused.
//
//   ReplayResult result = replay(read_trace("mlp.csv"), {.policy = ReplayPolicy::kBfc, .limit = 24_MiB});
//   result.ns_per_op; result.peak_reserved; result.refusals;
//
// The bytes come from one untimed pass over a fresh resource; the time from `repeat` passes over another one,
// measured in CPU time of the thread.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "plimsoll/cli/replay/replay_strip.h"
#include "plimsoll/cli/replay/trace_csv.h"

namespace plimsoll::internal {

enum class ReplayPolicy {
  kArena,  // Plimsoll's own.
  kBfc,    // TensorFlow's.
};
const char* policy_name(ReplayPolicy policy) noexcept;

struct ReplayOptions {
  ReplayPolicy policy = ReplayPolicy::kArena;
  std::size_t limit = 0;  // 0: none.
  bool growth = false;    // With kBfc always on without a limit: a fixed pool takes the whole limit at once.
  int repeat = 5;         // Timed passes; 0 measures bytes only.
  bool touch = false;
  std::function<void(int pass, int of)> progress;  // Called before each pass.
};

struct ReplayResult {
  double ns_per_op = 0;                  // Best timed pass.
  double ns_per_op_mean = 0;             // Mean of the timed passes.
  std::size_t peak_in_use = 0;           // Most bytes handed out, rounding included.
  std::size_t peak_reserved = 0;         // Most bytes taken from the system.
  std::size_t refusals = 0;              // In one pass.
  std::size_t limit = 0;                 // In force; the policy's own when none was given.
  std::size_t pages_moved = 0;           // By the untimed pass.
  std::vector<OccupancyExtent> at_peak;  // The layout when most bytes were live.
};

ReplayResult replay(const Trace& trace, const ReplayOptions& options);

// The smallest fixed pool in which TensorFlow's policy runs the trace without a refusal, found by bisection
// to 0.2 % of the live bytes; 0 when no pool up to 8 times the live bytes does (the system has no such addresses).
std::size_t smallest_bfc_pool(const Trace& trace);

}  // namespace plimsoll::internal
