#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/cli/train/training_choice.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/model.h"

namespace plimsoll {
namespace {

struct Options {
  std::string model;
  std::size_t batch = 32;
  TrainingChoice choice;
  std::string budget;
  bool json = false;
};

void print_json(const MemoryForecast& forecast, bool fits, std::size_t largest) {
  nlohmann::ordered_json document;
  document["peak_bytes"] = forecast.peak_bytes;
  document["lower_bound_bytes"] = forecast.lower_bound_bytes;
  document["smallest_budget_bytes"] = forecast.smallest_budget;
  document["by_category"] = forecast.by_category;
  document["max_batch_size"] = largest;
  document["fits"] = fits;
  document["largest_op"] = forecast.largest_op;
  document["largest_op_bytes"] = forecast.largest_op_bytes;
  print_document(document);
}

void print_text(const MemoryForecast& forecast, const Options& options, bool fits, std::size_t largest) {
  Table table({"at the peak", "", "bytes"});
  for (const auto& [category, bytes] : forecast.by_category)
    if (bytes > 0) table.add({category, format_bytes(bytes), fmt::format("{}", bytes)});
  table.add({"peak", format_bytes(forecast.peak_bytes), fmt::format("{}", forecast.peak_bytes)});
  table.add({"lower bound", format_bytes(forecast.lower_bound_bytes), fmt::format("{}", forecast.lower_bound_bytes)});
  table.add({"smallest budget", format_bytes(forecast.smallest_budget), fmt::format("{}", forecast.smallest_budget)});
  std::printf("%s", table.text().c_str());
  std::printf("The largest buffer is that of %s: %s.\n", forecast.largest_op.c_str(),
              format_bytes(forecast.largest_op_bytes).c_str());
  std::printf("Batches of %zu %s %s; the largest batch that fits is %zu.\n", options.batch, fits ? "fit" : "do not fit",
              options.budget.empty() ? "the device" : options.budget.c_str(), largest);
}

void run(const Options& options) {
  const Model model = load_layers_model(options.model, {.weights = false});
  compile(model, options.model, options.choice);
  const MemoryForecast forecast = model.forecast({.batch_size = options.batch});
  const std::size_t budget = options.budget.empty() ? memory_stats().bytes_limit : parse_bytes(options.budget);
  const bool fits = forecast.fits(budget);
  const std::size_t largest = model.max_batch_size(budget);
  options.json ? print_json(forecast, fits, largest) : print_text(forecast, options, fits, largest);
  std::fflush(stdout);
  if (!fits) throw Exit{3};
}

}  // namespace

void add_forecast_command(CommandLine& app) {
  auto options = std::make_shared<Options>();
  Command command(app, "forecast",
                  "Say what training a Layers model takes, without running it; exit 3 when it does not fit the budget");
  command.option("MODEL", options->model, "model.json, as TensorFlow.js saves it").required().value("FILE");
  command.option("--batch", options->batch, "Examples in a batch").required().check(at_least(1));
  add_training_choice(command, options->choice);
  command.option("--budget", options->budget, "Bytes there are, as 24MiB; left out: the device's")
      .check(size_check())
      .value("SIZE");
  command.flag("--json", options->json, "Print one JSON document");
  command.notes(
      "What `plimsoll train` takes with the same model and options, to the byte; largest batches are looked for up to "
      "2^30.");
  command.run([options] { run(*options); });
}

}  // namespace plimsoll
