#include "plimsoll/observe/findings.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll {
namespace {

void find_gaps(const TraceHistory& history, std::vector<Finding>& findings) {
  const auto add = [&](std::string title, std::string evidence, std::string remedy) {
    findings.push_back({.kind = "incomplete trace",
                        .level = FindingLevel::kNote,
                        .title = std::move(title),
                        .evidence = std::move(evidence),
                        .remedy = std::move(remedy)});
  };
  if (!history.complete)
    add("The recording has no end",
        "the process ended, or was killed, before the recorder finished; the findings cover the file up to the last "
        "whole block",
        "");
  if (history.dropped_events > 0)
    add(fmt::format("{} events are missing", history.dropped_events),
        history.ring ? "the ring kept the last events only; blocks from before them are unknown"
                     : "the file's size limit was reached, or the disk failed",
        "record with a larger TraceOptions::max_bytes");
}

}  // namespace

const char* finding_level_name(FindingLevel level) noexcept {
  constexpr const char* kNames[] = {"problem", "warning", "note"};
  return kNames[static_cast<std::size_t>(level)];
}

std::uint64_t growing_with_batch(const BytesByCategory& bytes) {
  const auto of = [&](Category category) { return bytes[static_cast<std::size_t>(category)]; };
  const std::uint64_t gradients = of(Category::kGradients);
  return of(Category::kActivations) + of(Category::kInputs) + of(Category::kWorkspace) + gradients -
         std::min(gradients, of(Category::kParameters));
}

std::string place_in_run(const TraceHistory& history, const RunSummary& run, std::uint32_t moment) {
  std::string text;
  const auto after = std::upper_bound(run.steps.begin(), run.steps.end(), moment,
                                      [](std::uint32_t m, const StepSummary& step) { return m < step.first_moment; });
  if (after != run.steps.begin()) text = fmt::format("step {}", std::prev(after)->number);
  const TracedMark* phase = nullptr;
  for (const TracedMark& mark : history.marks) {
    if (mark.moment > moment) break;
    if (mark.kind == MarkKind::kPhase) phase = &mark;
  }
  if (phase) text += fmt::format("{}phase \"{}\"", text.empty() ? "" : ", ", phase->text);
  return text;
}

std::vector<Finding> diagnose(const TraceHistory& history, const RunSummary& run) {
  std::vector<Finding> findings;
  find_refusals(history, run, findings);
  find_growth(history, run, findings);
  find_open_holders(history, run, findings);
  find_peak(history, run, findings);
  find_room(history, run, findings);
  find_recomputing(history, findings);
  find_gaps(history, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (const bool refused = a.kind == "refused"; refused != (b.kind == "refused")) return refused;
    return a.level != b.level ? a.level < b.level : a.bytes > b.bytes;
  });
  return findings;
}

}  // namespace plimsoll
