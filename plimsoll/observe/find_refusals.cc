// Requests that were refused, and what stood in their way.
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

}  // namespace

void find_refusals(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  const TracedMark* worst = nullptr;
  for (const TracedMark& mark : history.marks)
    if (mark.kind == MarkKind::kRefused && (!worst || mark.number > worst->number)) worst = &mark;
  if (!worst) return;
  const std::uint32_t moment = worst->moment == 0 ? 0 : worst->moment - 1;
  const std::vector<std::uint32_t> live =
      history.times.empty() ? std::vector<std::uint32_t>{} : live_blocks(history, moment);
  std::uint64_t in_use = 0;
  for (const std::uint32_t block : live) in_use += history.blocks[block].size;
  const std::string where = place_in_run(history, run, moment);
  Finding finding{
      .kind = "refused", .level = FindingLevel::kProblem, .bytes = in_use + worst->number, .moment = moment};
  finding.title = run.refusals == 1 ? fmt::format("A request for {} was refused", format_bytes(worst->number))
                                    : fmt::format("{} requests were refused, the largest for {}", run.refusals,
                                                  format_bytes(worst->number));
  finding.evidence = fmt::format(
      "\"{}\"{} asked for {}{} while {} were in use{}{}", history.names[worst->op],
      worst->scope == 0 ? "" : fmt::format(" in scope \"{}\"", history.names[worst->scope]),
      format_bytes_exactly(worst->number), where.empty() ? "" : fmt::format(" ({})", where), format_bytes(in_use),
      run.limit_bytes == 0 ? "" : fmt::format(" of {} ({})", format_bytes(run.limit_bytes), run.limit_name),
      live.empty() ? "" : fmt::format("; held by {}", by_category_text(history, live)));
  finding.remedy = fmt::format(
      "a limit of about {} would have served it; or use a smaller batch, shorter sequences, or free what is listed at "
      "that moment",
      format_bytes(in_use + worst->number));
  findings.push_back(std::move(finding));
}

}  // namespace plimsoll
