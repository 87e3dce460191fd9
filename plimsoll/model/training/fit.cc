#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/interrupt.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/outside_budgets.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/internal/require_tensors.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/batch_slices.h"
#include "plimsoll/model/training/distributed_training.h"
#include "plimsoll/model/training/growth_watch.h"
#include "plimsoll/model/training/progress.h"
#include "plimsoll/model/training/step_budget.h"
#include "plimsoll/model/training/targets.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

void require_compiled(const Network& network, const char* where) {
  if (!network.training.is_compiled())
    throw FailedPrecondition(
        fmt::format("{}: model \"{}\" is not compiled; call compile first", where, network.name()));
}

// The weight of each example's class, times the weight it has.
Tensor class_weights_of(const Example& batch, const std::map<std::int64_t, double>& classes) {
  const Untracked outside;
  return tidy([&] {
    const Tensor& y = batch.y();
    Tensor labels = y.rank() > 1 && y.shape().back() > 1 ? y.argmax(-1) : y.cast(i64);
    labels = labels.reshape({labels.shape()[0], -1});
    if (labels.shape()[1] != 1)
      throw InvalidArgument(fmt::format("fit: class weights need one label for each example, targets have shape {}",
                                        y.shape().to_string()));
    Tensor weights =
        make_tensor({.op = "class_weights", .category = Category::kInputs}, {labels.shape()[0]}, f32, device_of(y));
    HostWrite written(weights);
    float* const to = written.data<float>();
    const auto from = labels.data<std::int64_t>();
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto found = classes.find(from[i]);
      to[i] = found == classes.end() ? 1.f : static_cast<float>(found->second);
    }
    written.finish();
    if (batch.weights.is_empty_handle()) return weights;
    return batch.weights.cast(f32) * fit_weights(weights, batch.weights.shape(), "fit");
  });
}

// A pass over it does not affect the order of later passes over `data`.
Dataset frozen_copy(const Dataset& data) {
  const auto frozen = data.is_set() ? data.node()->frozen(false) : nullptr;
  return frozen ? Dataset(frozen) : data;
}

// A pass, charged to the budget.
class ChargedPass {
 public:
  ChargedPass(const Network& network, const Dataset& data, StepBudget& memory) : network_(network), memory_(memory) {
    const BudgetScope scope(memory_.loading());
    stream_ = data.open();
  }
  // Loads the next batch after freeing the one before.
  bool next(Example& batch) {
    batch = {};
    const BudgetScope scope(memory_.loading());
    if (!stream_->next(batch)) return false;
    cast_inputs(network_, batch.inputs);
    return true;
  }

 private:
  const Network& network_;
  StepBudget& memory_;
  std::unique_ptr<ExampleStream> stream_;
};

// The last batch of a pass may be smaller than this first one, and need more, because it can recompute less: when
// memory is limited, its step is checked before any is taken.
void expect_last(Network& network, StepKind kind, const Example& batch, const Dataset& data, StepBudget& memory,
                 const char* where) {
  const std::optional<std::size_t> rows = data.node()->last_batch_size();
  if (!rows || *rows >= static_cast<std::size_t>(batch.x().shape()[0])) return;
  const Example last = rows_of(batch, {0, *rows});
  try {
    memory.expect(network.training.plans.get(kind, last, where), last, *data.node(), &batch);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error&) {  // That batch will report it.
  }
}

struct TestOptions {
  const char* where = "evaluate";
  std::string_view prefix = {};
  const char* empty = "evaluate: the dataset has no batches; give it some";  // The error for one.
};

// Calls `f(result)` for every `every`th batch, starting at number `first`. Returns how many there are.
template <class F>
std::size_t test_batches(Network& network, const Dataset& data, StepBudget& memory, const TestOptions& options, F&& f,
                         std::size_t first = 0, std::size_t every = 1) {
  Example batch;
  std::size_t batches = 0;
  for (ChargedPass pass(network, data, memory); pass.next(batch); ++batches) {
    if (batches % every != first) continue;
    check_interrupt();
    const auto plan = network.training.plans.get(StepKind::kTest, batch, options.where);
    if (memory.is_limited() && !memory.has_admitted())
      expect_last(network, StepKind::kTest, batch, data, memory, options.where);
    memory.admit(plan, batch, *data.node());
    f(memory.run(*plan, batch));
  }
  if (batches == 0) throw InvalidArgument(options.empty);
  return batches;
}

Logs run_test(Network& network, const Dataset& data, StepBudget& memory, const TestOptions& options) {
  StepMeans means(network, options.prefix);
  test_batches(network, data, memory, options, [&](const StepResult& result) { means.add(result); });
  return std::move(means).logs();
}

// The processes of a job take batches in turn.
Logs run_test_together(Network& network, const Dataset& data, StepBudget& memory, const TestOptions& options,
                       DistributedTraining& together, const distributed::Job& job) {
  StepMeans means(network, options.prefix);
  std::vector<StepResult> own;
  std::size_t batches = 0;
  std::exception_ptr error;
  try {
    batches = test_batches(
        network, data, memory, options, [&](const StepResult& result) { own.push_back(result); },
        static_cast<std::size_t>(job.rank()), static_cast<std::size_t>(job.size()));
  } catch (...) {
    error = std::current_exception();
  }
  for (const StepResult& result : together.share_results(own, batches, error)) means.add(result);
  return std::move(means).logs();
}

// The datasets for training and testing; either may be unset.
struct TrainedOn {
  Dataset train, test;
  std::map<std::int64_t, double> class_weights;
};

// When data could not be loaded, or a step without a plan could not run: throws the limit that suffices, if it can be
// found. Loads one batch of each dataset, outside budgets; devices still refuse.
void explain_refusal(Network& network, const StepBudget& memory, const TrainedOn& on) {
  std::optional<StepBudget> unlimited;
  try {
    const OutsideBudgets free;
    unlimited.emplace(network, "fit", StepLimits{});
    const auto expect = [&](const Dataset& data, StepKind kind) {
      if (!data.is_set()) return;
      Example batch;
      const Dataset copy = frozen_copy(data);
      ChargedPass pass(network, copy, *unlimited);
      if (!pass.next(batch)) return;
      if (kind == StepKind::kTrain && !on.class_weights.empty())
        batch.weights = class_weights_of(batch, on.class_weights);
      unlimited->expect(network.training.plans.get(kind, batch, "fit"), batch, *data.node());
      expect_last(network, kind, batch, data, *unlimited, "fit");
    };
    expect(on.test, StepKind::kTest);
    expect(on.train, StepKind::kTrain);
  } catch (const Error&) {  // The first refusal is reported.
    return;
  }
  network.training.plans.clear();
  forget_new_states(network);
  memory.refuse_expected(*unlimited);
}

// While it lives, this job trains the model: only its first rank writes files.
class TrainingTogether {
 public:
  TrainingTogether(Network& network, distributed::Job& job) noexcept : network_(network) {
    network_.training.job = &job;
  }
  ~TrainingTogether() {
    if (!network_.training.spread) network_.training.job = nullptr;
  }
  TrainingTogether(const TrainingTogether&) = delete;
  TrainingTogether& operator=(const TrainingTogether&) = delete;

 private:
  Network& network_;
};

// One fit: epochs, callbacks, history.
class Fit {
 public:
  Fit(Model model, const Dataset& data, const FitOptions& options)
      : model_(std::move(model)),
        network_(model_.network()),
        data_(data),
        options_(options),
        job_(options.distributed.job),
        device_(device_of_model(network_)),
        memory_(network_, "fit",
                {.bytes = options.budget,
                 .max_slowdown = options.max_slowdown,
                 .spill = options.spill,
                 .parks = !options.distributed.job,
                 .shards_parameters = options.distributed.job && options.distributed.shard_parameters &&
                                      options.distributed.job->size() > 1}),
        validation_(options.validation_data),
        progress_({.verbose = job_ && job_->rank() != 0 ? 0 : options.verbose,
                   .epochs = options.epochs,
                   .batches = data.size(),
                   .device = device_,
                   .budget = &memory_}) {}

  ~Fit() { network_.training.saving = nullptr; }

  History run() {
    network_.training.stop = false;
    network_.training.saving = &memory_.loading();
    reset_memory_stats(device_);
    const std::vector<std::string> names = log_names();
    call_back([&](CallbackBase& callback) { callback.check_names(names); });
    if (job_) return run_together();
    try {
      expect_validation();
      call_back([&](CallbackBase& callback) { callback.on_train_begin(model_); });
      run_epochs();
    } catch (const OutOfMemory&) {
      if (!has_stepped_ && !memory_.has_refused() && memory_.is_limited())
        explain_refusal(network_, memory_, {data_, validation_, options_.class_weights});
      throw;
    }
    return end();
  }

 private:
  // An exception in one process is thrown in all.
  History run_together() {
    together_ = std::make_unique<DistributedTraining>(network_, options_.distributed, memory_);
    const TrainingTogether here(network_, *job_);
    try {
      data_ = together_->agreed(data_, true);
      validation_ = together_->agreed(validation_, false);
      call_back([&](CallbackBase& callback) { callback.on_train_begin(model_); });
      run_epochs();
      History history = end();
      together_->agree_to_go_on();
      return history;
    } catch (...) {
      together_->tell(std::current_exception());
      throw;
    }
  }

  History end() {
    call_back([&](CallbackBase& callback) { callback.on_train_end(model_); });
    history_.set_peak_bytes(memory_.peak_bytes());
    history_.set_recomputed_fraction(memory_.recomputed_fraction());
    history_.set_spilled_bytes(memory_.spilled_bytes());
    return history_;
  }

  // Where the model is; where new tensors are, when it has no weights yet.
  static std::string device_of_model(const Network& network) {
    for (const LayerBase::Weight& weight : network.unique_weights()) return weight.variable.device();
    return tidy([] { return make_tensor({.op = "fit"}, {0}, f32, current_device()).device(); });
  }

  template <class F>
  void call_back(F&& f) {
    const bool is_first = !job_ || job_->rank() == 0;
    for (const Callback& callback : options_.callbacks)
      if (is_first || !callback.base().is_for_first_rank()) f(callback.base());
  }
  bool has_to_stop() const { return together_ ? together_->has_to_stop() : network_.training.stop.load(); }
  // After an error: callbacks release what they hold; a second error is not reported.
  void end_quietly() {
    for (const Callback& callback : options_.callbacks) {
      try {
        callback.base().on_train_end(model_);
      } catch (const std::exception&) {
      }
    }
  }

  void run_epochs() {
    try {
      for (int epoch = options_.initial_epoch; epoch < options_.epochs && !has_to_stop(); ++epoch) run_epoch(epoch);
    } catch (...) {
      end_quietly();
      throw;
    }
  }

  void run_epoch(int epoch) {
    call_back([&](CallbackBase& callback) { callback.on_epoch_begin(model_, epoch); });
    progress_.begin_epoch(epoch);
    StepMeans means(network_);
    std::size_t number = 0;
    Example batch;
    for (ChargedPass pass(network_, data_, memory_); next(pass, batch);) {
      means.add(step(batch));
      has_stepped_ = true;
      if (!options_.callbacks.empty() || progress_.wants_batches()) {
        const Logs& logs = means.logs();
        call_back([&](CallbackBase& callback) { callback.on_batch_end(model_, number, logs); });
        progress_.batch_ended(number + 1, logs);
      }
      ++number;
      watch(steps_);
      if (has_to_stop()) break;
    }
    if (number == 0) throw InvalidArgument("fit: the dataset has no batches; give it some");
    Logs logs = means.logs();
    if (together_) together_->gather_parameters();
    if (validation_.is_set())
      for (const auto& [name, value] : run_validation()) logs.set(name, value);
    progress_.end_epoch(number, logs);
    call_back([&](CallbackBase& callback) { callback.on_epoch_end(model_, epoch, logs); });
    history_.add(logs);
    watch(epochs_);
    if (together_) together_->agree_to_go_on();
  }

  bool next(ChargedPass& pass, Example& batch) {
    const auto load = [&] {
      if (!pass.next(batch)) return false;
      if (!options_.class_weights.empty()) batch.weights = weights_of(batch);
      return true;
    };
    return together_ ? together_->load(load, batch) : load();
  }
  StepResult step(const Example& batch) {
    if (together_) {
      StepResult result = together_->step(batch, *data_.node());
      progress_.set_ranks(job_->size(), together_->bytes_used());
      return result;
    }
    const auto plan = network_.training.plans.get(StepKind::kTrain, batch, "fit");
    if (!has_stepped_ && memory_.is_limited()) expect_last(network_, StepKind::kTrain, batch, data_, memory_, "fit");
    memory_.admit(plan, batch, *data_.node());
    if (!has_stepped_) progress_.show_slowdown(memory_.predicted_slowdown());
    return memory_.run(*plan, batch);
  }

  // Reports continuously rising memory once.
  void watch(GrowthWatch& phase) {
    const std::optional<std::string> found = history_.growth().empty() ? phase.step_ended() : std::nullopt;
    if (!found) return;
    history_.set_growth(*found);
    log_message(LogLevel::warning, *found);
  }

  Tensor weights_of(const Example& batch) {
    const BudgetScope scope(memory_.loading());
    return class_weights_of(batch, options_.class_weights);
  }

  // Refuses a validation that would not fit before the first step too.
  void expect_validation() {
    if (!memory_.is_limited() || !validation_.is_set()) return;
    Example batch;
    const Dataset copy = frozen_copy(validation_);
    ChargedPass pass(network_, copy, memory_);
    if (!pass.next(batch)) return;
    const auto plan = network_.training.plans.get(StepKind::kTest, batch, "fit");
    memory_.expect(plan, batch, *validation_.node());
    expect_last(network_, StepKind::kTest, batch, validation_, memory_, "fit");
  }
  // The names that the logs of an epoch will have.
  std::vector<std::string> log_names() const {
    std::vector<std::string> names;
    const Logs logs = StepMeans(network_).logs();
    for (const auto& [name, value] : logs) names.push_back(name);
    if (validation_.is_set())
      for (const auto& [name, value] : logs) names.push_back("val_" + name);
    return names;
  }
  Logs run_validation() {
    const TestOptions options{.where = "fit",
                              .prefix = "val_",
                              .empty = "fit: validation_data has no batches; give it some, or leave it out"};
    return together_ ? run_test_together(network_, validation_, memory_, options, *together_, *job_)
                     : run_test(network_, validation_, memory_, options);
  }

  Model model_;
  Network& network_;
  Dataset data_;
  const FitOptions& options_;
  distributed::Job* const job_;
  const std::string device_;
  StepBudget memory_;
  Dataset validation_;
  std::unique_ptr<DistributedTraining> together_;  // If there is a job.
  bool has_stepped_ = false;
  Progress progress_;
  History history_;
  GrowthWatch steps_{"step", 16, 16}, epochs_{"epoch", 2, 1};
};

}  // namespace

History Model::fit(const Dataset& data, const FitOptions& options) {
  require_compiled(*network_, "fit");
  if (options.epochs < 0 || options.initial_epoch < 0)
    throw InvalidArgument(
        fmt::format("fit: {} epochs, the first of number {}; give 0 or more", options.epochs, options.initial_epoch));
  if (!(options.max_slowdown >= 1))
    throw InvalidArgument(
        fmt::format("fit: max_slowdown is {:g}; give 1 (no recomputing) or more", options.max_slowdown));
  if (options.validation_split != 0)
    throw InvalidArgument("fit: validation_split needs tensors; split the dataset and give validation_data");
  return Fit(*this, data, options).run();
}

History Model::fit(const Tensor& x, const Tensor& y, const FitOptions& options) {
  require_compiled(*network_, "fit");
  if (!(options.validation_split >= 0 && options.validation_split < 1))
    throw InvalidArgument(
        fmt::format("fit: validation_split is {}; give 0 or more, and less than 1", options.validation_split));
  require_tensors({x}, "fit", "x");
  require_tensors({y}, "fit", "y");
  Dataset rows = Dataset::from_tensors(x, y);
  FitOptions rest = options;
  rest.validation_split = 0;
  const std::size_t count = rows.size().value_or(0);
  if (options.validation_split > 0 && !options.validation_data.is_set()) {
    const auto kept = static_cast<std::size_t>(std::floor(static_cast<double>(count) * (1 - options.validation_split)));
    rest.validation_data = rows.skip(kept).batch(options.batch_size);
    rows = rows.take(kept);
  }
  if (options.shuffle && count > 1) rows = rows.shuffle(count);
  return fit(rows.batch(options.batch_size), rest);
}

Logs Model::evaluate(const Dataset& data, const BatchSizeOptions& options) const {
  require_compiled(*network_, "evaluate");
  StepBudget memory(*network_, "evaluate", {.bytes = options.budget, .spill = options.spill});
  try {
    return run_test(*network_, data, memory, {});
  } catch (const OutOfMemory&) {
    if (!memory.has_refused() && memory.is_limited())
      explain_refusal(*network_, memory, {.train = {}, .test = data, .class_weights = {}});
    throw;
  }
}

Logs Model::evaluate(const Tensor& x, const Tensor& y, const BatchSizeOptions& options) const {
  require_tensors({x}, "evaluate", "x");
  require_tensors({y}, "evaluate", "y");
  return evaluate(Dataset::from_tensors(x, y).batch(options.batch_size), options);
}

}  // namespace plimsoll
