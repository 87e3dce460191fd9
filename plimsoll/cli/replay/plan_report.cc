#include "plimsoll/cli/replay/plan_report.h"

#include <fmt/core.h>

#include <charconv>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

bool has_capacity(const Constraints& constraints) { return constraints.capacity != Constraints().capacity; }

std::string verdict(const Constraints& constraints, const Plan& plan) {
  switch (plan.proof) {
    case Proof::kOptimal:
      return "optimal: no plan is smaller";
    case Proof::kFeasible:
      return fmt::format(
          "feasible: at most {:.2f} % above the optimum",
          100.0 * static_cast<double>(plan.peak - plan.lower_bound) / static_cast<double>(plan.lower_bound));
    case Proof::kInfeasible:
      return fmt::format("infeasible: at least {} are needed, {} more than the capacity",
                         format_bytes(plan.lower_bound), format_bytes(plan.lower_bound - constraints.capacity));
    case Proof::kUnknown:
      return "unknown: nothing that fits was found in time; raise --time or --capacity";
  }
  return "";
}

}  // namespace

std::string plan_table(const Lifetimes& lifetimes, const Constraints& constraints, const Plan& plan) {
  std::string text = fmt::format("buffers      {}\n", lifetimes.buffers.size());
  text += fmt::format("peak         {}\n", format_bytes_exactly(plan.peak));
  text += fmt::format("lower bound  {}\n", format_bytes_exactly(plan.lower_bound));
  if (has_capacity(constraints)) text += fmt::format("capacity     {}\n", format_bytes_exactly(constraints.capacity));
  text += fmt::format("proof        {}\n", verdict(constraints, plan));
  text += fmt::format("time         {:.3f} s, {} nodes; first plan after {:.2f} ms\n", plan.seconds, plan.nodes,
                      1e3 * plan.first_plan_seconds);
  return text;
}

nlohmann::ordered_json plan_json(const Lifetimes& lifetimes, const Constraints& constraints, const Plan& plan) {
  nlohmann::ordered_json json;
  json["buffers"] = lifetimes.buffers.size();
  json["peak"] = plan.peak;
  json["lower_bound"] = plan.lower_bound;
  json["proof"] = to_string(plan.proof);
  json["seconds"] = plan.seconds;
  if (has_capacity(constraints))
    json["capacity"] = constraints.capacity;
  else
    json["capacity"] = nullptr;
  json["nodes"] = plan.nodes;
  json["first_plan_seconds"] = plan.first_plan_seconds;
  return json;
}

double parse_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(end - text.data());
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "min" ? 60 : 0;
  if (error != std::errc() || scale == 0 || !(value >= 0))
    throw InvalidArgument("time: \"" + std::string(text) + "\" is not a duration; write 500ms, 10s or 2min");
  return value * scale;
}

}  // namespace plimsoll::internal
