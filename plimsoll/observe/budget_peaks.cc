#include "plimsoll/observe/budget_peaks.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace plimsoll::internal {

std::vector<std::uint32_t> budget_parents(const TraceHistory& history) {
  std::vector<std::uint32_t> parents;
  for (std::uint32_t i = 0; i < history.budgets.size(); ++i) {
    std::uint32_t parent = kNoBudget;
    for (std::uint32_t before = i; before-- > 0 && parent == kNoBudget;)
      if (!history.budgets[i].parent.empty() && history.budgets[before].name == history.budgets[i].parent)
        parent = before;
    parents.push_back(parent);
  }
  return parents;
}

std::vector<BudgetPeak> budget_peaks(const TraceHistory& history) {
  std::vector<BudgetPeak> peaks;
  std::unordered_map<std::string_view, std::uint32_t> number_of;  // The names of budgets.
  for (std::uint32_t i = 0; i < history.budgets.size(); ++i) {
    peaks.push_back({.budget = i, .limit_bytes = history.budgets[i].limit});
    number_of[history.budgets[i].name] = 0;
  }
  if (peaks.empty()) return peaks;
  for (std::uint32_t i = 0; i < history.names.size(); ++i)
    if (const auto found = number_of.find(history.names[i]); found != number_of.end()) found->second = i;
  const std::vector<std::uint32_t> parents = budget_parents(history);
  std::vector<std::uint32_t> current(history.names.size(), kNoBudget), charged(history.blocks.size(), kNoBudget);
  std::vector<std::uint64_t> used(peaks.size(), 0);
  std::vector<BytesByCategory> by_category(peaks.size());
  std::uint64_t total = 0;
  std::size_t next = 0;
  for (std::uint32_t moment = 0; moment < history.times.size(); ++moment) {
    for (; next < peaks.size() && history.budgets[next].moment <= moment; ++next)
      if (const std::uint32_t name = number_of[history.budgets[next].name]; name != 0)
        current[name] = static_cast<std::uint32_t>(next);
    const TracedBlock& block = history.blocks[history.owner[moment]];
    const TracedLabel& label = history.labels[block.label];
    const auto category = static_cast<std::size_t>(label.category);
    const bool is_birth = block.born == moment;
    total += is_birth ? block.size : 0 - block.size;
    std::uint32_t& own = charged[history.owner[moment]];
    if (is_birth) own = label.budget == 0 ? kNoBudget : current[label.budget];
    for (std::uint32_t budget = own; budget != kNoBudget; budget = parents[budget]) {
      used[budget] += is_birth ? block.size : 0 - block.size;
      by_category[budget][category] += is_birth ? block.size : 0 - block.size;
      BudgetPeak& peak = peaks[budget];
      if (used[budget] <= peak.peak_bytes || !is_birth) continue;
      peak = {budget, peak.limit_bytes, used[budget], total - used[budget], moment, by_category[budget]};
    }
  }
  return peaks;
}

const BudgetPeak* nearest_to_limit(const TraceHistory& history, const std::vector<BudgetPeak>& peaks) {
  std::uint64_t devices = 0;
  for (const TraceArena& arena : history.arenas) devices = std::max(devices, arena.limit);
  const std::vector<std::uint32_t> parents = budget_parents(history);
  const auto use = [](const BudgetPeak& peak) {
    return static_cast<double>(peak.peak_bytes) / static_cast<double>(peak.limit_bytes);
  };
  const BudgetPeak* nearest = nullptr;
  for (const BudgetPeak& leaf : peaks) {
    const BudgetPeak *outermost = nullptr, *as_wide = nullptr;
    for (std::uint32_t budget = leaf.budget; budget != kNoBudget; budget = parents[budget]) {
      const BudgetPeak& peak = peaks[budget];
      if (peak.peak_bytes == 0 || peak.limit_bytes == 0) continue;
      if (peak.limit_bytes < devices) outermost = &peak;
      if (peak.limit_bytes == devices) as_wide = &peak;
    }
    if (!outermost) outermost = as_wide;
    if (outermost && (!nearest || use(*outermost) > use(*nearest))) nearest = outermost;
  }
  return nearest;
}

const BudgetPeak* budget_that_refused(const TraceHistory& history, const std::vector<BudgetPeak>& peaks,
                                      const TracedMark& refusal) {
  if (refusal.budget == 0) return nullptr;
  const auto found = std::find_if(peaks.rbegin(), peaks.rend(), [&](const BudgetPeak& peak) {
    return peak.limit_bytes == refusal.limit && history.budgets[peak.budget].name == history.names[refusal.budget];
  });
  return found == peaks.rend() ? nullptr : &*found;
}

}  // namespace plimsoll::internal
