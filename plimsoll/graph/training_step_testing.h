// TrainingStep: a random step of training as a planned program, for tests that run it within many budgets.
//
//   TrainingStep step(7);                                    // the seed says which operations it consists of
//   const Outcome natural = step.run();                      // two steps from the initial state, without a budget
//   const Outcome lean = step.run({.budget = &budget});      // the same within one, recomputing
//   lean.bytes == natural.bytes;                             // results, variables, the next random numbers
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {

using Bytes = std::vector<std::vector<std::byte>>;

struct Outcome {
  Bytes bytes;            // Of results, variables and what the next draw gives.
  double recomputed = 0;  // Of the last step.
  std::size_t spilled_bytes = 0;
};

class TrainingStep {
 public:
  struct Options {
    int layers = 0;  // 0: by the seed.
    bool inside = true;
    bool assigns = true;  // Variables change in between, beside those that the optimizer changes at the end.
    Passes passes = {};
    bool recurrent = false;               // Every third layer is an LSTM, GRU or simple one, in sequences of 16 rows.
    std::int64_t rows = 128, width = 16;  // An activation takes 8 KiB, a weight 1.
    double spill_bytes_per_cost = Program::kSpillBytesPerCost;
  };
  explicit TrainingStep(unsigned seed) : TrainingStep(seed, {}) {}
  TrainingStep(unsigned seed, const Options& options)
      : random_(seed), assigns_(options.assigns), num_rows_(options.rows), width_(options.width) {
    for (int i = 0; i < 3; ++i) {
      weights_.emplace_back(random_normal({width_, width_}, {.seed = seed + 10u + static_cast<unsigned>(i)}) * 0.3f);
      biases_.emplace_back(random_normal({width_}, {.seed = seed + 20u + static_cast<unsigned>(i)}));
      means_.emplace_back(zeros({width_}), VariableOptions{.trainable = false});
      variances_.emplace_back(ones({width_}), VariableOptions{.trainable = false});
    }
    if (options.recurrent) add_cell();
    const int layers = options.layers > 0 ? options.layers : 4 + static_cast<int>(random_() % 9);
    const auto graph = GraphState::make(GraphState::Role::kTrace);
    std::vector<ValueId> feeds, fetches;
    {
      const TraceWith tracing(graph.get());
      const Tensor x = graph->add_placeholder({Shape({num_rows_, width_}), f32}, device_of(x_), "x");
      const Tensor rows = graph->add_placeholder({Shape({num_rows_}), i64}, device_of(x_), "rows");
      for (const Tensor* feed : {&x, &rows}) feeds.push_back(graph->resolve(*feed, "step", "a feed"));
      for (const Tensor& fetch : trace(x, rows, layers)) fetches.push_back(graph->resolve(fetch, "step", "a fetch"));
    }
    std::vector<Feed> fed;
    for (const ValueId& feed : feeds) fed.push_back({feed, graph->output(feed).spec});
    program_ = std::make_unique<Program>(rewrite(*graph, fed, fetches, true, options.passes), options.passes,
                                         options.inside, options.spill_bytes_per_cost);
    inside_ = options.inside;
    for (const Program::VariableUse& use : program_->variables()) {
      variables_.push_back(*program_->graph().variables()[use.number].eager);
      initial_.push_back(variables_.back().value().clone());
    }
  }

  struct RunOptions {
    const Budget* budget = nullptr;
    bool bad_rows = false;  // An index that does not exist.
    double max_slowdown = Program::kMostSlowdown;
    bool may_recompute = true;
    int steps = 2;
    SpillFile* spill = nullptr;
    bool parks_variables = false;
    bool keeps = true;  // What it gives is copied: after the step, which a full heap then cannot undo.
  };
  Outcome run() { return run(RunOptions()); }
  Outcome run(const RunOptions& options) {
    restore();
    config::set_seed(5);
    Outcome outcome;
    for (int step = 0; step < options.steps; ++step) run_once(options, outcome);
    add_state(outcome);
    outcome.bytes.push_back(bytes_of(random_uniform({8})));
    return outcome;
  }
  void run_once(const RunOptions& options, Outcome& outcome) {
    const Tensor* const feeds[] = {&x_, options.bad_rows ? &bad_rows_ : &rows_};
    const auto keep = [&](std::span<const ConstTensorView> fetched) {
      if (!options.keeps) return;
      for (const ConstTensorView& view : fetched) outcome.bytes.push_back(copied(view));
    };
    const ReadInside reader(keep);
    std::vector<Tensor> results(inside_ ? 0 : program_->num_fetches());
    program_->run({.feeds = feeds,
                   .variables = variables_,
                   .results = results,
                   .read = inside_ ? &reader : nullptr,
                   .own = options.budget,
                   .may_recompute = options.may_recompute,
                   .max_slowdown = options.max_slowdown,
                   .recomputed_cost_fraction = &outcome.recomputed,
                   .spill = options.spill,
                   .parks_variables = options.parks_variables,
                   .spilled_bytes = &outcome.spilled_bytes});
    for (const Tensor& result : results) outcome.bytes.push_back(bytes_of(result));
  }

  void restore() {
    for (std::size_t i = 0; i < variables_.size(); ++i) variables_[i].assign(initial_[i]);
    for (const Variable& variable : variables_) variable.writable_value();  // Bytes of its own.
  }
  Bytes state() const {
    Outcome outcome;
    add_state(outcome);
    return outcome.bytes;
  }
  Program& program() { return *program_; }
  const std::vector<Variable>& variables() const { return variables_; }

  static std::vector<std::byte> bytes_of(const Tensor& tensor) { return copied(tensor.view()); }

 private:
  static std::vector<std::byte> copied(const ConstTensorView& view) {
    std::vector<std::byte> bytes(view.nbytes());
    if (!bytes.empty()) Runtime::instance().device("").backend().copy_out(bytes.data(), view.bytes(), bytes.size());
    return bytes;
  }
  void add_state(Outcome& outcome) const {
    for (const Variable& variable : variables_) outcome.bytes.push_back(bytes_of(variable.value()));
  }

  std::vector<Tensor> trace(const Tensor& x, const Tensor& rows, int layers) {
    std::vector<Variable> parameters = weights_;
    parameters.insert(parameters.end(), biases_.begin(), biases_.end());
    parameters.insert(parameters.end(), cell_.begin(), cell_.end());
    std::vector<Tensor> values = {x}, gradients;
    Tensor loss;
    {
      GradientTape tape;
      for (int i = 0; i < layers; ++i)
        values.push_back(i % 3 == 0 && !cell_.empty() ? recurrent_layer(values.back()) : layer(values, rows));
      loss = square(matmul(values.back(), Tensor(weights_[0])) + Tensor(biases_[0])).mean();
      gradients = tape.gradient(loss, parameters);
    }
    std::vector<Tensor> fetches = {loss, values[values.size() / 2]};
    std::vector<Variable> changed;
    std::vector<Tensor> by;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (gradients[i].is_empty_handle()) continue;
      changed.push_back(parameters[i]);
      by.push_back(gradients[i]);
    }
    if (random_() % 2 == 0) fetches.push_back(by[0]);
    sgd_.apply(changed, by);
    if (assigns_ && random_() % 2 == 0) counter_.assign_add(values[1].mean());  // After all that read it.
    return fetches;
  }

  void add_cell() {
    gates_ = std::array<std::int64_t, 3>{1, 4, 3}[random_() % 3];
    for (std::uint64_t i = 0; i < 2; ++i)
      cell_.emplace_back(random_normal({width_, gates_ * width_}, {.seed = random_()}) * 0.2f);
    const Shape bias = gates_ == 3 ? Shape({2, 3 * width_}) : Shape({gates_ * width_});
    cell_.emplace_back(random_normal(bias, {.seed = random_()}));
  }
  Tensor recurrent_layer(const Tensor& h) {
    const Tensor x = h.reshape({num_rows_ / 16, 16, width_}), w(cell_[0]), u(cell_[1]), b(cell_[2]);
    SequenceOptions options{.return_sequences = true, .go_backwards = random_() % 2 == 0};
    if (random_() % 3 == 0) options.mask = mask_;
    const auto run = gates_ == 1 ? simple_rnn : gates_ == 4 ? lstm : gru;
    return run(x, w, u, b, options).output.reshape({num_rows_, width_});
  }

  Tensor layer(const std::vector<Tensor>& values, const Tensor& rows) {
    const Tensor& h = values.back();
    const Tensor& other = values[random_() % values.size()];
    const std::size_t which = random_() % 3;
    const Tensor w(weights_[which]), b(biases_[which]);
    switch (random_() % 13) {
      case 0:
      case 1:
        return tanh(matmul(h, w) + b);
      case 2:
        return relu(matmul(h, w) + b);
      case 3:
        return tanh(matmul(h, w, {.transpose_b = true}));  // Weights are tied.
      case 4:
        return dropout(h, 0.3, {.seed = random_()});
      case 5:
        return dropout(h, 0.4);
      case 6:
        if (!assigns_) return batch_norm_training(h, b, b).y;
        return batch_norm(h, b, b, means_[which], variances_[which], {.training = true, .momentum = 0.9});
      case 7:
        return h + other;
      case 8:
        return gather(h, rows) * 0.5f;
      case 9:
        return softmax(h) + h;
      case 10:
        return sigmoid(h) * tanh(other);
      case 11: {  // Reads a variable before and after it changes.
        if (!assigns_) return h * 0.9f;
        const Tensor before(counter_);
        counter_.assign_add(h.mean());
        return h + before * Tensor(counter_);
      }
      default:
        return tanh(h) - exp(other * -0.1f);
    }
  }

  std::mt19937 random_;
  const bool assigns_;
  const std::int64_t num_rows_, width_;
  std::vector<Variable> weights_, biases_, means_, variances_;
  std::vector<Variable> cell_;  // Kernel, recurrent kernel and bias of recurrent layers.
  std::int64_t gates_ = 0;
  const Variable counter_{zeros({}), {.trainable = false}};
  const Optimizer sgd_{SGDOptions{.learning_rate = 0.05, .momentum = 0.9}};
  const Tensor x_ = random_normal({num_rows_, width_}, {.seed = 3});
  const Tensor rows_ = (random_uniform({num_rows_}, {.seed = 4}) * static_cast<float>(num_rows_ - 1)).cast(i64);
  const Tensor mask_ = random_uniform({num_rows_ / 16, 16}, {.seed = 6}) > 0.3f;
  const Tensor bad_rows_ = rows_ + full({num_rows_}, 1000, i64);
  std::unique_ptr<Program> program_;
  std::vector<Variable> variables_;
  std::vector<Tensor> initial_;
  bool inside_ = true;
};

}  // namespace plimsoll
