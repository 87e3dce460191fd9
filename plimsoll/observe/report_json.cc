#include "plimsoll/observe/report_json.h"

#include "plimsoll/base/json.h"
#include "plimsoll/observe/internal/report_document.h"

#include "plimsoll/observe/budget_peaks.h"

namespace plimsoll {
namespace {

using Json = nlohmann::ordered_json;

template <class Bytes>
Json by_category(const Bytes& bytes) {
  Json result = Json::object();
  for (std::size_t i = 0; i < kCategories; ++i) result[category_name(static_cast<Category>(i))] = bytes[i];
  return result;
}

Json devices_of(const TraceHistory& history, const RunSummary& run) {
  Json devices = Json::array();
  for (std::size_t i = 0; i < history.arenas.size(); ++i)
    devices.push_back({{"name", history.arenas[i].name},
                       {"limit_bytes", history.arenas[i].limit},
                       {"page_bytes", history.arenas[i].page_bytes},
                       {"peak_bytes", run.arenas[i].peak_bytes},
                       {"peak_reserved_bytes", run.arenas[i].peak_reserved_bytes},
                       {"live_at_end_bytes", run.arenas[i].live_at_end}});
  return devices;
}

// Only the first ones; `refusals` counts all.
Json refused_of(const TraceHistory& history) {
  constexpr std::size_t kMost = 100;
  Json result = Json::array();
  for (const TracedMark& mark : history.marks) {
    if (mark.kind != MarkKind::kRefused) continue;
    if (result.size() == kMost) break;
    result.push_back({{"time_ns", mark.time_ns},
                      {"budget", history.names[mark.budget]},
                      {"device", history.names[mark.device]},
                      {"op", history.names[mark.op]},
                      {"scope", history.names[mark.scope]},
                      {"requested_bytes", mark.number},
                      {"limit_bytes", mark.limit},
                      {"in_use_bytes", mark.in_use},
                      {"smallest_sufficient_bytes", mark.sufficient},
                      {"text", mark.text}});
  }
  return result;
}

Json forecast_of(const TracedForecast& forecast) {
  if (!forecast.known) return nullptr;
  return {{"peak_bytes", forecast.peak_bytes},
          {"smallest_budget_bytes", forecast.smallest_budget_bytes},
          {"batch_size", forecast.batch_size},
          {"by_category", by_category(forecast.by_category)}};
}

Json findings_of(const TraceHistory& history, const std::vector<Finding>& findings) {
  Json result = Json::array();
  for (const Finding& finding : findings)
    result.push_back({{"kind", finding.kind},
                      {"level", finding_level_name(finding.level)},
                      {"title", finding.title},
                      {"evidence", finding.evidence},
                      {"remedy", finding.remedy},
                      {"bytes", finding.bytes},
                      {"moment", finding.moment},
                      {"time_ns", finding.moment < history.times.size() ? history.times[finding.moment] : 0}});
  return result;
}

}  // namespace

Json internal::report_document(const TraceHistory& history, const RunSummary& run,
                               const std::vector<Finding>& findings) {
  Json document{{"complete", history.complete},
                {"ring", history.ring},
                {"process", history.process},
                {"start_unix_ns", history.start_unix_ns},
                {"duration_ns", history.duration_ns},
                {"events", history.events},
                {"dropped_events", history.dropped_events},
                {"moments", history.times.size()},
                {"blocks", history.blocks.size()},
                {"steps", run.steps.size()},
                {"refusals", run.refusals},
                {"peak_bytes", run.peak_bytes},
                {"peak_requested_bytes", run.peak_requested_bytes},
                {"peak_time_ns", run.peak_ns},
                {"peak_moment", run.peak_moment}};
  document["peak_step"] = run.peak_step ? Json(*run.peak_step) : Json(nullptr);
  document["peak_phase"] = run.peak_phase;
  document["peak_by_category"] = by_category(run.peak_by_category);
  document["peak_unused_plan_bytes"] = run.peak_unused_bytes;
  document["plan_runs"] = {{"all", history.plan_runs}, {"shown", history.expanded_plan_runs}};
  document["reserved_at_peak_bytes"] = run.reserved_at_peak;
  document["peak_reserved_bytes"] = run.peak_reserved_bytes;
  document["live_at_start_bytes"] = run.live_at_start;
  document["live_at_end_bytes"] = run.live_at_end;
  document["limit"] = {{"name", run.limit_name},
                       {"bytes", run.limit_bytes},
                       {"own_bytes", run.limit.limit_bytes},
                       {"own_peak_bytes", run.limit.peak_bytes},
                       {"outside_bytes", run.limit.outside_bytes}};
  document["budgets"] = Json::array();
  for (const BudgetPeak& peak : budget_peaks(history)) {
    const TracedBudget& budget = history.budgets[peak.budget];
    document["budgets"].push_back({{"name", budget.name},
                                   {"parent", budget.parent},
                                   {"limit_bytes", budget.limit},
                                   {"peak_bytes", peak.peak_bytes}});
  }
  document["devices"] = devices_of(history, run);
  document["refused"] = refused_of(history);
  document["forecast"] = forecast_of(history.forecast);
  document["findings"] = findings_of(history, findings);
  return document;
}

std::string report_json(const TraceHistory& history, const RunSummary& run, const std::vector<Finding>& findings,
                        int indent) {
  return json_text(report_document(history, run, findings), indent);
}

}  // namespace plimsoll
