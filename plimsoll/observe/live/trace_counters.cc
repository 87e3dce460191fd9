#include "plimsoll/observe/live/trace_counters.h"

#include <algorithm>
#include <unordered_map>

#include "plimsoll/observe/budget_peaks.h"

namespace plimsoll::internal {
namespace {

void add_devices(const TraceHistory& history, const RunSummary& run, LiveCounters& counters) {
  counters.num_devices = static_cast<std::uint32_t>(std::min(history.arenas.size(), LiveCounters::kDevices));
  for (std::size_t i = 0; i < counters.num_devices; ++i) {
    LiveDevice& device = counters.devices[i];
    set_text(device.name, history.arenas[i].name);
    device.limit = history.arenas[i].limit;
    if (i >= run.arenas.size()) continue;
    device.used = run.arenas[i].live_at_end;
    device.peak = run.arenas[i].peak_bytes;
    device.peak_reserved = run.arenas[i].peak_reserved_bytes;
  }
  for (const TracedCommit& commit : history.commits)
    if (commit.arena < counters.num_devices) counters.devices[commit.arena].reserved = commit.bytes;
  for (const TracedBlock& block : history.blocks) {
    if (block.arena < counters.num_devices) ++counters.devices[block.arena].allocations;
    if (block.died == TracedBlock::kNever)
      counters.by_category[static_cast<std::size_t>(history.labels[block.label].category)] += block.size;
  }
  for (const TracedMark& mark : history.marks)
    if (mark.kind == MarkKind::kRefused && mark.arena < counters.num_devices) ++counters.devices[mark.arena].refusals;
}

// By budget: what is live at the end and charged to it or below it.
std::vector<std::uint64_t> used_at_end(const TraceHistory& history) {
  std::vector<std::uint64_t> used(history.budgets.size(), 0);
  std::unordered_map<std::string, std::uint32_t> latest;
  for (std::uint32_t i = 0; i < history.budgets.size(); ++i) latest[history.budgets[i].name] = i;
  const std::vector<std::uint32_t> parents = budget_parents(history);
  for (const TracedBlock& block : history.blocks) {
    if (block.died != TracedBlock::kNever) continue;
    const auto found = latest.find(history.names[history.labels[block.label].budget]);
    if (found == latest.end()) continue;
    std::uint32_t budget = found->second;
    for (std::size_t depth = 0; budget != kNoBudget && depth <= parents.size(); ++depth, budget = parents[budget])
      used[budget] += block.size;
  }
  return used;
}

void add_budgets(const TraceHistory& history, LiveCounters& counters) {
  const std::vector<std::uint64_t> used = used_at_end(history);
  counters.all_budgets = static_cast<std::uint32_t>(history.budgets.size());
  for (const BudgetPeak& peak : budget_peaks(history)) {
    if (counters.num_budgets == LiveCounters::kBudgets) break;
    const TracedBudget& traced = history.budgets[peak.budget];
    LiveBudget& budget = counters.budgets[counters.num_budgets];
    set_text(budget.name, traced.name);
    budget.limit = traced.limit;
    budget.peak = peak.peak_bytes;
    budget.used = used[peak.budget];
    for (std::uint32_t above = 0; above < counters.num_budgets && !traced.parent.empty(); ++above)
      if (counters.budgets[above].name == traced.parent) budget.parent = static_cast<std::int32_t>(above);
    ++counters.num_budgets;
  }
}

void add_holders(const TraceHistory& history, LiveCounters& counters) {
  std::unordered_map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> by_label;
  for (const TracedBlock& block : history.blocks) {
    if (block.died != TracedBlock::kNever) continue;
    auto& [bytes, blocks] = by_label[block.label];
    bytes += block.size;
    ++blocks;
  }
  std::vector<std::pair<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>>> order(by_label.begin(),
                                                                                       by_label.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.first != b.second.first ? a.second.first > b.second.first : a.first < b.first;
  });
  counters.num_holders = static_cast<std::uint32_t>(std::min(order.size(), LiveCounters::kHolders));
  for (std::size_t i = 0; i < counters.num_holders; ++i) {
    const TracedLabel& label = history.labels[order[i].first];
    LiveHolder& holder = counters.holders[i];
    set_text(holder.op, history.names[label.op]);
    set_text(holder.scope, history.names[label.scope]);
    holder.category = static_cast<std::uint32_t>(label.category);
    std::tie(holder.bytes, holder.blocks) = order[i].second;
  }
}

}  // namespace

LiveCounters counters_at_end(const TraceHistory& history, const RunSummary& run, const std::string& name) {
  LiveCounters counters;
  set_text(counters.name, name);
  counters.process = history.process;
  counters.started_unix_ns = history.start_unix_ns;
  counters.updated_unix_ns = counters.counted_unix_ns = history.start_unix_ns + history.duration_ns;
  counters.is_recording = !history.complete;
  if (!run.steps.empty()) {
    counters.has_step = 1;
    counters.step = run.steps.back().number;
  }
  add_devices(history, run, counters);
  add_budgets(history, counters);
  add_holders(history, counters);
  return counters;
}

}  // namespace plimsoll::internal
