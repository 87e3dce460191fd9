// Sessions that were never closed, graphs that grow, tapes that are kept.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plimsoll/observe/findings.h"

namespace plimsoll {
namespace {

std::size_t step_of(const RunSummary& run, std::uint32_t moment) {
  const auto after = std::upper_bound(run.steps.begin(), run.steps.end(), moment,
                                      [](std::uint32_t m, const StepSummary& step) { return m < step.first_moment; });
  return static_cast<std::size_t>(after - run.steps.begin());
}

std::string named(const TracedHolder& holder) {
  return holder.name.empty() ? fmt::format("number {}", holder.number) : fmt::format("\"{}\"", holder.name);
}

void find_sessions(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  std::size_t opened = 0, open = 0;
  const TracedHolder* first = nullptr;
  for (const TracedHolder& holder : history.holders) {
    if (holder.kind != "session" || !holder.opened) continue;
    ++opened;
    if (holder.closed) continue;
    ++open;
    if (!first) first = &holder;
  }
  if (open < 2 && !(open == 1 && opened > 1)) return;  // One that lives as long as the program is normal.
  const std::string where = place_in_run(history, run, first->opened_moment);
  findings.push_back({.kind = "session never closed",
                      .level = open > 1 ? FindingLevel::kProblem : FindingLevel::kWarning,
                      .title = fmt::format("{} of {} sessions were never closed", open, opened),
                      .evidence = fmt::format("the first of them, {}, was opened {:.3f} s into the run{}",
                                              named(*first), static_cast<double>(first->opened_ns) * 1e-9,
                                              where.empty() ? "" : fmt::format(" ({})", where)),
                      .remedy = "let each Session go out of scope, or call close(); reuse one session for many runs",
                      .bytes = open,
                      .moment = first->opened_moment});
}

void find_growing_graphs(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  constexpr std::size_t kLeastRises = 3;
  for (const TracedHolder& holder : history.holders) {
    if (holder.sizes.size() < kLeastRises + 1) continue;
    std::size_t rises = 0;
    for (std::size_t i = 2; i < holder.sizes.size(); ++i) rises += holder.sizes[i].count > holder.sizes[i - 1].count;
    const auto &first = holder.sizes[1], &last = holder.sizes.back();
    if (rises < kLeastRises || last.count <= first.count) continue;
    const std::size_t steps = step_of(run, last.moment) - step_of(run, first.moment);
    findings.push_back(
        {.kind = "graph grows",
         .level = FindingLevel::kProblem,
         .title = fmt::format("The {} {} grows while it runs", holder.kind, named(holder)),
         .evidence = fmt::format("from {} to {} nodes in {} runs that each found it larger{}", first.count, last.count,
                                 rises, steps == 0 ? "" : fmt::format(", over {} steps", steps)),
         .remedy =
             "operations are added to it inside the loop: build them once before it, and call graph.finalize() so "
             "that the line that adds one throws",
         .bytes = last.count - first.count,
         .moment = last.moment});
  }
}

void find_kept_tapes(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  std::size_t kept = 0, longest = 0;
  const TracedHolder* worst = nullptr;
  for (const TracedHolder& holder : history.holders) {
    if (holder.kind != "tape" || !holder.persistent) continue;
    const auto end = holder.closed ? holder.closed_moment : static_cast<std::uint32_t>(history.times.size());
    const std::size_t steps = step_of(run, end) - step_of(run, holder.opened_moment);
    if (holder.closed && steps < 2) continue;
    ++kept;
    if (!worst || steps > longest) worst = &holder, longest = steps;
  }
  if (!worst) return;
  findings.push_back(
      {.kind = "persistent tape",
       .level = kept > 1 ? FindingLevel::kProblem : FindingLevel::kWarning,
       .title = kept == 1 ? "A persistent tape is kept" : fmt::format("{} persistent tapes are kept", kept),
       .evidence = fmt::format("one opened {:.3f} s into the run {}{}", static_cast<double>(worst->opened_ns) * 1e-9,
                               worst->closed ? "was kept" : "was never released",
                               longest == 0 ? "" : fmt::format(" over {} steps", longest)),
       .remedy =
           "a persistent tape holds every value its gradients need until it is destroyed: make it inside the step, "
           "or leave .persistent off when one gradient is enough",
       .bytes = kept,
       .moment = worst->opened_moment});
}

}  // namespace

void find_open_holders(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  find_sessions(history, run, findings);
  find_growing_graphs(history, run, findings);
  find_kept_tapes(history, run, findings);
}

}  // namespace plimsoll
