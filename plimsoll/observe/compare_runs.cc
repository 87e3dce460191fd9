#include "plimsoll/observe/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/json.h"

namespace plimsoll::internal {
namespace {

using Key = std::tuple<std::string, Category>;
using Json = nlohmann::ordered_json;

ComparedRun run_of(const TraceHistory& history) {
  ComparedRun run{.summary = summarize(history), .duration_ns = history.duration_ns, .events = history.events};
  run.findings = diagnose(history, run.summary);
  return run;
}

std::string what_of(const TraceHistory& history, const TracedLabel& label) {
  if (label.is_unused) return "unused part of a plan";
  const std::string& op = history.names[label.op];
  const std::string& scope = history.names[label.scope];
  return (op.empty() ? "block" : op) + (scope.empty() ? "" : " in " + scope);
}

void add_groups(const TraceHistory& history, const RunSummary& run, std::uint64_t ComparedGroup::*side,
                std::map<Key, ComparedGroup>& groups) {
  if (history.times.empty()) return;
  std::map<std::uint32_t, std::uint64_t> by_label;
  for (const std::uint32_t block : live_blocks(history, run.peak_moment))
    by_label[history.blocks[block].label] += history.blocks[block].size;
  for (const auto& [number, bytes] : by_label) {
    const TracedLabel& label = history.labels[number];
    ComparedGroup& group = groups[{what_of(history, label), label.category}];
    group.what = what_of(history, label);
    group.category = label.category;
    group.*side += bytes;
  }
}

// The problems and warnings in `findings` whose title does not occur in `others`.
std::vector<Finding> only_in(const std::vector<Finding>& findings, const std::vector<Finding>& others) {
  std::vector<Finding> result;
  for (const Finding& finding : findings) {
    const bool known = std::any_of(others.begin(), others.end(), [&](const Finding& other) {
      return other.kind == finding.kind && other.title == finding.title;
    });
    if (finding.level != FindingLevel::kNote && !known) result.push_back(finding);
  }
  return result;
}

Json run_json(const ComparedRun& run, const std::string& name) {
  Json result{{"name", name},
              {"peak_bytes", run.summary.peak_bytes},
              {"peak_reserved_bytes", run.summary.peak_reserved_bytes},
              {"live_at_end_bytes", run.summary.live_at_end},
              {"steps", run.summary.steps.size()},
              {"refusals", run.summary.refusals},
              {"duration_ns", run.duration_ns},
              {"events", run.events}};
  for (std::size_t i = 0; i < kCategories; ++i)
    result["peak_by_category"][category_name(static_cast<Category>(i))] = run.summary.peak_by_category[i];
  return result;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json result = Json::array();
  for (const Finding& finding : findings)
    result.push_back({{"kind", finding.kind}, {"level", finding_level_name(finding.level)}, {"title", finding.title}});
  return result;
}

}  // namespace

RunComparison compare_runs(const TraceHistory& before, const TraceHistory& after) {
  RunComparison runs{.before = run_of(before), .after = run_of(after)};
  std::map<Key, ComparedGroup> groups;
  add_groups(before, runs.before.summary, &ComparedGroup::before, groups);
  add_groups(after, runs.after.summary, &ComparedGroup::after, groups);
  for (auto& [key, group] : groups) runs.groups.push_back(std::move(group));
  std::stable_sort(runs.groups.begin(), runs.groups.end(), [](const ComparedGroup& a, const ComparedGroup& b) {
    return std::abs(a.change()) != std::abs(b.change()) ? std::abs(a.change()) > std::abs(b.change())
                                                        : a.after > b.after;
  });
  runs.fresh = only_in(runs.after.findings, runs.before.findings);
  runs.gone = only_in(runs.before.findings, runs.after.findings);
  return runs;
}

std::vector<ComparedFigure> compared_figures(const RunComparison& runs) {
  const RunSummary &a = runs.before.summary, &b = runs.after.summary;
  std::vector<ComparedFigure> figures = {{"peak", a.peak_bytes, b.peak_bytes}};
  for (std::size_t i = 0; i < kCategories; ++i)
    if (a.peak_by_category[i] > 0 || b.peak_by_category[i] > 0)
      figures.push_back({fmt::format("peak: {}", category_name(static_cast<Category>(i))), a.peak_by_category[i],
                         b.peak_by_category[i]});
  figures.push_back({"reserved at most", a.peak_reserved_bytes, b.peak_reserved_bytes});
  figures.push_back({"live at the end", a.live_at_end, b.live_at_end});
  figures.push_back({"steps", a.steps.size(), b.steps.size(), false});
  figures.push_back({"refusals", a.refusals, b.refusals, false});
  return figures;
}

std::string format_change(std::int64_t bytes) {
  return bytes == 0 ? "0 B"
                    : (bytes > 0 ? "+" : "-") + format_bytes(static_cast<std::size_t>(bytes < 0 ? -bytes : bytes));
}

std::string comparison_json(const RunComparison& runs, const std::string& before_name, const std::string& after_name,
                            int indent) {
  Json document{{"before", run_json(runs.before, before_name)}, {"after", run_json(runs.after, after_name)}};
  document["peak_change_bytes"] = static_cast<std::int64_t>(runs.after.summary.peak_bytes) -
                                  static_cast<std::int64_t>(runs.before.summary.peak_bytes);
  document["groups"] = Json::array();
  for (const ComparedGroup& group : runs.groups)
    document["groups"].push_back({{"what", group.what},
                                  {"category", category_name(group.category)},
                                  {"before_bytes", group.before},
                                  {"after_bytes", group.after},
                                  {"change_bytes", group.change()}});
  document["new_findings"] = findings_json(runs.fresh);
  document["gone_findings"] = findings_json(runs.gone);
  return json_text(document, indent);
}

}  // namespace plimsoll::internal
