#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/cli/train/forecast_picture.h"
#include "plimsoll/cli/train/onnx_files.h"
#include "plimsoll/cli/train/training_choice.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/model/keras/keras_file.h"
#include "plimsoll/model/model.h"

namespace plimsoll::internal {
namespace {

struct Options {
  std::string model, input;
  std::vector<std::string> shapes;
  std::size_t batch = 32;
  TrainingChoice choice;
  std::string budget, device, spill, svg;
  bool json = false, predict = false;
  int ranks = 1;
  std::size_t slices = 0;
  bool shard_optimizer = false, shard_parameters = false;
};

// The largest batches that fit: at full speed, with steps half as slow again, and at any speed.
struct LargestBatches {
  std::size_t natural = 0, half_slower = 0, any = 0;
};

void add_numbers(const MemoryForecast& forecast, bool fits, nlohmann::ordered_json& document) {
  document["peak_bytes"] = forecast.peak_bytes;
  document["lower_bound_bytes"] = forecast.lower_bound_bytes;
  document["smallest_budget_bytes"] = forecast.smallest_budget;
  document["by_category"] = forecast.by_category;
  document["fits"] = fits;
  document["largest_op"] = forecast.largest_op;
  document["largest_op_bytes"] = forecast.largest_op_bytes;
  document["floor_bytes"] = forecast.floor_bytes;
  document["floor_step"] = forecast.floor_step;
  document["front"] = nlohmann::ordered_json::array();
  for (const BudgetPoint& point : forecast.front)
    document["front"].push_back({{"bytes", point.bytes}, {"slowdown", point.slowdown}});
}

void print_json(const MemoryForecast& forecast, bool fits, const LargestBatches& largest) {
  nlohmann::ordered_json document;
  add_numbers(forecast, fits, document);
  document["max_batch_size"] = largest.any;
  document["max_batch_sizes"] = {{"1", largest.natural}, {"1.5", largest.half_slower}, {"any", largest.any}};
  print_document(document);
}

// Part of the front, including its ends.
std::string front_table(const MemoryForecast& forecast) {
  constexpr std::size_t kRows = 10;
  const std::vector<BudgetPoint>& front = forecast.front;
  Table table({"budget", "", "bytes", "of the peak", "time of a step"});
  const std::size_t rows = std::min(kRows, front.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const BudgetPoint& point = front[rows == 1 ? 0 : row * (front.size() - 1) / (rows - 1)];
    table.add({row == 0          ? "peak"
               : row + 1 == rows ? "smallest"
                                 : "",
               format_bytes(point.bytes), fmt::format("{}", point.bytes),
               fmt::format("{:.0f} %", 100.0 * static_cast<double>(point.bytes) / static_cast<double>(front[0].bytes)),
               fmt::format("{:.2f} x", point.slowdown)});
  }
  return table.text();
}

void print_table(const MemoryForecast& forecast, bool spills) {
  Table table({"at the peak", "", "bytes"});
  const auto add = [&](const std::string& name, std::size_t bytes) {
    table.add({name, format_bytes(bytes), fmt::format("{}", bytes)});
  };
  for (const auto& [category, bytes] : forecast.by_category)
    if (bytes > 0) add(category, bytes);
  add("peak", forecast.peak_bytes);
  add("lower bound", forecast.lower_bound_bytes);
  add("smallest budget", forecast.smallest_budget);
  add("floor", forecast.floor_bytes);
  std::printf("%s", table.text().c_str());
  std::printf("The largest buffer is that of %s: %s. The floor is that of %s.\n", forecast.largest_op.c_str(),
              format_bytes(forecast.largest_op_bytes).c_str(), forecast.floor_step.c_str());
  if (forecast.front.size() > 1)
    std::printf("\nBelow the peak values are recomputed%s; results are the same.\n%s\n", spills ? " or spilled" : "",
                front_table(forecast).c_str());
}

void print_text(const MemoryForecast& forecast, const Options& options, bool fits, const LargestBatches& largest) {
  print_table(forecast, !options.spill.empty());
  const std::string limit = options.budget.empty() ? "the device" : format_bytes(parse_bytes(options.budget));
  if (largest.any == 0) {
    std::printf("Batches of %zu do not fit %s, and no smaller ones do.\n", options.batch, limit.c_str());
    return;
  }
  std::printf("Batches of %zu %s %s; the largest batch that fits is %zu", options.batch, fits ? "fit" : "do not fit",
              limit.c_str(), largest.any);
  if (largest.any > largest.natural)
    std::printf(", %zu without %s, %zu at 1.5 times the time", largest.natural,
                options.spill.empty() ? "recomputing" : "recomputing and spilling", largest.half_slower);
  std::printf(".\n");
}

// The memory of one prediction.
MemoryForecast prediction(const Options& options) {
  if (is_onnx(options.model)) return forecast_onnx(options.model, options.shapes, options.input);
  return load_model(options.model, {.weights = false}).forecast({.batch_size = options.batch, .predict = true});
}

void run_prediction(const Options& options) {
  const MemoryForecast forecast = prediction(options);
  const bool fits = forecast.fits(options.budget.empty() ? memory_stats().bytes_limit : parse_bytes(options.budget));
  if (options.json) {
    nlohmann::ordered_json document;
    add_numbers(forecast, fits, document);
    print_document(document);
  } else {
    print_table(forecast, false);
    std::printf("The prediction %s %s.\n", fits ? "fits" : "does not fit",
                options.budget.empty() ? "the device" : options.budget.c_str());
  }
  std::fflush(stdout);
  if (!fits) throw Exit{3};
}

void run(const Options& options) {
  auto there = work_on(options.device);
  if (options.predict) return run_prediction(options);
  Model model = is_onnx(options.model)
                    ? load_onnx(options.model, {.weights = false})
                    : load_model(options.model, {.weights = false, .compile = options.choice.loss.empty()});
  there.reset();
  compile(model, options.model, options.choice);
  const MemoryForecast forecast = model.forecast({.batch_size = options.batch,
                                                  .spill = options.spill,
                                                  .ranks = options.ranks,
                                                  .slices = options.slices,
                                                  .shard_optimizer = options.shard_optimizer,
                                                  .shard_parameters = options.shard_parameters});
  const std::size_t budget =
      options.budget.empty() ? memory_stats(options.device).bytes_limit : parse_bytes(options.budget);
  const bool fits = forecast.fits(budget);
  const LargestBatches largest{model.max_batch_size(budget, 1), model.max_batch_size(budget, 1.5, options.spill),
                               model.max_batch_size(budget, 8, options.spill)};
  if (!options.svg.empty()) {
    ForecastPicture picture{.title = fmt::format("{}, batches of {}", model.name(), options.batch)};
    if (!options.budget.empty()) picture.budget = budget;
    AtomicFile file(options.svg);
    file.write(forecast_svg(forecast, picture));
    file.commit();
  }
  options.json ? print_json(forecast, fits, largest) : print_text(forecast, options, fits, largest);
  std::fflush(stdout);
  if (!fits) throw Exit{3};
}

}  // namespace

void add_forecast_command(CommandLine& app) {
  auto options = std::make_shared<Options>();
  Command command(
      app, "forecast",
      "Say what training a model takes, or a prediction, without running it; exit 3 when it does not fit the budget");
  command.option("MODEL", options->model, "model.json as TensorFlow.js saves it, .keras, .h5 or .onnx")
      .required()
      .value("FILE");
  command.option("--batch", options->batch, "Examples in a batch").check(at_least(1)).show_default();
  command.flag("--predict", options->predict, "Of a prediction instead; of an ONNX model, one run on whole inputs");
  command.option("--shape", options->shapes, "An ONNX model's input, for --predict: NAME=1x3x224x224")
      .value("NAME=SIZES");
  command.option("--input", options->input, "The same with these inputs, where their elements decide shapes")
      .value("NPZ");
  add_training_choice(command, options->choice);
  command.option("--budget", options->budget, "Bytes there are, as 24MiB; left out: the device's")
      .check(size_check())
      .value("SIZE");
  add_device_option(command, options->device);
  add_spill_option(command, options->spill);
  command
      .option("--ranks", options->ranks, "Of a process of a job of so many; largest batches are those of one process")
      .check(at_least(1));
  command.option("--slices", options->slices, "As that of `plimsoll train`").check(at_least(1)).value("N");
  command.flag("--shard-optimizer", options->shard_optimizer, "As that of `plimsoll train`");
  command.flag("--shard-parameters", options->shard_parameters, "As that of `plimsoll train`");
  command.option("--svg", options->svg, "Draw budgets against the time of a step").value("FILE");
  command.flag("--json", options->json, "Print one JSON document");
  command.notes(
      "What `plimsoll train` takes with the same model and options, to the byte; largest batches are looked for up to "
      "2^30.");
  command.run([options] { run(*options); });
}

}  // namespace plimsoll::internal
