#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/train_command_data.h"
#include "plimsoll/cli/training_choice.h"
#include "plimsoll/device/config.h"
#include "plimsoll/memory/trace_recorder.h"
#include "plimsoll/model/callbacks.h"
#include "plimsoll/model/counted.h"
#include "plimsoll/model/layers_model.h"
#include "plimsoll/model/model.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model, data, validation, budget, checkpoint, logdir, report, out, weights;
  TrainingChoice choice;
  DataOptions columns;
  int epochs = 10;
  std::size_t batch = 32;
  std::optional<std::uint64_t> seed;
  bool no_shuffle = false, json = false;
};

volatile std::sig_atomic_t interrupted = 0;

// While it lives, the first Ctrl-C is noted and the second one ends the program.
class WatchInterrupt {
 public:
  WatchInterrupt() {
    interrupted = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = SA_RESETHAND;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~WatchInterrupt() { ::sigaction(SIGINT, &before_, nullptr); }
  WatchInterrupt(const WatchInterrupt&) = delete;
  WatchInterrupt& operator=(const WatchInterrupt&) = delete;

 private:
  struct sigaction before_ = {};
};

Dataset dataset_of(const Example& examples, const std::string& path, const Arguments& arguments, bool shuffle) {
  Dataset rows = Dataset::from_tensors(examples.inputs, examples.targets);
  const std::size_t count = rows.size().value_or(0);
  if (count == 0) throw InvalidArgument(fmt::format("train: {} has no examples", path));
  if (shuffle && count > 1) rows = rows.shuffle(count, {.seed = arguments.seed});
  return rows.batch(arguments.batch);
}

std::vector<Callback> callbacks_of(const Arguments& arguments, const TableColumns& columns) {
  std::vector<Callback> list = {callbacks::OnBatchEnd([](Model& model, std::size_t, const Logs&) {
    if (interrupted) model.stop_training();
  })};
  if (!arguments.checkpoint.empty() && columns.is_set())
    list.push_back(callbacks::OnEpochEnd([&arguments, columns](Model&, int epoch, const Logs&) {
      if (epoch == 0) columns.save(arguments.checkpoint);
    }));
  if (!arguments.checkpoint.empty())
    list.push_back(callbacks::ModelCheckpoint((fs::path(arguments.checkpoint) / "cp-{epoch:04d}.ckpt").string(),
                                              {.save_weights_only = true}));
  if (!arguments.logdir.empty()) list.push_back(callbacks::TensorBoard(arguments.logdir));
  return list;
}

struct Outcome {
  History history;
  std::string checkpoint, model, trace, report;
  std::size_t budget = 0;
  std::size_t dropped_rows = 0;
};

Outcome train(const Arguments& arguments) {
  if (arguments.seed) config::set_seed(*arguments.seed);
  Outcome outcome;
  std::optional<TraceRecorder> recorder;
  if (!arguments.report.empty()) {
    outcome.trace = fs::path(arguments.report).replace_extension(".trace").string();
    recorder.emplace(TraceOptions{.path = outcome.trace});
  }
  const Model model = load_layers_model(arguments.model);
  compile(model, arguments.model, arguments.choice);
  if (!arguments.weights.empty()) model.load_weights(arguments.weights);
  const LoadedExamples loaded = load_examples(arguments.data, model, arguments.columns);
  const Dataset data = dataset_of(loaded.examples, arguments.data, arguments, !arguments.no_shuffle);
  outcome.dropped_rows = loaded.dropped_rows;
  Dataset validation;
  if (!arguments.validation.empty())
    validation = dataset_of(load_examples(arguments.validation, model, arguments.columns, loaded.columns).examples,
                            arguments.validation, arguments, false);
  const TableColumns columns = arguments.out.empty() && arguments.checkpoint.empty() ? TableColumns() : loaded.columns;
  if (columns.is_set()) static_cast<void>(columns.to_json());  // What cannot be kept is told before training.
  std::optional<std::size_t> budget;
  if (!arguments.budget.empty()) budget = outcome.budget = parse_bytes(arguments.budget);
  const WatchInterrupt watch;
  outcome.history = model.fit(data, {.epochs = arguments.epochs,
                                     .validation_data = validation,
                                     .verbose = arguments.json ? 0 : 1,
                                     .callbacks = callbacks_of(arguments, columns),
                                     .budget = budget});
  if (!arguments.checkpoint.empty()) {
    const int epoch = static_cast<int>(outcome.history.num_epochs());
    outcome.checkpoint = (fs::path(arguments.checkpoint) / fmt::format("cp-{:04d}.ckpt", epoch)).string();
  } else if (interrupted) {
    outcome.checkpoint = "interrupted.ckpt";
    model.save_weights(outcome.checkpoint);
  }
  if (!arguments.out.empty()) {
    save_layers_model(model, arguments.out, {.include_optimizer = true});
    if (columns.is_set()) columns.save(arguments.out);
    outcome.model = arguments.out;
  }
  if (recorder) {
    recorder->finish();
    if (has_report_page()) {
      write_report(outcome.trace, arguments.report);
      outcome.report = arguments.report;
    }
  }
  return outcome;
}

template <class T>
nlohmann::ordered_json or_null(bool is_there, const T& value) {
  return is_there ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
nlohmann::ordered_json text_or_null(const std::string& text) { return or_null(!text.empty(), text); }

void print_json(const Arguments& arguments, const Outcome& outcome) {
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
      {"dropped_rows", outcome.dropped_rows},
      {"peak_bytes", history.peak_bytes()},
      {"budget_bytes", or_null(!arguments.budget.empty(), outcome.budget)},
      {"recomputed", 0},
      {"spilled_bytes", 0},
      {"checkpoint", text_or_null(outcome.checkpoint)},
      {"report", text_or_null(outcome.report)},
      {"trace", text_or_null(outcome.trace)},
      {"model", text_or_null(outcome.model)},
      {"interrupted", interrupted != 0}};
  print_document(document);
}

void run(const Arguments& arguments) {
  const Outcome outcome = train(arguments);
  if (arguments.json) {
    print_json(arguments, outcome);
  } else {
    if (outcome.dropped_rows > 0)
      std::printf("Left out %s of %s without all values.\n", counted(outcome.dropped_rows, "line").c_str(),
                  arguments.data.c_str());
    std::printf("Peak %s in use.\n", format_bytes_exactly(outcome.history.peak_bytes()).c_str());
    if (!outcome.checkpoint.empty()) std::printf("The weights are in %s.\n", outcome.checkpoint.c_str());
    if (!outcome.model.empty()) std::printf("The model is in %s.\n", outcome.model.c_str());
    if (!outcome.report.empty()) std::printf("The report is in %s.\n", outcome.report.c_str());
    if (!outcome.trace.empty()) std::printf("The trace is in %s.\n", outcome.trace.c_str());
  }
  std::fflush(stdout);
  if (interrupted) {
    std::fprintf(stderr, "plimsoll: interrupted after %s; the weights are in %s\n",
                 counted(outcome.history.num_epochs(), "epoch").c_str(), outcome.checkpoint.c_str());
    throw Exit{130};
  }
}

void add_data_options(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--data", arguments.data,
                  "Examples: a CSV (the targets are the last columns), or an npz with x and y")
      ->required()
      ->type_name("FILE");
  command.add_option("--validation", arguments.validation, "The same, to look at after each epoch")->type_name("FILE");
  command.add_option("--target", arguments.columns.targets, "Columns of the CSV that are targets, by name or number");
  command.add_option("--categorical", arguments.columns.categorical,
                     "Columns of text, which become numbers: those of the training data, kept in columns.json");
  add_missing_option(command, arguments.columns, "What an empty field of an input is; drop: its line is left out");
  add_header_option(command, arguments.columns);
}

void add_training_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--epochs", arguments.epochs, "How often all examples are seen")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--batch", arguments.batch, "Examples in a step")->check(at_least(1))->capture_default_str();
  add_training_choice(command, arguments.choice);
  command.add_option("--seed", arguments.seed, "For initial weights, order and dropout: the same again");
  command.add_flag("--no-shuffle", arguments.no_shuffle, "Take the examples in the order of the file");
  command.add_option("--budget", arguments.budget, "Bytes that training may take: 64MiB")
      ->check(size_check())
      ->type_name("SIZE");
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("train", "Train a Layers model (model.json of TensorFlow.js or Keras)");
  command->add_option("MODEL", arguments->model, "model.json; one without weights begins anew")
      ->required()
      ->type_name("FILE");
  add_data_options(*command, *arguments);
  add_training_options(*command, *arguments);
  command->add_option("--weights", arguments->weights, "A checkpoint to begin with")->type_name("PREFIX");
  command->add_option("--checkpoint", arguments->checkpoint, "Folder for a checkpoint after each epoch")
      ->type_name("DIR");
  command->add_option("--out", arguments->out, "Folder for the trained model: model.json and weights.bin")
      ->type_name("DIR");
  command->add_option("--logdir", arguments->logdir, "Folder for TensorBoard")->type_name("DIR");
  command->add_option("--report", arguments->report, "One HTML page about the memory; its trace lies beside it")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print one JSON document and nothing else");
  command->footer("Ends with 3 when it does not fit the budget, with 130 after Ctrl-C, when the weights are saved.");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace plimsoll
