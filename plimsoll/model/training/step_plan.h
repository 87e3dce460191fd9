// StepPlan: a step of training or testing, or a prediction, ready to run for batches of one kind.
//
//   std::shared_ptr<StepPlan> plan = network.training.plans.get(StepKind::kTrain, batch, "fit");
//   plan->program().memory_plan().peak_bytes;      // Its memory, known before it runs.
//   StepResult result = plan->run(batch);          // Forward, loss, gradients, update: the same bits as a direct step.
//
// Layers, losses and metrics are called once, with symbolic tensors, and become one planned program. Where that is not
// possible (a layer that reads elements, run_eagerly) the plan runs the step op by op and has no program; this is
// logged once. A step that throws leaves weights, optimizer state, statistics, states of recurrent layers, random draws
// and metrics unchanged, and no tensor behind.
// Thread safety: any thread may get and run one; training itself is one step at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/plan_cache.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/model/layers/regularizer.h"
#include "plimsoll/model/training/batch.h"
#include "plimsoll/model/training/forecast.h"
#include "plimsoll/model/training/step.h"

namespace plimsoll {
class LayerBase;
class Optimizer;
}  // namespace plimsoll

namespace plimsoll::internal {

class Network;

class StepPlan {
 public:
  // `optimizer`: used instead of the network's, by forecasts. Throws what layers, losses and metrics throw when they
  // are called.
  StepPlan(Network& network, StepKind kind, const BatchSpec& batch, const Optimizer* optimizer = nullptr);
  StepPlan(Network& network, StepKind kind) noexcept;  // Runs op by op.
  ~StepPlan();

  // Requires a batch for which get() returns this plan. Throws OutOfMemory, InvalidArgument; then nothing has changed.
  StepResult run(const Example& batch, const Recomputing& recomputing = {});  // For training and testing.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs, const Recomputing& recomputing = {});
  // For kGradients: what a slice of a batch adds to the values of changed(), in `out`: gradients times `scale` (an f32
  // scalar), and new statistics times it. Each has its own bytes. While a plan runs, `watch(values, ended)` is called
  // after each of its operations: `ended` are those of `values` (the values of changed()) that are complete and not
  // read any more.
  using Watch = FunctionRef<void(std::span<const Tensor> values, std::span<const std::size_t> ended)>;
  StepResult gradients(const Example& slice, const Tensor& scale, std::vector<Tensor>& out,
                       const Recomputing& recomputing = {}, const Watch* watch = nullptr,
                       const BorrowedVariables* borrowed = nullptr);
  // Parameters that have a gradient, then variables that layers assign to; and the number of the former.
  const std::vector<Variable>& changed() const noexcept { return changed_; }
  std::size_t num_parameters() const noexcept { return num_parameters_; }
  const std::vector<std::pair<Variable, Constraint>>& constrained() const noexcept { return constrained_; }
  bool has_run() const noexcept { return has_run_; }

  StepKind kind() const noexcept { return kind_; }
  bool has_program() const noexcept { return program_ != nullptr; }
  const Program& program() const noexcept { return *program_; }
  const std::vector<Variable>& variables() const noexcept { return variables_; }
  // They require a program. The memory of the step with its model and such a batch; without recomputing, until
  // add_front() adds the rest, which takes longer to compute.
  MemoryForecast forecast(const BatchSpec& batch) const;
  void add_front(MemoryForecast& forecast, Eviction eviction) const;
  // The most that a run can save when it may recompute, or also spill.
  std::size_t most_saved_bytes(double max_slowdown, Eviction eviction) const;
  // What it may do with a directory to spill to. Constraints work on weights in memory, after the program.
  Eviction spilling() const noexcept { return constrained_.empty() ? Eviction::kSpillVariables : Eviction::kSpill; }
  // The memory that parked variables would take: all of them, and those that are not weights.
  struct ParkedSizes {
    std::size_t all = 0, state = 0;
  };
  ParkedSizes parked_bytes() const;

 private:
  struct Measured {  // A metric, and where its parts begin among the fetches.
    Metric metric;
    std::size_t first, count;
    double examples;
  };
  struct Traced;
  void trace_training(const Optimizer& optimizer, Traced& traced);
  void trace_gradients(Traced& traced);
  std::vector<Tensor> find_changed(const std::vector<Variable>& parameters, const std::vector<Tensor>& gradients,
                                   const CallContext& context, const Tensor& scale);
  void fetch_measures(Traced& traced);
  StepResult blank_result() const;
  void measure(std::span<const ConstTensorView> fetched, StepResult& result) const noexcept;
  template <class F>
  auto run_whole(F&& f);
  StepResult run_program(const Example& batch, const Recomputing& recomputing);
  StepResult train_directly(const Example& batch);
  StepResult gradients_directly(const Example& slice, const Tensor& scale, std::vector<Tensor>& out);
  StepResult test_directly(const Example& batch);

  Network& network_;
  const StepKind kind_;
  std::unique_ptr<Program> program_;
  std::vector<Variable> variables_;  // Of program_.
  std::vector<std::pair<Variable, Constraint>> constrained_;
  std::vector<std::vector<Measured>> metrics_;  // Of each output.
  std::vector<Variable> changed_;               // Of kGradients.
  std::size_t num_parameters_ = 0;
  std::size_t num_losses_ = 0;
  std::size_t examples_ = 0;
  std::atomic<bool> has_run_{false};
  std::atomic<double> counted_at_{0};  // The fraction of recomputing when the cache last counted its bytes.
};

// The plans of a network, within a bound in bytes.
class StepPlans {
 public:
  explicit StepPlans(Network& network);
  ~StepPlans();

  // The plan for such a batch, made if necessary; never nullptr. Throws what require_batch() throws, and OutOfMemory.
  std::shared_ptr<StepPlan> get(StepKind kind, const Example& batch, const char* where);
  void clear();
  void recount(const StepPlan& plan);  // Its bytes, after it has made a recomputing plan.
  std::size_t size() const { return plans_.size(); }
  std::size_t bytes() const { return plans_.bytes(); }

 private:
  std::shared_ptr<StepPlan> make(StepKind kind, const Example& batch, bool& keep);
  void clear_when_changed();

  Network& network_;
  std::mutex mutex_;
  std::vector<LayerBase*> layers_;  // All, including inner ones. Guarded by mutex_, like the following.
  std::uint64_t seen_changes_ = 0;
  bool has_logged_ = false;
  PlanCache<StepPlan> plans_;
};

// Casts the inputs if necessary, gets the plan and runs it.
StepResult run_step(Network& network, StepKind kind, const Example& batch, const char* where);

}  // namespace plimsoll::internal
