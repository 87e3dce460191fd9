#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/replay.h"
#include "plimsoll/cli/replay_report.h"
#include "plimsoll/cli/replay_synthetic.h"
#include "plimsoll/cli/table.h"

namespace plimsoll {
namespace {

struct Arguments {
  std::string budget = "24MiB", out;
  bool json = false;
};

struct Outcome {
  ReplayOptions options;
  ReplayResult result;
};

std::string not_a_budget(const std::string& text) {
  try {
    return parse_bytes(text) >= 64_KiB ? "" : "a budget below 64 KiB leaves no room for anything";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

Outcome replay_within(const Trace& trace, std::size_t budget, ReplayPolicy policy) {
  const ReplayOptions options{.policy = policy, .limit = budget, .repeat = 5, .touch = true};
  return {options, replay(trace, options)};
}

std::string table_of(const Outcome& arena, const Outcome& bfc) {
  Table table({"", "Plimsoll", "TensorFlow's policy"});
  const auto row = [&](const char* what, auto value) { table.add({what, value(arena.result), value(bfc.result)}); };
  row("requests refused", [](const ReplayResult& r) { return fmt::format("{}", r.refusals); });
  row("peak reserved", [](const ReplayResult& r) { return format_bytes(r.peak_reserved); });
  row("lost to rounding at the peak", [](const ReplayResult& r) {
    std::size_t lost = 0;
    for (const OccupancyExtent& extent : r.at_peak)
      if (extent.kind == OccupancyKind::kUsed) lost += extent.size - extent.requested;
    return format_bytes(lost);
  });
  row("time per operation", [](const ReplayResult& r) { return fmt::format("{:.0f} ns", r.ns_per_op); });
  return table.text();
}

void print_story(const Trace& trace, std::size_t budget, const Outcome& arena, const Outcome& bfc) {
  std::printf(
      "A small recurrent network trains on sequences of changing length: %zu allocations, of which %s are live at the\n"
      "fullest moment. Both policies get a budget of %s and every page is really used.\n\n%s\n",
      trace.allocations, format_bytes(trace.peak_live).c_str(), format_bytes(budget).c_str(),
      table_of(arena, bfc).c_str());
  const bool unicode = output_shows_unicode();
  std::printf("Plimsoll's memory at that moment, low addresses first:\n%s\n",
              occupancy_strip(arena.result.at_peak, {.unicode = unicode}).c_str());
  std::printf("TensorFlow's:\n%s\n", occupancy_strip(bfc.result.at_peak, {.unicode = unicode}).c_str());
  std::printf("%s", comparison_text(trace, arena.options, compare_with_bfc(trace, arena.options)).c_str());
  std::printf(
      "\nReplay a trace of your own: plimsoll replay TRACE.csv --limit 24MiB (plimsoll replay --help says how it "
      "looks)\n");
}

std::string save(const std::string& folder, const std::string& text) {
  std::filesystem::create_directories(folder);
  const std::string path = (std::filesystem::path(folder) / "demo.csv").string();
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw Error(fmt::format("demo: cannot write \"{}\"; give another --out", path));
  return path;
}

void run(const Arguments& arguments) {
  const std::size_t budget = parse_bytes(arguments.budget);
  const std::string text = synthetic_training({});
  const Trace trace = parse_trace("demo", text);
  const std::string saved = arguments.out.empty() ? "" : save(arguments.out, text);
  const Outcome arena = replay_within(trace, budget, ReplayPolicy::kArena);
  const Outcome bfc = replay_within(trace, budget, ReplayPolicy::kBfc);
  if (arguments.json) {
    nlohmann::ordered_json document;
    document["peak_bytes"] = trace.peak_live;
    document["budget_bytes"] = budget;
    for (const Outcome* one : {&arena, &bfc})
      document[policy_name(one->options.policy)] =
          nlohmann::ordered_json::parse(replay_json(trace, one->options, one->result));
    std::printf("%s\n", document.dump(2).c_str());
  } else {
    print_story(trace, budget, arena, bfc);
    if (!saved.empty()) std::printf("The trace is in %s.\n", saved.c_str());
  }
  std::fflush(stdout);
  if (arena.result.refusals > 0) throw Exit{3};
}

}  // namespace

void add_demo_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("demo", "See it work: a training's allocations inside a budget, under two policies");
  command->add_option("--budget", arguments->budget, "Bytes that may be used")
      ->check(CLI::Validator(not_a_budget, "SIZE"))
      ->type_name("")
      ->capture_default_str();
  command->add_option("--out", arguments->out, "Folder in which to leave the trace as demo.csv")->type_name("DIR");
  command->add_flag("--json", arguments->json, "Print one JSON document and nothing else");
  command->footer("Needs no files. Ends with 3 when the training does not fit the budget.");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace plimsoll
