// Requests that were refused, and what held the memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plimsoll/base/bytes.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {
namespace {

// "activations 12.0 MiB, parameters 3.0 MiB": the largest three.
std::string by_category_text(const TraceHistory& history, const std::vector<std::uint32_t>& live) {
  BytesByCategory bytes{};
  for (const std::uint32_t block : live)
    bytes[static_cast<std::size_t>(history.labels[history.blocks[block].label].category)] += history.blocks[block].size;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kCategories; ++i)
    if (bytes[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bytes[a] > bytes[b]; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 3); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", category_name(static_cast<Category>(order[i])),
                        format_bytes(bytes[order[i]]));
  return text;
}

// Everything that one budget or device refused.
struct RefusalGroup {
  std::size_t count = 0;
  const TracedMark* worst = nullptr;  // The last of the largest.
};

// The batch that would have fit the limit, by the forecast; "" without a forecast.
std::string batch_text(const TracedForecast& forecast, std::uint64_t limit) {
  const std::uint64_t moving = growing_with_batch(forecast.by_category);
  const std::uint64_t fixed = forecast.peak_bytes - std::min(moving, forecast.peak_bytes);
  if (!forecast.known || forecast.peak_bytes <= limit || limit <= fixed || moving == 0) return "";
  const double fits =
      static_cast<double>(limit - fixed) / static_cast<double>(moving) * static_cast<double>(forecast.batch_size);
  return fits < 1 ? ""
                  : fmt::format("; or a batch of about {} instead of {}",
                                static_cast<std::uint64_t>(std::min(fits, 1e15)), forecast.batch_size);
}

std::string title_of(const TraceHistory& history, const RefusalGroup& group) {
  const std::string largest = format_bytes(group.worst->number);
  std::string who;
  if (group.worst->budget != 0)
    who = fmt::format("Budget \"{}\"", history.names[group.worst->budget]);
  else if (group.worst->device != 0)
    who = fmt::format("\"{}\"", history.names[group.worst->device]);
  if (who.empty())
    return group.count == 1 ? fmt::format("A request for {} was refused", largest)
                            : fmt::format("{} requests were refused, the largest for {}", group.count, largest);
  return group.count == 1 ? fmt::format("{} refused a request for {}", who, largest)
                          : fmt::format("{} refused {} requests, the largest for {}", who, group.count, largest);
}

Finding finding_of(const TraceHistory& history, const RunSummary& run, const RefusalGroup& group) {
  const TracedMark& worst = *group.worst;
  const std::uint32_t moment = worst.moment == 0 ? 0 : worst.moment - 1;
  const std::vector<std::uint32_t> live =
      history.times.empty() ? std::vector<std::uint32_t>{} : live_blocks(history, moment);
  std::uint64_t in_use = 0;
  for (const std::uint32_t block : live) in_use += history.blocks[block].size;
  const std::string where = place_in_run(history, run, moment);
  const std::uint64_t enough = worst.sufficient > 0 ? worst.sufficient : in_use + worst.number;
  Finding finding{.kind = "refused", .level = FindingLevel::kProblem, .bytes = enough, .moment = moment};
  finding.title = title_of(history, group);
  if (worst.text.empty())
    finding.evidence = fmt::format(
        "\"{}\"{} asked for {}{} while {} were in use{}", history.names[worst.op],
        worst.scope == 0 ? "" : fmt::format(" in scope \"{}\"", history.names[worst.scope]),
        format_bytes_exactly(worst.number), where.empty() ? "" : fmt::format(" ({})", where), format_bytes(in_use),
        run.limit_bytes == 0 ? "" : fmt::format(" of {} ({})", format_bytes(run.limit_bytes), run.limit_name));
  else
    finding.evidence = where.empty() ? worst.text : fmt::format("in {}: {}", where, worst.text);
  if (!live.empty()) finding.evidence += fmt::format("; in the process, {}", by_category_text(history, live));
  finding.remedy = fmt::format(
      "a limit of {} would have been enough{}; or use shorter sequences, or free what is listed at that moment",
      worst.sufficient > 0 ? format_bytes_exactly(enough) : "about " + format_bytes(enough),
      batch_text(history.forecast, worst.limit));
  return finding;
}

}  // namespace

void find_refusals(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  constexpr std::size_t kMost = 8;
  std::map<std::pair<std::uint32_t, std::uint32_t>, RefusalGroup> by_refuser;
  for (const TracedMark& mark : history.marks) {
    if (mark.kind != MarkKind::kRefused) continue;
    RefusalGroup& group = by_refuser[{mark.budget, mark.budget == 0 ? mark.device : 0}];
    ++group.count;
    if (!group.worst || mark.number >= group.worst->number) group.worst = &mark;
  }
  std::vector<RefusalGroup> groups;
  for (const auto& [refuser, group] : by_refuser) groups.push_back(group);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const RefusalGroup& a, const RefusalGroup& b) { return a.worst->number > b.worst->number; });
  groups.resize(std::min(groups.size(), kMost));
  for (const RefusalGroup& group : groups) findings.push_back(finding_of(history, run, group));
}

}  // namespace plimsoll
