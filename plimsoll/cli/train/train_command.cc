#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/train/train_command_run.h"
#include "plimsoll/model/data/plural.h"

namespace plimsoll::internal {
namespace {

template <class T>
nlohmann::ordered_json or_null(bool is_there, const T& value) {
  return is_there ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
nlohmann::ordered_json text_or_null(const std::string& text) { return or_null(!text.empty(), text); }

void print_json(const TrainArguments& arguments, const TrainOutcome& outcome) {
  const History& history = outcome.history;
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object(), all = nlohmann::ordered_json::object();
  for (const std::string& name : history.names()) {
    if (name != "loss") metrics[name] = history[name].back();
    all[name] = history[name];
  }
  const nlohmann::ordered_json document = {
      {"epochs", history.num_epochs()},
      {"loss", history.num_epochs() > 0 ? nlohmann::ordered_json(history["loss"].back()) : nlohmann::ordered_json()},
      {"metrics", metrics},
      {"history", all},
      {"first_epoch", outcome.first_epoch},
      {"dropped_rows", outcome.dropped_rows},
      {"peak_bytes", history.peak_bytes()},
      {"data_bytes", outcome.data_bytes},
      {"streamed", outcome.streams},
      {"shuffled_examples", outcome.shuffled_examples},
      {"budget_bytes", or_null(!arguments.budget.empty(), outcome.budget)},
      {"recomputed", history.recomputed_fraction()},
      {"spilled_bytes", history.spilled_bytes()},
      {"checkpoint", text_or_null(outcome.checkpoint)},
      {"report", text_or_null(outcome.report)},
      {"trace", text_or_null(outcome.trace)},
      {"out", text_or_null(outcome.out)},
      {"model", text_or_null(outcome.out)},
      {"interrupted", outcome.signal != 0},
      {"ranks", outcome.ranks},
      {"slices", or_null(arguments.distributed, outcome.slices)},
      {"shard_parameters", outcome.shards_parameters},
      {"sent_bytes", outcome.sent_bytes},
      {"early_bytes", outcome.early_bytes},
      {"waited_seconds", outcome.waited_seconds}};
  print_document(document);
}

void print_text(const TrainArguments& arguments, const TrainOutcome& outcome) {
  if (outcome.dropped_rows > 0)
    std::printf("Left out %s of %s without all values.\n", plural(outcome.dropped_rows, "line").c_str(),
                arguments.data.c_str());
  std::printf("Peak %s in use.\n", format_bytes_exactly(outcome.history.peak_bytes()).c_str());
  if (outcome.history.recomputed_fraction() > 0)
    std::printf("To stay inside the budget, %.1f %% of the work was recomputing.\n",
                100 * outcome.history.recomputed_fraction());
  if (outcome.history.spilled_bytes() > 0)
    std::printf("To stay inside the budget, %s were spilled to %s.\n",
                format_bytes(outcome.history.spilled_bytes()).c_str(), arguments.spill.c_str());
  if (!outcome.checkpoint.empty()) std::printf("The weights are in %s.\n", outcome.checkpoint.c_str());
  std::printf("The model is in %s. Ask it: plimsoll predict %s%s --input FILE\n", outcome.out.c_str(),
              outcome.out.c_str(), outcome.out.ends_with(".keras") ? "" : "/model.json");
  if (!outcome.report.empty()) std::printf("The report is in %s.\n", outcome.report.c_str());
  if (!outcome.trace.empty()) std::printf("The trace is in %s.\n", outcome.trace.c_str());
}

void run(const TrainArguments& arguments) {
  if (!arguments.distributed && arguments.slices > 0) refuse_usage("--slices", "it needs --distributed");
  if (!arguments.distributed && arguments.shard_optimizer) refuse_usage("--shard-optimizer", "it needs --distributed");
  if (!arguments.distributed && arguments.shard_parameters)
    refuse_usage("--shard-parameters", "it needs --distributed");
  if (arguments.resume.empty() && arguments.columns.look_back == 0 && arguments.columns.horizon > 1)
    refuse_usage("--horizon", "it needs --look-back: it counts the rows that a time series is foreseen");
  require_budget_to_spill(arguments.spill, arguments.budget);
  require_device(arguments.device);
  const TrainOutcome outcome = train(arguments);
  if (outcome.rank != 0) throw Exit{outcome.signal == 0 ? 0 : 128 + outcome.signal};  // Only the first rank prints.
  arguments.json ? print_json(arguments, outcome) : print_text(arguments, outcome);
  std::fflush(stdout);
  if (outcome.signal == 0) return;
  std::fprintf(stderr, "plimsoll: interrupted after %s; the model is in %s\n",
               plural(outcome.history.num_epochs(), "epoch").c_str(), outcome.out.c_str());
  throw Exit{128 + outcome.signal};
}

void add_data_options(Command& command, TrainArguments& arguments) {
  command
      .option("--data", arguments.data,
              "Examples: a CSV, also gzipped, or an npz with x and y; of an ONNX model, its inputs by name and y")
      .required()
      .value("FILE");
  Option validation = command.option("--validation", arguments.validation, "The same, to look at after each epoch");
  validation.value("FILE");
  command
      .option("--validation-split", arguments.columns.validation_split,
              "Keep this share of the examples for that: drawn ones, or with --look-back the last rows")
      .excludes(validation)
      .check(fraction())
      .value("F");
  add_table_options(command, arguments.columns);
}

void add_training_options(Command& command, TrainArguments& arguments) {
  command.option("--epochs", arguments.epochs, "How often all examples are seen; with --resume: in total")
      .check(at_least(0))
      .show_default();
  command.option("--batch", arguments.batch, "Examples in a step").check(at_least(1)).show_default();
  add_training_choice(command, arguments.choice);
  command.option("--seed", arguments.seed, "For initial weights, order, split and dropout: the same again");
  command.flag("--no-shuffle", arguments.no_shuffle, "Take the examples in the order of the file");
  command
      .option("--budget", arguments.budget,
              "Bytes that training may take, with its data: 64MiB. A CSV that does not fit is streamed, a step that "
              "does not fit recomputes")
      .check(size_check())
      .value("SIZE");
  add_device_option(command, arguments.device);
  add_spill_option(command, arguments.spill);
  command
      .option("--max-slowdown", arguments.max_slowdown,
              "Refuse a budget in which steps are predicted to take longer than this many times")
      .check(number_at_least(1))
      .show_default()
      .value("F");
}

void add_distributed_options(Command& command, TrainArguments& arguments) {
  command.flag("--distributed", arguments.distributed, "Train together with the other processes that mpirun started");
  command
      .option(
          "--slices", arguments.slices,
          "Cut each batch into so many slices; the same slices give the same bits for any number of processes. Left "
          "out: one for each process")
      .check(at_least(1))
      .value("N");
  command.flag("--shard-optimizer", arguments.shard_optimizer,
               "Each process keeps the optimizer's state of its part of the parameters only");
  command.flag(
      "--shard-parameters", arguments.shard_parameters,
      "Each process keeps only its part of the parameters, too, and gets the others' for each operation; chosen "
      "without asking where a --budget needs it");
  command
      .option("--timeout", arguments.timeout,
              "Seconds that a process may keep the others waiting, longer than a step; then the job ends with 75")
      .check(number_at_least(0.1))
      .show_default()
      .value("S");
}

}  // namespace

void add_train_command(CommandLine& app) {
  auto arguments = std::make_shared<TrainArguments>();
  Command command(app, "train", "Train a model (model.json of TensorFlow.js, Keras' .keras and .h5, or .onnx)");
  command
      .option("MODEL", arguments->model,
              "model.json, .keras, .h5 or .onnx; one without weights begins with random ones; left out: one is made "
              "for the data")
      .value("FILE");
  add_data_options(command, *arguments);
  add_training_options(command, *arguments);
  add_distributed_options(command, *arguments);
  Option weights = command.option("--weights", arguments->weights, "A checkpoint to begin with");
  weights.value("PREFIX");
  command
      .option("--resume", arguments->resume,
              "Go on with the newest checkpoint of this folder: its weights, optimizer, epoch and columns")
      .excludes(weights)
      .value("DIR");
  command.option("--checkpoint", arguments->checkpoint, "Folder for a checkpoint after each epoch").value("DIR");
  command
      .option(
          "--out", arguments->out,
          "Folder for the trained model (model.json and weights.bin), or a file NAME.keras; left out: MODEL-trained")
      .value("DIR");
  command.option("--logdir", arguments->logdir, "Folder for TensorBoard").value("DIR");
  command.option("--report", arguments->report, "One HTML page about memory; its trace is next to it").value("FILE");
  command.flag("--json", arguments->json, "Print one JSON document and nothing else");
  command.notes(
      "Ends with 3 when it does not fit the budget, with 130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP, "
      "when "
      "the model is saved, with 75 when another process of the job is gone.\n"
      "Example: the price of tomorrow by those of the last 20 days, then 10 more epochs\n"
      "  plimsoll train --data prices.csv --target close --look-back 20 --validation-split 0.2 --checkpoint run\n"
      "  plimsoll train --resume run --data prices.csv --validation-split 0.2 --epochs 20\n"
      "  plimsoll predict prices-trained/model.json --input prices.csv\n"
      "On several machines: mpirun -n 4 plimsoll train model.json --data train.npz --distributed");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
