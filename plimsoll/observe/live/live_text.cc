// LiveCounters for programs: JSON, and Prometheus' text format.
#include <fmt/format.h>

#include <string_view>

#include "plimsoll/base/json.h"
#include "plimsoll/observe/live/live_counters.h"

namespace plimsoll::internal {
namespace {

using Json = nlohmann::ordered_json;

// A metric with its lines; one without lines is left out.
class Metric {
 public:
  Metric(std::string& out, std::string_view name, std::string_view type, std::string_view help)
      : out_(out), name_(name), type_(type), help_(help) {}
  ~Metric() {
    if (!lines_.empty()) out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{3}", name_, help_, type_, lines_);
  }
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  template <class T>
  void add(const std::string& labels, T value) {
    lines_ += fmt::format("{}{} {}\n", name_, labels.empty() ? "" : "{" + labels + "}", value);
  }

 private:
  std::string& out_;
  const std::string_view name_, type_, help_;
  std::string lines_;
};

std::string label(std::string_view key, const std::string& value) {
  std::string escaped;
  for (const char letter : value) {
    if (letter == '\\' || letter == '"') escaped += '\\';
    escaped += letter;  // There are no newlines in text_of().
  }
  return fmt::format("{}=\"{}\"", key, escaped);
}

void add_devices(const LiveCounters& now, std::string& out) {
  struct Row {
    const char *name, *type, *help;
    std::uint64_t LiveDevice::*figure;
  };
  constexpr Row kRows[] = {
      {"plimsoll_used_bytes", "gauge", "Bytes of live blocks.", &LiveDevice::used},
      {"plimsoll_peak_used_bytes", "gauge", "The most bytes of live blocks so far.", &LiveDevice::peak},
      {"plimsoll_committed_bytes", "gauge", "Bytes of pages held: in use, cached and free.", &LiveDevice::reserved},
      {"plimsoll_peak_committed_bytes", "gauge", "The most bytes of pages held so far.", &LiveDevice::peak_reserved},
      {"plimsoll_limit_bytes", "gauge", "The device's limit.", &LiveDevice::limit},
      {"plimsoll_allocations_total", "counter", "Blocks allocated.", &LiveDevice::allocations},
      {"plimsoll_refusals_total", "counter", "Requests that did not fit.", &LiveDevice::refusals},
  };
  for (const Row& row : kRows) {
    Metric metric(out, row.name, row.type, row.help);
    for (std::size_t i = 0; i < now.num_devices; ++i)
      metric.add(label("device", text_of(now.devices[i].name)), now.devices[i].*row.figure);
  }
}

// Budgets of one name are added up: a metric's labels must differ.
void add_budgets(const LiveCounters& now, std::string& out) {
  struct Row {
    const char *name, *help;
    std::uint64_t LiveBudget::*figure;
  };
  constexpr Row kRows[] = {
      {"plimsoll_budget_used_bytes", "Bytes charged to the budget.", &LiveBudget::used},
      {"plimsoll_budget_peak_bytes", "The most bytes charged to the budget so far.", &LiveBudget::peak},
      {"plimsoll_budget_limit_bytes", "The budget's limit.", &LiveBudget::limit},
  };
  for (const Row& row : kRows) {
    std::vector<std::pair<std::string, std::uint64_t>> sums;
    for (std::size_t i = 0; i < now.num_budgets; ++i) {
      const LiveBudget& budget = now.budgets[i];
      const std::string parent = budget.parent < 0 ? "" : text_of(now.budgets[budget.parent].name);
      const std::string labels = label("budget", text_of(budget.name)) + "," + label("parent", parent);
      auto place = sums.begin();
      while (place != sums.end() && place->first != labels) ++place;
      if (place == sums.end())
        sums.emplace_back(labels, budget.*row.figure);
      else
        place->second += budget.*row.figure;
    }
    Metric metric(out, row.name, "gauge", row.help);
    for (const auto& [labels, sum] : sums) metric.add(labels, sum);
  }
}

}  // namespace

std::string metrics_text(const LiveCounters& now) {
  std::string out;
  Metric(out, "plimsoll_process_info", "gauge", "The watched process.")
      .add(label("name", text_of(now.name)) + "," + label("pid", std::to_string(now.process)), 1);
  add_devices(now, out);
  {
    Metric metric(out, "plimsoll_live_bytes", "gauge", "Bytes of live blocks by category, on all devices.");
    for (std::size_t i = 0; i < kCategories; ++i)
      metric.add(label("category", category_name(static_cast<Category>(i))), now.by_category[i]);
  }
  add_budgets(now, out);
  if (now.has_step) Metric(out, "plimsoll_step", "gauge", "The last training step that began.").add("", now.step);
  if (now.resident > 0)
    Metric(out, "plimsoll_process_resident_bytes", "gauge", "Physical memory of the process.").add("", now.resident);
  if (now.publications > 0) {
    Metric(out, "plimsoll_process_cpu_seconds_total", "counter", "Processor time of the process.")
        .add("", static_cast<double>(now.process_cpu_ns) * 1e-9);
    Metric(out, "plimsoll_publisher_cpu_seconds_total", "counter", "The part that publishing took.")
        .add("", static_cast<double>(now.publisher_cpu_ns) * 1e-9);
  }
  Metric(out, "plimsoll_updated_timestamp_seconds", "gauge", "When these figures were taken.")
      .add("", fmt::format("{:.3f}", static_cast<double>(now.updated_unix_ns) * 1e-9));
  return out;
}

std::string live_json(const LiveCounters& now, int indent) {
  Json document{{"process", now.process},
                {"name", text_of(now.name)},
                {"started_unix_ns", now.started_unix_ns},
                {"updated_unix_ns", now.updated_unix_ns},
                {"step", now.has_step ? Json(now.step) : Json(nullptr)},
                {"used_bytes", now.used()},
                {"peak_bytes", now.peak()},
                {"reserved_bytes", now.reserved()},
                {"refusals", now.refusals()},
                {"resident_bytes", now.resident},
                {"peak_resident_bytes", now.peak_resident},
                {"process_cpu_ns", now.process_cpu_ns},
                {"publisher_cpu_ns", now.publisher_cpu_ns},
                {"publications", now.publications},
                {"is_recording", now.is_recording != 0}};
  const NearestLimit nearest = nearest_limit(now);
  document["nearest_limit"] =
      nearest.limit == 0 ? Json(nullptr)
                         : Json{{"name", nearest.name}, {"used_bytes", nearest.used}, {"limit_bytes", nearest.limit}};
  document["top_category"] =
      now.top_category() < 0 ? Json(nullptr) : Json(category_name(static_cast<Category>(now.top_category())));
  for (std::size_t i = 0; i < kCategories; ++i)
    document["by_category"][category_name(static_cast<Category>(i))] = now.by_category[i];
  document["devices"] = document["budgets"] = document["holders"] = Json::array();
  for (std::size_t i = 0; i < now.num_devices; ++i) {
    const LiveDevice& device = now.devices[i];
    document["devices"].push_back({{"name", text_of(device.name)},
                                   {"used_bytes", device.used},
                                   {"peak_bytes", device.peak},
                                   {"reserved_bytes", device.reserved},
                                   {"peak_reserved_bytes", device.peak_reserved},
                                   {"limit_bytes", device.limit},
                                   {"allocations", device.allocations},
                                   {"refusals", device.refusals}});
  }
  for (std::size_t i = 0; i < now.num_budgets; ++i) {
    const LiveBudget& budget = now.budgets[i];
    document["budgets"].push_back(
        {{"name", text_of(budget.name)},
         {"parent", budget.parent < 0 ? Json(nullptr) : Json(text_of(now.budgets[budget.parent].name))},
         {"used_bytes", budget.used},
         {"peak_bytes", budget.peak},
         {"limit_bytes", budget.limit}});
  }
  for (std::size_t i = 0; i < now.num_holders; ++i) {
    const LiveHolder& holder = now.holders[i];
    document["holders"].push_back({{"op", text_of(holder.op)},
                                   {"scope", text_of(holder.scope)},
                                   {"category", category_name(static_cast<Category>(holder.category))},
                                   {"bytes", holder.bytes},
                                   {"blocks", holder.blocks}});
  }
  return json_text(document, indent);
}

}  // namespace plimsoll::internal
