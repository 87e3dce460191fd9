#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/cli/train/demo_training.h"
#include "plimsoll/cli/train/training_choice.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/model/data/plural.h"

namespace plimsoll::internal {
namespace {

struct DemoArguments {
  std::string budget = "24MiB", out = "plimsoll_demo", device, spill;
  int epochs = 10;
  double max_slowdown = 8;
  bool json = false;
};

void print_json(const DemoResult& result, std::size_t budget) {
  nlohmann::ordered_json document{{"epochs", result.epochs},
                                  {"loss", result.loss},
                                  {"metrics", {{"val_loss", result.validation_loss}, {"mae", result.error_metres}}},
                                  {"peak_bytes", result.peak_bytes},
                                  {"budget_bytes", budget},
                                  {"forecast_bytes", result.forecast_bytes},
                                  {"recomputed", result.recomputed},
                                  {"spilled_bytes", result.spilled_bytes},
                                  {"seconds", result.seconds},
                                  {"checkpoint", result.checkpoint},
                                  {"logs", result.logs},
                                  {"trace", result.trace},
                                  {"report", result.report}};
  print_document(document);
}

void print_story(const DemoResult& result, std::size_t budget) {
  Table table({"memory", " ", ""});
  if (result.forecast_bytes > 0)
    table.add({"forecast peak", format_bytes(result.forecast_bytes), "before the first step"});
  table.add({"budget", format_bytes(budget), "never passed"});
  table.add({"real peak", format_bytes(result.peak_bytes),
             fmt::format("{:.0f} % of the budget",
                         100.0 * static_cast<double>(result.peak_bytes) / static_cast<double>(budget))});
  if (result.recomputed > 0)
    table.add({"recomputed", fmt::format("{:.1f} %", 100 * result.recomputed), "of the work of steps"});
  if (result.spilled_bytes > 0) table.add({"spilled", format_bytes(result.spilled_bytes), "by all steps"});
  std::printf("\n%s", table.text().c_str());
  std::printf(
      "\n%.2f s per epoch. Foreseeing the next hour of a part it never saw, it errs by %.1f cm on average;\n"
      "saying \"as two tides ago\" errs by %.1f cm.\n\n",
      result.seconds / std::max(result.epochs, 1), 100 * static_cast<double>(result.error_metres),
      100 * static_cast<double>(result.simple_error_metres));
  Table files({"left for you", ""});
  files.add({"report", result.report.empty() ? "(built without the page; see plimsoll report)" : result.report});
  files.add({"checkpoint", result.checkpoint});
  files.add({"TensorBoard", "tensorboard --logdir " + result.logs});
  files.add({"trace", "plimsoll doctor " + result.trace});
  std::printf("%s", files.text().c_str());
}

// Lets the device commit hardly more pages than the budget (blocks leave holes) and grow as needed; if it has already
// started, the budget alone is the limit.
void bound_device(std::size_t budget) {
  if (Runtime::instance().started()) return;
  const PhysicalDevice cpu = config::list_physical_devices("CPU").at(0);
  config::set_logical_device_configuration(cpu, {{.memory_limit = budget + std::max(budget / 16, 1_MiB)}});
  config::set_memory_growth(cpu, true);
}

void run(const DemoArguments& arguments) {
  const std::size_t budget = parse_bytes(arguments.budget);
  if (!arguments.json)
    std::printf(
        "A recurrent network learns the tides of a made-up harbour (4000 hourly levels, by formula), inside %s.\n\n",
        format_bytes(budget).c_str());
  std::fflush(stdout);
  bound_device(budget);
  require_device(arguments.device);
  const DemoResult result = run_demo({.budget = budget,
                                      .out = arguments.out,
                                      .epochs = arguments.epochs,
                                      .verbose = arguments.json ? 0 : 1,
                                      .max_slowdown = arguments.max_slowdown,
                                      .spill = arguments.spill,
                                      .device = arguments.device});
  if (result.signal != 0) {
    std::fprintf(stderr, "plimsoll: interrupted after %s; the trace is in %s\n",
                 plural(static_cast<std::size_t>(result.epochs), "epoch").c_str(), result.trace.c_str());
    throw Exit{128 + result.signal};
  }
  arguments.json ? print_json(result, budget) : print_story(result, budget);
  std::fflush(stdout);
}

}  // namespace

void add_demo_command(CommandLine& line) {
  auto arguments = std::make_shared<DemoArguments>();
  Command command(line, "demo", "See it work: train a recurrent network inside a budget");
  command.option("--budget", arguments->budget, "Bytes that may be used")
      .check(size_check(64_KiB))
      .value("SIZE")
      .show_default();
  command.option("--out", arguments->out, "Folder for checkpoint, TensorBoard logs, trace and report.html")
      .value("DIR")
      .show_default();
  command.option("--epochs", arguments->epochs, "Passes over the series").check(between(1, 1000)).show_default();
  command.option("--max-slowdown", arguments->max_slowdown, "Refuse a budget in which steps take longer than this")
      .check(positive_number())
      .value("F")
      .show_default();
  add_device_option(command, arguments->device);
  add_spill_option(command, arguments->spill);
  command.flag("--json", arguments->json, "Print one JSON document and nothing else");
  command.notes(
      "Needs no files: the series is made by a formula. Ends with 3 when the training does not fit the budget.");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
