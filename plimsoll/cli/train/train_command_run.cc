#include "plimsoll/cli/train/train_command_run.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/program_failure.h"
#include "plimsoll/cli/train/onnx_files.h"
#include "plimsoll/cli/train/train_command_data.h"
#include "plimsoll/cli/train/train_command_outputs.h"
#include "plimsoll/cli/train/watch_signals.h"
#include "plimsoll/device/config.h"
#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/unavailable.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/keras/keras_file.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/keras/network_json.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/onnx/save_onnx.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll::internal {
namespace {

namespace fs = std::filesystem;

// Loads columns.json next to one of these files.
TableColumns columns_beside(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    const fs::path file = fs::path(place).parent_path() / TableColumns::kFile;
    if (!place.empty() && fs::exists(file)) return TableColumns::load(file.string());
  }
  return {};
}

class TrainRun {
 public:
  explicit TrainRun(const TrainArguments& arguments) : arguments_(arguments), choice_(arguments.choice) {}

  TrainOutcome run() {
    if (!arguments_.distributed) {
      prepare();
      fit();
      finish();
      return std::move(outcome_);
    }
    join();
    try {
      together([&] { prepare(); });
      fit();
      share_signals();
      together([&] { finish(); });
      outcome_.sent_bytes = job_->traffic().sent_bytes;
      outcome_.early_bytes = job_->traffic().early_bytes;
      outcome_.waited_seconds = job_->traffic().waited_seconds;
      job_->leave();
    } catch (const Unavailable& error) {
      end_job(error);
      throw;
    } catch (const std::exception& error) {  // All ranks have it; the first one prints a document.
      job_->leave();
      if (!is_first()) throw Exit{fail(failure_of(error), false)};
      throw;
    }
    return std::move(outcome_);
  }

 private:
  void join() {
    const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(arguments_.timeout * 1000));
    job_.emplace(distributed::JobOptions{.engine = "mpi", .timeout = timeout});
    outcome_.rank = job_->rank();
    outcome_.ranks = job_->size();
    outcome_.slices = arguments_.slices > 0 ? arguments_.slices : static_cast<std::size_t>(job_->size());
    job_->set_activity("the preparation");
  }
  // A failure in one rank ends all of them.
  template <class F>
  void together(F&& f) {
    std::exception_ptr error;
    try {
      f();
    } catch (const Unavailable&) {
      throw;
    } catch (...) {
      error = std::current_exception();
    }
    distributed::agree(*job_, {.error = error});
  }
  // A signal to one rank has ended the fit of all: each says whose it was.
  void share_signals() {
    const int mine = outcome_.signal;
    std::vector<int> all(static_cast<std::size_t>(job_->size()));
    distributed::exchange(*job_, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), "signals");
    for (int rank = 0; rank < job_->size(); ++rank) {
      const int signal = all[static_cast<std::size_t>(rank)];
      if (signal == 0) continue;
      std::fprintf(stderr, "plimsoll: rank %d: %s was interrupted by %s in %s\n", outcome_.rank,
                   job_->describe(rank).c_str(), WatchSignals::name_of(signal), job_->activity().c_str());
      if (mine == 0) outcome_.signal = signal;
    }
  }
  // Ends all processes, including those that hang, after all that can have reported why.
  void end_job(const Unavailable& error) {
    const int code = fail(failure_of(error), arguments_.json && is_first());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    job_->abort(code);
  }
  bool is_first() const { return outcome_.rank == 0; }

  void prepare() {
    require_form(arguments_.data, {".csv", ".npz"});
    if (arguments_.seed) config::set_seed(*arguments_.seed);
    if (!arguments_.budget.empty()) budget_ = outcome_.budget = parse_bytes(arguments_.budget);
    find_places();
    if (is_first()) check_outputs();
    if (!arguments_.report.empty()) {
      const std::string extension = is_first() ? ".trace" : fmt::format(".rank{}.trace", outcome_.rank);
      outcome_.trace = fs::path(arguments_.report).replace_extension(extension).string();
      if (const fs::path folder = fs::path(outcome_.trace).parent_path(); !folder.empty()) make_directories(folder);
      recorder_.emplace(TraceOptions{.path = outcome_.trace});
    }
    if (!model_path_.empty()) {
      const auto there = work_on(arguments_.device);
      model_.emplace(is_onnx(model_path_) ? load_onnx(model_path_)
                                          : load_model(model_path_, {.compile = choice_.loss.empty()}));
    }
    is_csv(arguments_.data) ? open_table() : open_arrays();
    if (columns_.is_set()) static_cast<void>(columns_.to_json());  // Refuses bad text now.
    if (!is_first()) return;
    require_own_folders();
    if (job_ && checkpoints_.is_set()) describe_checkpoints();  // Before state is distributed.
  }

  // Where it starts, and where it writes its results.
  void find_places() {
    model_path_ = arguments_.model;
    weights_ = arguments_.weights;
    std::string checkpoint = arguments_.checkpoint;
    if (!arguments_.resume.empty()) {
      const Resumed found = find_training(arguments_.resume);
      weights_ = found.weights;
      first_epoch_ = found.epochs;
      if (model_path_.empty()) model_path_ = found.model;
      if (model_path_.empty())
        throw NotFound(
            fmt::format("train: --resume {}: there is no model.json in it; name the model", arguments_.resume));
      if (checkpoint.empty()) checkpoint = arguments_.resume;
    }
    if (!checkpoint.empty()) checkpoints_ = Checkpoints(checkpoint);
    outcome_.first_epoch = first_epoch_ + 1;
  }

  static bool is_keras_name(const std::string& name) { return fs::path(name).extension() == ".keras"; }

  std::string usual_out() const {
    const std::string& from = !arguments_.model.empty() ? arguments_.model : arguments_.data;
    return free_folder(trained_name(from));
  }

  void check_outputs() {
    const std::string out = arguments_.out.empty() ? usual_out() : arguments_.out;
    if (is_keras_name(out))
      require_writable_file("--out", out);
    else
      require_writable_folder("--out", out);
    if (checkpoints_.is_set()) {
      require_writable_folder("--checkpoint", checkpoints_.folder());
      lock_.emplace("--checkpoint", checkpoints_.folder());
      checkpoints_ = Checkpoints(checkpoints_.folder());  // Another training may have ended meanwhile.
    }
    if (!arguments_.logdir.empty()) require_writable_folder("--logdir", arguments_.logdir);
    if (!arguments_.report.empty()) require_writable_file("--report", arguments_.report);
  }

  // Checkpoints belong to a model and its columns, which are beside them: those of another training stay whole.
  void require_own_folders() const {
    const bool knows_topology = !is_onnx(model_path_);
    const std::string topology = knows_topology ? layers_topology(*model_, false) : "";
    const std::string columns = columns_.is_set() ? columns_.to_json() : "";
    if (checkpoints_.is_set() && arguments_.resume != checkpoints_.folder())
      require_same_training("--checkpoint", checkpoints_.folder(), topology, columns);
    if (!arguments_.out.empty() && Checkpoints(arguments_.out).last() > 0)
      require_same_training("--out", arguments_.out, topology, columns);
  }

  void say(const std::string& line) const {
    if (arguments_.json || !is_first()) return;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  // Those of the training that is continued, unless others are requested.
  TableColumns known_columns() const {
    if (arguments_.columns.choose_columns() && arguments_.resume.empty()) return {};
    TableColumns known = columns_beside({weights_, model_path_});
    if (!arguments_.resume.empty() && known.is_set())
      if (const char* const option = arguments_.columns.differs_from(known)) refuse_to_change(option);
    return known;
  }

  [[noreturn]] static void refuse_to_change(const char* option) {
    refuse_usage(option, "--resume continues with the training's own; begin another training with --weights");
  }

  void open_table() {
    const TableColumns known = known_columns();
    DataOptions options = arguments_.columns;
    options.seed = arguments_.seed.value_or(0);
    options.quiet = arguments_.json || !is_first();
    std::optional<ModelEnds> ends;
    if (model_) ends.emplace(*model_);
    TrainingTable table(arguments_.data, options, known, ends ? &*ends : nullptr);
    const bool made = !model_;
    if (made)
      make_model(table.plain_model(!choice_.loss.empty() && choice_.loss.find("crossentropy") == std::string::npos));
    compile_model(table.one_hot());
    table.require_fit(ModelEnds(*model_), model_->loss_takes_labels());
    if (table.one_hot() && is_of_classes()) table.require_shares();
    const bool standardizes =
        options.standardize == "yes" || (options.standardize == "auto" && (made || table.columns().look_back > 0));
    if (!known.scales.empty() || (!known.is_set() && standardizes)) table.standardize(!is_of_classes());
    columns_ = table.columns();
    std::optional<CsvFile> validation;
    if (!arguments_.validation.empty()) {
      CsvOptions csv = columns_.options_for(arguments_.validation, options.has_header(), true);
      csv.missing = options.missing;
      validation.emplace(arguments_.validation, csv, reading_progress(arguments_.validation, options.quiet));
      if (validation->num_examples() == 0)
        throw InvalidArgument(fmt::format("train: {} has no examples", arguments_.validation));
    }
    say(table.summary());
    outcome_.dropped_rows = table.dropped_rows();
    take(make_training_data(table, validation ? &*validation : nullptr, *model_, batch_plan()));
  }

  void open_arrays() {
    if (!model_)
      throw InvalidArgument(
          fmt::format("train: {} has no names of columns to make a model from; name one, which plimsoll new writes",
                      arguments_.data));
    compile_model(npz_is_one_hot(arguments_.data, ModelEnds(*model_)));
    take(make_training_data(arguments_.data, arguments_.validation, arguments_.columns.validation_split, *model_,
                            batch_plan()));
  }

  BatchPlan batch_plan() const {
    BatchPlan plan{
        .batch = arguments_.batch, .shuffle = !arguments_.no_shuffle, .seed = arguments_.seed, .budget = budget_};
    if (job_)
      plan.together = {.ranks = job_->size(),
                       .slices = outcome_.slices,
                       .shard_optimizer = arguments_.shard_optimizer,
                       .shard_parameters = arguments_.shard_parameters};
    return plan;
  }

  void take(TrainingData data) {
    outcome_.data_bytes = data.held_bytes;
    outcome_.streams = data.streams;
    outcome_.shuffled_examples = data.shuffled_rows;
    outcome_.shards_parameters = arguments_.shard_parameters || data.shards_parameters;
    if (data.shards_parameters)
      say("The budget has no room for all parameters: the processes keep a part of them each (--shard-parameters)");
    if (data.streams)
      say(fmt::format("There is no room to hold the data: each epoch reads {} again, {}", arguments_.data,
                      data.shuffled_rows > 0 ? fmt::format("shuffled within {} of {}", data.shuffled_rows,
                                                           plural(data.examples, "example"))
                                             : "in its order"));
    data_ = std::move(data);
  }

  void make_model(const PlainModel& plain) {
    {
      const auto there = work_on(arguments_.device);
      model_.emplace(make_plain_model(plain));
    }
    if (choice_.loss.empty()) choice_.loss = plain.classes ? "sparse_categorical_crossentropy" : "mean_squared_error";
    say(fmt::format("A {} model is made for {}: {} {}", plain.kind, arguments_.data, plain.outputs,
                    plain.classes        ? "classes"
                    : plain.outputs == 1 ? "number"
                                         : "numbers"));
  }

  void compile_model(bool one_hot) {
    const auto kind = [](const Optimizer& optimizer) { return optimizer.options().index(); };
    if (!arguments_.resume.empty() && !choice_.optimizer.empty() && model_->is_compiled() &&
        kind(model_->optimizer()) != kind(optimizers::by_name(choice_.optimizer)))
      refuse_to_change("--optimizer");
    loss_ = compile(*model_, model_path_, choice_, one_hot);
    if (!weights_.empty()) model_->load_weights(weights_);
  }

  bool is_of_classes() const { return model_->loss_takes_labels() || loss_.find("crossentropy") != std::string::npos; }

  std::vector<Callback> callbacks() {
    const auto stop = [](Model& model) {
      if (WatchSignals::caught() != 0) model.stop_training();
    };
    std::vector<Callback> list = {callbacks::OnBatchEnd([this, stop](Model& model, std::size_t, const Logs&) {
                                    stepped_ = true;
                                    stop(model);
                                  }),
                                  callbacks::OnEpochEnd([this, stop](Model& model, int epoch, const Logs& logs) {
                                    stop(model);
                                    warn_of_loss(logs, epoch);
                                    ++epochs_done_;
                                    if (checkpoints_.is_set()) checkpoint(epoch);
                                  })};
    if (!arguments_.logdir.empty()) list.push_back(callbacks::TensorBoard(arguments_.logdir));
    return list;
  }

  void warn_of_loss(const Logs& logs, int epoch) {
    if (std::isfinite(logs["loss"]) || std::exchange(warned_, true) || !is_first()) return;
    std::fprintf(stderr,
                 "plimsoll: warning: the loss of epoch %d is not a finite number; try a smaller --learning-rate\n",
                 epoch + 1);
  }

  // What --resume needs besides the weights.
  void describe_checkpoints() {
    const std::string model = (fs::path(checkpoints_.folder()) / "model.json").string();
    if (columns_.is_set()) columns_.save(checkpoints_.folder());
    if (!fs::exists(model) && !is_onnx(model_path_)) write_topology(*model_, model, true);
  }

  void checkpoint(int epoch) {
    if (epoch == first_epoch_ && !job_) describe_checkpoints();
    const std::string path = checkpoints_.path(epoch + 1 - first_epoch_ + std::max(first_epoch_, checkpoints_.last()));
    model_->save_weights(path);
    outcome_.checkpoint = path;
  }

  void fit() {
    if (first_epoch_ >= arguments_.epochs && !arguments_.resume.empty())
      say(fmt::format("{} are done already; give a larger --epochs to train on",
                      plural(static_cast<std::size_t>(first_epoch_), "epoch")));
    watch_.emplace();  // Until everything is saved.
    try {
      outcome_.history = model_->fit(data_.train, {.epochs = arguments_.epochs,
                                                   .validation_data = data_.validation,
                                                   .verbose = arguments_.json ? 0 : 1,
                                                   .callbacks = callbacks(),
                                                   .budget = budget_,
                                                   .spill = arguments_.spill,
                                                   .distributed = distributed_options(),
                                                   .max_slowdown = arguments_.max_slowdown,
                                                   .initial_epoch = first_epoch_});
    } catch (const Unavailable&) {  // Weights may be half changed: only the last checkpoint is usable.
      throw;
    } catch (...) {
      if (stepped_) save_after_error();
      throw;
    }
    outcome_.signal = WatchSignals::caught();
  }
  distributed::TrainingOptions distributed_options() {
    if (!job_) return {};
    return {.job = &*job_,
            .slices = arguments_.slices,
            .shard_optimizer = arguments_.shard_optimizer,
            .shard_parameters = outcome_.shards_parameters};
  }

  // The first rank writes; when the optimizer's state is distributed, the others send theirs.
  void save() {
    if (!is_first() && !arguments_.shard_optimizer && !outcome_.shards_parameters) return;
    outcome_.out = !arguments_.out.empty() ? arguments_.out : is_first() ? usual_out() : "";
    if (is_onnx(model_path_)) {
      if (!is_first()) return;
      make_directories(outcome_.out);
      save_onnx(*model_, fs::path(outcome_.out) / "model.onnx");
    } else if (is_keras_name(outcome_.out)) {
      save_keras(*model_, outcome_.out);
      if (columns_.is_set() && is_first()) columns_.save(fs::absolute(outcome_.out).parent_path().string());
      return;
    } else {
      save_layers_model(*model_, outcome_.out, {.include_optimizer = true});
    }
    if (columns_.is_set() && is_first()) columns_.save(outcome_.out);
  }
  void save_after_error() {
    try {
      save();
      if (!is_first()) return;
      std::fprintf(stderr, "plimsoll: training failed after %s; the model is in %s\n",
                   plural(epochs_done_, "epoch").c_str(), outcome_.out.c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "plimsoll: the model cannot be saved either: %s\n", error.what());
    }
  }

  void finish() {
    save();
    if (WatchSignals::caught() != 0) outcome_.signal = WatchSignals::caught();
    if (!recorder_) return;
    recorder_->finish();
    if (!has_report_page() || !is_first()) return;
    write_report(outcome_.trace, arguments_.report);
    outcome_.report = arguments_.report;
  }

  const TrainArguments& arguments_;
  TrainingChoice choice_;
  TrainOutcome outcome_;
  std::optional<std::size_t> budget_;
  std::optional<TraceRecorder> recorder_;
  std::string model_path_, weights_, loss_;
  Checkpoints checkpoints_;
  std::optional<TrainingFolderLock> lock_;  // Of the checkpoints' folder.
  int first_epoch_ = 0;
  std::optional<Model> model_;
  TableColumns columns_;
  TrainingData data_;
  bool stepped_ = false, warned_ = false;
  std::size_t epochs_done_ = 0;
  std::optional<WatchSignals> watch_;
  std::optional<distributed::Job> job_;
};

}  // namespace

TrainOutcome train(const TrainArguments& arguments) { return TrainRun(arguments).run(); }

}  // namespace plimsoll::internal
