// run_budget(): runs an operator log under a byte limit, with a planner that knows the future or a policy that does
// not.
//
//   OperatorLog log = read_operator_log("unet_train.csv.gz");
//   BudgetRun run = run_budget(log, {.limit = 350'000'000});
//   run.completed; run.slowdown();
//
// The planner sees one training step at a time, as a runtime would. Its schedules are replayed by validate_schedule().
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "plimsoll/cli/replay/operator_log.h"
#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {

struct BudgetRunOptions {
  std::size_t limit = 0;
  std::optional<OnlinePolicy> policy;         // Empty: the planner.
  double spill_bytes_per_second = 0;          // 0: recompute only.
  std::function<void(double)> progress = {};  // The share that is done.
};

struct BudgetRun {
  bool completed = false;
  int stopped_at = -1;  // The training step that did not fit, when known.
  std::size_t peak_bytes = 0;
  std::uint64_t base_ns = 0, recompute_ns = 0, stall_ns = 0, bound_ns = 0;
  std::size_t stored_bytes = 0;
  std::size_t evictions = 0;

  double slowdown() const;
};

BudgetRun run_budget(const OperatorLog& log, const BudgetRunOptions& options);

}  // namespace plimsoll::internal
