#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/replay/budget_run.h"
#include "plimsoll/cli/replay/operator_log.h"
#include "plimsoll/cli/share_progress.h"

namespace plimsoll::internal {
namespace {

struct BudgetArguments {
  std::string log, budget, spill, policy = "static";
  double slack = -1;
  bool json = false;
};

std::string not_a_share(const std::string& text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error == std::errc() && end == text.data() + text.size() && share >= 0 && share <= 1) return "";
  return fmt::format("\"{}\" is not valid; give a number from 0 to 1", text);
}

std::string seconds(std::uint64_t nanoseconds) {
  return fmt::format("{:.3f} s", static_cast<double>(nanoseconds) / 1e9);
}

struct Question {
  const OperatorLog& log;
  const BudgetArguments& arguments;
  Floors floors;
  Floor floor;  // With or without spilling, as requested.
  std::size_t budget = 0;
};

std::string table(const Question& question, const BudgetRun& run) {
  const auto& [log, arguments, floors, floor, budget] = question;
  const std::string& at = log.operators[floor.step];
  std::string text = fmt::format("log            {}: {} operators\n", log.name, log.operators.size());
  text += fmt::format("natural peak   {}\n", format_bytes_exactly(log.peak_bytes));
  text += fmt::format("floor          {}, made by operator {}{}\n", format_bytes_exactly(floor.bytes), floor.step,
                      at.empty() ? "" : " (" + at + ")");
  text += fmt::format("budget         {}\n", format_bytes_exactly(budget));
  if (!run.completed) {
    text += budget < floor.bytes
                ? fmt::format("does not fit   the floor is {} above the budget; no schedule in this order needs less\n",
                              format_bytes(floor.bytes - budget))
                : fmt::format("does not fit   policy {} found no schedule; try a budget nearer to the natural peak{}\n",
                              arguments.policy, arguments.spill.empty() ? ", or --spill" : "");
    return text;
  }
  text += fmt::format("peak           {}\n", format_bytes_exactly(run.peak_bytes));
  text += fmt::format("slowdown       {:.4f} (policy {})\n", run.slowdown(), arguments.policy);
  if (arguments.spill.empty() && arguments.policy == "static")
    text += fmt::format(
        "at least       {:.4f} for any schedule in this order\n",
        1 + static_cast<double>(run.bound_ns) / static_cast<double>(std::max<std::uint64_t>(run.base_ns, 1)));
  text += fmt::format("time           {} by itself, {} recomputing, {} waiting\n", seconds(run.base_ns),
                      seconds(run.recompute_ns), seconds(run.stall_ns));
  text += fmt::format("evictions      {}, {} stored\n", run.evictions, format_bytes(run.stored_bytes));
  return text;
}

nlohmann::ordered_json json_of(const Question& question, const BudgetRun& run) {
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  nlohmann::ordered_json json;
  json["trace"] = question.log.name;
  json["completed"] = run.completed;
  json["floor_bytes"] = question.floor.bytes;
  json["budget_bytes"] = question.budget;
  json["peak_bytes"] = run.peak_bytes;
  json["slowdown"] = run.completed ? nlohmann::ordered_json(run.slowdown()) : nlohmann::ordered_json(nullptr);
  json["base_us"] = us(run.base_ns);
  json["recompute_us"] = us(run.recompute_ns);
  json["stall_us"] = us(run.stall_ns);
  json["spilled_bytes"] = run.stored_bytes;
  json["evictions"] = run.evictions;
  json["policy"] = question.arguments.policy;
  json["natural_peak_bytes"] = question.log.peak_bytes;
  json["recompute_floor_bytes"] = question.floors.recompute.bytes;
  json["spill_floor_bytes"] = question.floors.spill.bytes;
  json["floor_step"] = question.log.operators[question.floor.step];
  if (question.arguments.policy == "static" && question.arguments.spill.empty())
    json["lower_bound_us"] = us(run.bound_ns);
  return json;
}

void run(const BudgetArguments& arguments) {
  const OperatorLog log = read_operator_log(arguments.log);
  Question question{.log = log, .arguments = arguments, .floors = floors_of(log.program)};
  question.floor = arguments.spill.empty() ? question.floors.recompute : question.floors.spill;
  const std::size_t floor = question.floor.bytes, room = log.peak_bytes > floor ? log.peak_bytes - floor : 0;
  question.budget = arguments.budget.empty()
                        ? floor + static_cast<std::size_t>(arguments.slack * static_cast<double>(room))
                        : parse_bytes(arguments.budget);
  ShareProgress progress("budget");
  BudgetRunOptions options{.limit = question.budget, .progress = [&](double share) { progress.show(share); }};
  if (!arguments.spill.empty()) options.spill_bytes_per_second = static_cast<double>(parse_bytes(arguments.spill));
  if (arguments.policy == "online") options.policy = OnlinePolicy::kOnline;
  if (arguments.policy == "dtr") options.policy = OnlinePolicy::kDtr;
  if (arguments.policy == "lru") options.policy = OnlinePolicy::kLru;
  const BudgetRun result = run_budget(log, options);
  progress.clear();
  if (arguments.json)
    print_document(json_of(question, result));
  else
    fmt::print("{}", table(question, result));
  if (!result.completed) throw Exit{3};
}

}  // namespace

void add_budget_command(CommandLine& line) {
  const auto arguments = std::make_shared<BudgetArguments>();
  Command command(line, "budget", "Try a memory budget on an operator log: does it fit, and how much slower is it?");
  command.option("log", arguments->log, "Operator log: a trace with \"# op\" lines; may be gzipped")
      .required()
      .value("OPS.csv[.gz]");
  command.option("--budget", arguments->budget, "Bytes that may be in use at once, e.g. 300MiB; this or --slack")
      .check(size_check())
      .value("SIZE");
  command.option("--slack", arguments->slack, "floor + F x (natural peak - floor): 0 is the floor, 1 the peak")
      .check(not_a_share)
      .value("F");
  command.exactly_one_of({"--budget", "--slack"});
  command.option("--spill", arguments->spill, "Also allow storing values elsewhere, at this speed, e.g. 150MB")
      .check(size_check())
      .value("BYTES_PER_S");
  command
      .option("--policy", arguments->policy, "static: plans each training step; online, dtr, lru: know only the past")
      .one_of({"static", "online", "dtr", "lru"})
      .show_default();
  command.flag("--json", arguments->json, "Print one JSON document and nothing else");
  command.notes(
      "A log has lines a,<id>,<bytes> and f,<id>, marks \"# phase forward\" and \"# step 1\", and after each operator\n"
      "  # op aten.relu_ in=7 out=7 us=12.5\n"
      "Values may be dropped and computed again by repeating operators of forward and backward; parameters, optimizer\n"
      "state, batches and gradients stay, unless --spill lets them be stored.\n"
      "floor      the least that a schedule in this order needs: what must stay, and one operator's own values\n"
      "slowdown   (time by itself + recomputing + waiting) / time by itself, over the whole log\n"
      "at least   no schedule in this order recomputes less\n\n"
      "How slow is training in half of the memory between floor and peak?\n"
      "  plimsoll budget unet_train.csv.gz --slack 0.5\n"
      "Exit 3: it does not fit.");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
