#include "plimsoll/cli/train/demo_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/cli/train/demo_series.h"
#include "plimsoll/cli/train/training_choice.h"
#include "plimsoll/cli/train/watch_signals.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/observe/report_page.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kHours = 4000, kLookBack = 48, kBatch = 128;

Sequential make_model() {
  Sequential model({layers::LSTM(64, {.return_sequences = true, .input_shape = {kLookBack, 1}, .seed = 1}),
                    layers::LSTM(32, {.seed = 2}), layers::Dense(1, {.seed = 3})},
                   {.name = "tides"});
  model.compile({.optimizer = optimizers::Adam({.learning_rate = 4e-3f}),
                 .loss = losses::MeanSquaredError(),
                 .metrics = {"mae"}});
  return model;
}

// The memory of a step, known before it runs; the trace gets it too, for the report.
std::size_t foresee(const Model& model, const std::string& spill) {
  const MemoryForecast forecast = model.forecast({.batch_size = static_cast<std::size_t>(kBatch), .spill = spill});
  const nlohmann::json record{{"peak_bytes", forecast.peak_bytes},
                              {"smallest_budget_bytes", forecast.smallest_budget},
                              {"batch_size", kBatch},
                              {"by_category", forecast.by_category}};
  trace_text("@forecast " + json_text(record));
  return forecast.peak_bytes;
}

// The error of predicting that the level will be what it was 25 hours before: two tides earlier.
float simple_error(const std::vector<float>& levels, std::size_t first) {
  double sum = 0;
  for (std::size_t hour = first; hour < levels.size(); ++hour) sum += std::abs(levels[hour] - levels[hour - 25]);
  return static_cast<float>(sum / static_cast<double>(levels.size() - first));
}

// The data, and the model.
struct Prepared {
  Dataset train, validation, test;
  Sequential model;
};

Prepared prepare(const std::vector<float>& levels, const std::string& device) {
  const Dataset windows = timeseries_windows(from_vector(levels, {kHours, 1}), {.look_back = kLookBack, .horizon = 1});
  const auto [train, validation, test] = windows.split({0.7, 0.15, 0.15});
  const auto there = work_on(device);
  return {train, validation, test, make_model()};
}

History fit(Prepared& prepared, const FitOptions& options) {
  FitOptions with_validation = options;
  with_validation.validation_data = prepared.validation.batch(kBatch);
  return prepared.model.fit(prepared.train.shuffle(static_cast<std::size_t>(kHours), {.seed = 7}).batch(kBatch),
                            with_validation);
}

bool can_prepare(const std::vector<float>& levels, const DemoOptions& options) {
  try {
    const Budget budget("demo", options.budget);
    const BudgetScope inside(budget);
    const TidyScope scope;
    prepare(levels, options.device);
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }
}

// When not even the network fits: the budget that would suffice for everything.
OutOfMemoryDetails whole_need(const std::vector<float>& levels, const DemoOptions& options) {
  OutOfMemoryDetails details;
  details.limit = options.budget;
  const Budget all("demo", SIZE_MAX / 2);
  const BudgetScope inside(all);
  const TidyScope scope;
  Prepared prepared = prepare(levels, options.device);
  try {
    const Budget nothing("fit", 1, all);
    const BudgetScope tight(nothing);
    fit(prepared, {.verbose = 0, .budget = SIZE_MAX / 4, .spill = options.spill});  // So that it may recompute.
  } catch (const OutOfMemory& error) {
    details.in_use = all.used();
    details.requested = error.smallest_sufficient_limit();
    details.smallest_sufficient_limit = std::max(all.peak(), details.in_use + details.requested);
    details.what = fmt::format(
        "the network and its series take {}, training {} more, budget \"demo\" is {}; give that budget {} bytes",
        format_bytes(details.in_use), format_bytes(details.requested), format_bytes_exactly(options.budget),
        details.smallest_sufficient_limit);
  }
  return details;
}

}  // namespace

DemoResult run_demo(const DemoOptions& options) {
  make_directories(options.out);
  DemoResult result;
  const std::string checkpoints = (options.out / "checkpoints").string();
  result.logs = (options.out / "logs").string();
  result.trace = (options.out / "run.trace").string();
  make_directories(checkpoints);

  const std::vector<float> levels = harbour_levels(kHours);
  const Budget budget("demo", options.budget);
  const auto write_page = [&] {
    if (!has_report_page()) return;
    result.report = (options.out / "report.html").string();
    write_report(result.trace, result.report);
  };
  // Tried before anything is recorded: the trace of a budget that is far too small then holds the one useful refusal.
  std::optional<OutOfMemoryDetails> refusal;
  if (!can_prepare(levels, options)) refusal = whole_need(levels, options);
  try {
    TraceRecorder recorder({.path = result.trace});
    if (refusal) throw_refusal(std::move(*refusal), {.budget = "demo", .op = "fit", .scope = "tides"});
    const BudgetScope inside(budget);
    const TidyScope scope;
    Prepared prepared = prepare(levels, options.device);
    result.forecast_bytes = foresee(prepared.model, options.spill);
    const auto stop = callbacks::OnBatchEnd([](Model& model, std::size_t, const Logs&) {
      if (WatchSignals::caught() != 0) model.stop_training();
    });
    const WatchSignals watch;  // Until everything is written.
    const auto start = std::chrono::steady_clock::now();
    const History history =
        fit(prepared, {.epochs = options.epochs,
                       .verbose = options.verbose,
                       .callbacks = {stop,
                                     callbacks::ModelCheckpoint(checkpoints + "/cp-{epoch:04d}.ckpt",
                                                                {.save_best_only = true, .save_weights_only = true}),
                                     callbacks::TensorBoard(result.logs)},
                       .budget = options.budget,
                       .spill = options.spill,
                       .max_slowdown = options.max_slowdown});
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.epochs = static_cast<int>(history.num_epochs());
    result.peak_bytes = history.peak_bytes();  // As counted by the forecast and printed after each epoch.
    result.recomputed = history.recomputed_fraction();
    result.spilled_bytes = history.spilled_bytes();
    result.signal = WatchSignals::caught();
    result.checkpoint = latest_checkpoint(checkpoints);
    if (result.signal != 0) {
      recorder.finish();
      write_page();
      return result;
    }
    result.loss = history["loss"].back();
    result.validation_loss = history["val_loss"].back();
    result.error_metres =
        prepared.model.evaluate(prepared.test.batch(kBatch), {.budget = options.budget, .spill = options.spill})["mae"];
    recorder.finish();
  } catch (const OutOfMemory&) {
    write_page();  // It shows what was refused.
    throw;
  }
  result.simple_error_metres = simple_error(levels, static_cast<std::size_t>(kHours * 0.85));
  write_page();
  return result;
}

}  // namespace plimsoll::internal
