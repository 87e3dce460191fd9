// BudgetPeaks: how full each budget of a run became, from the blocks charged to it or to a budget inside it.
//
// Names may be reused: a block belongs to the latest budget with its label's name when the block was made.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/observe/run_summary.h"

namespace plimsoll::internal {

struct BudgetPeak {
  std::uint32_t budget = 0;  // Index in the history's budgets.
  std::uint64_t limit_bytes = 0, peak_bytes = 0;
  std::uint64_t outside_bytes = 0;  // In use at that moment but not charged to it.
  std::uint32_t moment = 0;
  BytesByCategory by_category{};  // At the peak.
};

// One for each budget of the history.
std::vector<BudgetPeak> budget_peaks(const TraceHistory& history);

// The outermost budget tighter than the device that came nearest to its limit; nullptr: none.
const BudgetPeak* nearest_to_limit(const TraceHistory& history, const std::vector<BudgetPeak>& peaks);

// The budget that refused, found by name and limit; nullptr when it is not in the trace.
const BudgetPeak* budget_that_refused(const TraceHistory& history, const std::vector<BudgetPeak>& peaks,
                                      const TracedMark& refusal);

// The parent of a budget when it was made; kNoBudget for none.
inline constexpr std::uint32_t kNoBudget = UINT32_MAX;
std::vector<std::uint32_t> budget_parents(const TraceHistory& history);

}  // namespace plimsoll::internal
