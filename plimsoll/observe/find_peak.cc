// The fullest moment: what was live, what was lost to rounding and holes, what caches held; forecast and measurement.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "plimsoll/base/bytes.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

struct Holding {
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  std::uint32_t label = 0;
};

// Live blocks by operation and scope, most bytes first.
std::vector<Holding> holdings_at(const TraceHistory& history, std::uint32_t moment) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Holding> groups;
  for (const std::uint32_t i : live_blocks(history, moment)) {
    const TracedBlock& block = history.blocks[i];
    const TracedLabel& label = history.labels[block.label];
    Holding& group = groups[{label.op, label.scope}];
    if (group.count++ == 0) group.label = block.label;
    group.bytes += block.size;
  }
  std::vector<Holding> result;
  for (const auto& [key, group] : groups) result.push_back(group);
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return result;
}

void find_holders(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kCategories; ++i)
    if (run.peak_by_category[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return run.peak_by_category[a] > run.peak_by_category[b]; });
  std::string kinds, largest;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 3); ++i)
    kinds += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", category_name(static_cast<Category>(order[i])),
                         100 * share(run.peak_by_category[order[i]], run.peak_bytes));
  const std::vector<Holding> holdings = holdings_at(history, run.peak_moment);
  for (std::size_t i = 0; i < std::min<std::size_t>(holdings.size(), 4); ++i) {
    TracedLabel label = history.labels[holdings[i].label];
    if (holdings[i].count > 1) label.name = 0;  // The others have other names.
    largest += fmt::format("{}{} x {} {}", i == 0 ? "" : ", ", holdings[i].count, label_text(history, label),
                           format_bytes(holdings[i].bytes));
  }
  const std::string where = place_in_run(history, run, run.peak_moment);
  findings.push_back({.kind = "peak",
                      .level = FindingLevel::kNote,
                      .title = fmt::format("The peak is {}{}: {}", format_bytes(run.peak_bytes),
                                           where.empty() ? "" : fmt::format(", in {}", where), kinds),
                      .evidence = fmt::format("largest holders: {}", largest),
                      .bytes = run.peak_bytes,
                      .moment = run.peak_moment});
}

// Free bytes between blocks, below the highest, at the peak.
void find_holes(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  if (run.reserved_at_peak <= run.peak_bytes) return;
  const std::uint64_t idle = run.reserved_at_peak - run.peak_bytes;
  if (share(idle, run.reserved_at_peak) < 0.2 || idle < 1_MiB) return;
  std::vector<std::uint32_t> live = live_blocks(history, run.peak_moment);
  const auto place = [&](std::uint32_t i) { return std::tuple(history.blocks[i].arena, history.blocks[i].offset); };
  std::sort(live.begin(), live.end(), [&](auto a, auto b) { return place(a) < place(b); });
  std::uint64_t largest = 0, between = 0, end = 0;
  std::uint32_t arena = UINT32_MAX;
  std::size_t holes = 0;
  for (const std::uint32_t i : live) {
    const TracedBlock& block = history.blocks[i];
    if (block.arena != arena) arena = block.arena, end = 0;
    if (block.offset > end && block.offset - end <= idle) {  // Wider ones have no pages: they are address space only.
      ++holes;
      between += block.offset - end;
      largest = std::max(largest, block.offset - end);
    }
    end = block.offset + block.size;
  }
  findings.push_back(
      {.kind = "fragmentation",
       .level = FindingLevel::kNote,
       .title = fmt::format("At the peak {} were reserved for {} in use", format_bytes(run.reserved_at_peak),
                            format_bytes(run.peak_bytes)),
       .evidence = holes == 0 ? "no holes between blocks: the rest is free at the ends, or in caches of freed blocks"
                              : fmt::format("{} in {} holes between blocks, the largest {}; the rest is free at the "
                                            "ends, or in caches of freed blocks",
                                            format_bytes(between), holes, format_bytes(largest)),
       .remedy = "it never causes a refusal: free pages are moved to where they are needed; turn growth on to reserve "
                 "less (config::set_memory_growth), or call trim() when work is over",
       .bytes = idle,
       .moment = run.peak_moment});
}

void find_kinds(const RunSummary& run, std::vector<Finding>& findings) {
  const std::uint64_t caches = run.peak_by_category[static_cast<std::size_t>(Category::kCache)];
  if (share(caches, run.peak_bytes) > 0.1)
    findings.push_back({.kind = "caches",
                        .level = FindingLevel::kWarning,
                        .title = fmt::format("Caches hold {:.0f} % of the peak", 100 * share(caches, run.peak_bytes)),
                        .evidence = fmt::format("{} of {}", format_bytes(caches), format_bytes(run.peak_bytes)),
                        .remedy =
                            "they are emptied under pressure; to keep them smaller, use fewer distinct input shapes "
                            "(pad or bucket), or destroy functions that are no longer called",
                        .bytes = caches,
                        .moment = run.peak_moment});
  const std::uint64_t rounding = run.peak_bytes - run.peak_requested_bytes;
  if (share(rounding, run.peak_bytes) > 0.05 && rounding > 64_KiB)
    findings.push_back({.kind = "rounding",
                        .level = FindingLevel::kNote,
                        .title = fmt::format("{} of the peak are lost to rounding", format_bytes(rounding)),
                        .evidence = "blocks are multiples of 64 bytes; many tiny tensors were live",
                        .remedy = "stack small tensors into one",
                        .bytes = rounding,
                        .moment = run.peak_moment});
}

void find_forecast(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  if (!history.forecast.known || history.forecast.peak_bytes == 0) return;
  const double ratio = static_cast<double>(run.peak_bytes) / static_cast<double>(history.forecast.peak_bytes);
  const bool above = ratio > 1.01;
  findings.push_back(
      {.kind = "forecast",
       .level = above ? FindingLevel::kWarning : FindingLevel::kNote,
       .title = fmt::format("The forecast was {}, the measured peak is {} ({:+.1f} %)",
                            format_bytes(history.forecast.peak_bytes), format_bytes(run.peak_bytes), 100 * (ratio - 1)),
       .evidence = above ? "the trace counts everything in the process, the forecast one training step of the model"
                   : ratio > 1 ? "a step took what was forecast; the trace counts the process's other tensors too"
                               : "a step never needed more than was forecast",
       .bytes = above ? run.peak_bytes - history.forecast.peak_bytes : 0,
       .moment = run.peak_moment});
}

}  // namespace

void find_peak(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  if (run.peak_bytes == 0) return;
  find_holders(history, run, findings);
  find_holes(history, run, findings);
  find_kinds(run, findings);
  find_forecast(history, run, findings);
}

}  // namespace plimsoll
