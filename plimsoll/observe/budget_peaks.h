// BudgetPeaks: how full each budget of a run became, by the blocks that were charged to it or to one inside of it.
//
// Names may be used again: a block belongs to the budget that had its label's name last when the block was made.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/observe/run_summary.h"

namespace plimsoll {

struct BudgetPeak {
  std::uint32_t budget = 0;  // Among the history's.
  std::uint64_t limit_bytes = 0, peak_bytes = 0;
  std::uint64_t outside_bytes = 0;  // In use at that moment and not charged to it.
  std::uint32_t moment = 0;
  BytesByCategory by_category{};  // Of the peak.
};

// One for each budget of the history.
std::vector<BudgetPeak> budget_peaks(const TraceHistory& history);

// The budget that came nearest to its limit, of the outermost ones that are tighter than the device; nullptr: none.
const BudgetPeak* nearest_to_limit(const TraceHistory& history, const std::vector<BudgetPeak>& peaks);

// The budget that refused, by its name and limit; nullptr when the trace does not know it.
const BudgetPeak* budget_that_refused(const TraceHistory& history, const std::vector<BudgetPeak>& peaks,
                                      const TracedMark& refusal);

// The budget around one, when it was made; kNoBudget for none.
inline constexpr std::uint32_t kNoBudget = UINT32_MAX;
std::vector<std::uint32_t> budget_parents(const TraceHistory& history);

}  // namespace plimsoll
