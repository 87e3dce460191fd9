#include "plimsoll/model/training/callbacks.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <optional>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/monitor.h"
#include "plimsoll/tensor/context_guards.h"

namespace plimsoll {
namespace {

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

class EarlyStoppingCallback final : public CallbackBase {
 public:
  explicit EarlyStoppingCallback(const EarlyStoppingOptions& options)
      : options_(options), monitor_(options.monitor, options.min_delta) {}
  void on_train_begin(Model&) override {
    monitor_.begin();
    waited_ = 0;
    best_.clear();
  }
  void on_epoch_end(Model& model, int epoch, const Logs& logs) override {
    const std::optional<bool> better = monitor_.improves(logs);
    if (!better) return;
    if (*better) {
      waited_ = 0;
      best_epoch_ = epoch;
      if (options_.restore_best_weights) keep(model);
      return;
    }
    ++waited_;
    if (waited_ < options_.patience || epoch == 0) return;
    model.stop_training();
    if (options_.verbose > 0) say(fmt::format("Epoch {}: early stopping", epoch + 1));
  }
  void on_train_end(Model& model) override {
    const std::vector<Variable> weights = best_.empty() ? std::vector<Variable>() : model.weights();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i].assign(best_[i]);
    if (options_.verbose > 0 && !best_.empty())
      say(fmt::format("Restored the weights of the best epoch: {}", best_epoch_ + 1));
    best_.clear();
  }

 private:
  void keep(const Model& model) {
    const Untracked outside;
    std::vector<Tensor> values;
    for (const Variable& variable : model.weights()) values.push_back(variable.value().clone());
    best_ = std::move(values);
  }

  const EarlyStoppingOptions options_;
  Monitor monitor_;
  int waited_ = 0, best_epoch_ = 0;
  std::vector<Tensor> best_;  // Of the best epoch: copies, so that no step inside a budget has to make one.
};

class ReduceOnPlateauCallback final : public CallbackBase {
 public:
  explicit ReduceOnPlateauCallback(const ReduceLROnPlateauOptions& options)
      : options_(options), monitor_(options.monitor, options.min_delta) {}
  void on_train_begin(Model&) override {
    monitor_.begin();
    waited_ = rest_ = 0;
  }
  void on_epoch_end(Model& model, int epoch, const Logs& logs) override {
    const std::optional<bool> better = monitor_.improves(logs);
    if (!better) return;
    if (rest_ > 0) {
      --rest_;
      waited_ = 0;
    }
    if (*better) {
      waited_ = 0;
    } else if (rest_ == 0 && ++waited_ >= options_.patience) {
      const double rate = model.optimizer().learning_rate();
      if (rate > options_.min_lr) {
        const double lower = std::max(rate * options_.factor, options_.min_lr);
        model.optimizer().set_learning_rate(lower);
        if (options_.verbose > 0) say(fmt::format("Epoch {}: the learning rate is now {}", epoch + 1, lower));
      }
      rest_ = options_.cooldown;
      waited_ = 0;
    }
  }

 private:
  const ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  int waited_ = 0, rest_ = 0;
};

class SchedulerCallback final : public CallbackBase {
 public:
  explicit SchedulerCallback(std::function<double(int, double)> schedule) : schedule_(std::move(schedule)) {}
  void on_epoch_begin(Model& model, int epoch) override {
    const Optimizer& optimizer = model.optimizer();
    optimizer.set_learning_rate(schedule_(epoch, optimizer.learning_rate()));
  }

 private:
  const std::function<double(int, double)> schedule_;
};

class CSVCallback final : public CallbackBase {
 public:
  bool is_for_first_rank() const override { return true; }
  explicit CSVCallback(std::string path) : path_(std::move(path)) {}
  void on_train_begin(Model&) override { text_.clear(); }
  void on_epoch_end(Model&, int epoch, const Logs& logs) override {
    if (text_.empty()) {
      text_ = "epoch";
      for (const auto& [name, value] : logs) text_ += "," + name;
      text_ += "\n";
    }
    text_ += fmt::format("{}", epoch);
    for (const auto& [name, value] : logs) text_ += fmt::format(",{}", value);
    text_ += "\n";
  }
  void on_train_end(Model&) override {
    if (text_.empty()) return;  // No epoch came to its end.
    AtomicFile file(path_);
    file.write(text_);
    file.commit();
  }

 private:
  const std::string path_;
  std::string text_;
};

class FunctionCallback final : public CallbackBase {
 public:
  std::function<void(Model&, int, const Logs&)> epoch;
  std::function<void(Model&, std::size_t, const Logs&)> batch;
  void on_epoch_end(Model& model, int number, const Logs& logs) override {
    if (epoch) epoch(model, number, logs);
  }
  void on_batch_end(Model& model, std::size_t number, const Logs& logs) override {
    if (batch) batch(model, number, logs);
  }
};

}  // namespace

namespace callbacks {

Callback EarlyStopping(const EarlyStoppingOptions& options) {
  if (options.patience < 0)
    throw InvalidArgument(fmt::format("EarlyStopping: patience is {}; give 0 or more", options.patience));
  return make_callback<EarlyStoppingCallback>(options);
}
Callback ReduceLROnPlateau(const ReduceLROnPlateauOptions& options) {
  if (!(options.factor > 0 && options.factor < 1) || options.patience < 0)
    throw InvalidArgument(fmt::format("ReduceLROnPlateau: factor {} and patience {}; give a factor between 0 and 1",
                                      options.factor, options.patience));
  return make_callback<ReduceOnPlateauCallback>(options);
}
Callback LearningRateScheduler(std::function<double(int, double)> schedule) {
  return make_callback<SchedulerCallback>(std::move(schedule));
}
Callback CSVLogger(const std::string& path) { return make_callback<CSVCallback>(path); }
Callback OnEpochEnd(std::function<void(Model&, int, const Logs&)> f) {
  auto base = std::make_shared<FunctionCallback>();
  base->epoch = std::move(f);
  return Callback(std::move(base));
}
Callback OnBatchEnd(std::function<void(Model&, std::size_t, const Logs&)> f) {
  auto base = std::make_shared<FunctionCallback>();
  base->batch = std::move(f);
  return Callback(std::move(base));
}

}  // namespace callbacks
}  // namespace plimsoll
