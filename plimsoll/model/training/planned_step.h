// PlannedStep: a step of training or testing, or a prediction, as one planned program for batches of one kind.
//
//   PlannedStep step(network, StepKind::kTrain, BatchSpec::of(example));
//   StepResult result = step.run(feeds);             // Forward, loss, gradients, update: the bits of a direct step.
//   step.program().memory_plan().peak_bytes;         // What it takes, known before.
//
// PlannedSteps keeps those of a network within a bound in bytes. Layers, losses and metrics are called once, with
// symbolic tensors; what cannot be written down so (a layer that looks at elements) is run directly instead, which is
// said once in the log. Thread safety: any thread may run one; training itself is one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "plimsoll/graph/call_signature.h"
#include "plimsoll/graph/plan_cache.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/layers/regularizer.h"
#include "plimsoll/model/training/step_result.h"

namespace plimsoll {

class Network;
class LayerBase;
class Optimizer;

enum class StepKind : std::uint8_t { kTrain, kTest, kPredict };

// What a batch is, without its elements.
struct BatchSpec {
  std::vector<TensorSpec> inputs, targets;
  std::optional<TensorSpec> weights;
  Device* device = nullptr;
  std::vector<Device*> devices;  // Of each tensor in that order, where they are on several; else `device`.

  static BatchSpec of(const Example& example);
  std::size_t block_bytes() const;                // Of tensors that are these.
  std::vector<std::size_t> tensor_bytes() const;  // Of each one, without what blocks add.
};

class PlannedStep {
 public:
  // `optimizer`: another than the network's, for those who only want to know. Throws what layers, losses and metrics
  // throw when they are called.
  PlannedStep(Network& network, StepKind kind, const BatchSpec& batch, const Optimizer* optimizer = nullptr);

  // Feeds: inputs, targets and weights, as far as there are. Throws OutOfMemory, InvalidArgument; nothing has changed.
  StepResult run(std::span<const Tensor* const> feeds);
  std::vector<Tensor> predict(std::span<const Tensor* const> feeds);
  bool has_run() const noexcept { return has_run_; }

  const Program& program() const noexcept { return *program_; }
  const std::vector<Variable>& variables() const noexcept { return variables_; }

 private:
  struct Measured {  // A metric, and where its parts begin among the fetches.
    Metric metric;
    std::size_t first, count;
    double examples;
  };
  struct Traced;
  void trace_training(Network& network, const Optimizer& optimizer, Traced& traced);
  void fetch_measures(Network& network, Traced& traced);
  StepResult blank_result() const;
  void measure(std::span<const ConstTensorView> fetched, StepResult& result) const noexcept;

  std::unique_ptr<Program> program_;
  std::vector<Variable> variables_;  // Of program_.
  std::vector<std::pair<Variable, Constraint>> constrained_;
  std::vector<std::vector<Measured>> metrics_;  // Of each output.
  std::size_t num_losses_ = 0;
  std::size_t examples_ = 0;
  std::atomic<bool> has_run_{false};
};

class PlannedSteps {
 public:
  PlannedSteps();
  ~PlannedSteps();

  // The plan for such a batch, made if need be; nullptr when it is to be run directly. `signature` has the kind and all
  // tensors of the example, in order.
  std::shared_ptr<PlannedStep> find(Network& network, StepKind kind, const Example& example,
                                    const CallSignature& signature);
  void clear();
  std::size_t size() const { return steps_.size(); }
  std::size_t bytes() const { return steps_.bytes(); }

 private:
  struct Entry;
  std::shared_ptr<Entry> make(Network& network, StepKind kind, const Example& example);
  void forget_when_changed(Network& network);

  std::mutex mutex_;
  std::vector<LayerBase*> layers_;  // All, inner ones included. Guarded by mutex_, as what follows.
  std::uint64_t seen_changes_ = 0;
  bool told_ = false;
  PlanCache<Entry> steps_;
};

}  // namespace plimsoll
