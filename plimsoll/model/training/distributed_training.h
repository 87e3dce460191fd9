// DistributedTraining: the steps of a fit, taken together by the processes of a job.
//
//   DistributedTraining together(network, options.distributed, memory);
//   const Dataset data = together.agreed(given);                 // Shuffles without a seed are the same everywhere.
//   while (together.load([&] { return pass.next(batch); }, batch))
//     means.add(together.step(batch, *data.node()));             // All processes take it, or none does.
//
// A batch is cut into slices, and each process computes its own; the results (gradients, new statistics of
// normalizations) are added in the order of a SliceTree, and the sum changes the weights once. The bits depend on the
// slices, not on the number of processes. From the second step on, sums travel while the backward pass of the last
// slice computes the rest. A failure in one process before weights change is thrown in all, and nothing has changed;
// Unavailable may come later, when weights may have changed in some of them: the job is then over.
// With shard_parameters, weights are spread over the processes from the first step of an epoch to gather_parameters().
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/distributed/job.h"
#include "plimsoll/distributed/slice_tree.h"
#include "plimsoll/distributed/tensor_exchange.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/training/batch_slices.h"
#include "plimsoll/model/training/distributed_layout.h"
#include "plimsoll/model/training/spread_parameters.h"
#include "plimsoll/model/training/step.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll {
class LayerBase;
}  // namespace plimsoll

namespace plimsoll::internal {

class Network;
class StepBudget;

class DistributedTraining {
 public:
  // Borrows all of them. Requires options.job.
  DistributedTraining(Network& network, const distributed::TrainingOptions& options, StepBudget& memory);
  ~DistributedTraining();
  DistributedTraining(const DistributedTraining&) = delete;
  DistributedTraining& operator=(const DistributedTraining&) = delete;

  // With `parts`: only this process's rows of each batch, where possible.
  Dataset agreed(const Dataset& data, bool parts);
  // Whether `next` returned a batch, here and elsewhere. Throws InvalidArgument when processes disagree.
  bool load(FunctionRef<bool()> next, const Example& batch);
  StepResult step(const Example& batch, const DatasetNode& data);
  // Results of batches that the processes took in turn, for all, in order: this one's are numbers rank, rank + size, ..
  // `error`: what ended it.
  std::vector<StepResult> share_results(const std::vector<StepResult>& own, std::size_t batches,
                                        std::exception_ptr error);
  // At the end of an epoch, and of the fit: errors here since then are thrown everywhere.
  void agree_to_go_on();
  // Parameters that are spread over the processes are whole until the next step. Throws OutOfMemory in all ranks.
  void gather_parameters();
  // Reports an error that the others do not know about, and makes parameters whole.
  void tell(std::exception_ptr error) noexcept;

  bool is_first() const noexcept { return job_.rank() == 0; }
  bool has_to_stop() const noexcept { return stop_; }              // One process was asked to stop.
  std::size_t bytes_used() const noexcept { return bytes_used_; }  // By all processes, at the last step.

 private:
  using Values = std::vector<Tensor>;  // Of all that changes.

  void begin(const Example& batch);
  void broadcast_weights();
  void compute(const Example& batch, const DatasetNode& data, const distributed::SliceTree& tree);
  void compute_slice(const Example& batch, const RowRange& rows, const DatasetNode& data, std::vector<Tensor>& out,
                     const StepPlan::Watch* watch = nullptr);
  void send_early(std::span<const Tensor> values, std::span<const std::size_t> ended);
  void begin_exchange(const distributed::SliceTree& tree);
  void set_layout(const StepPlan& plan);
  void admit(const std::shared_ptr<StepPlan>& plan, const Example& batch, const DatasetNode& data);
  void spread_parameters(const Example& batch, const DatasetNode& data, const distributed::SliceTree& tree);
  void obtain(const distributed::SliceTree& tree);
  void update(const distributed::SliceTree& tree);
  void change_variables(const distributed::PartAddresses& sum);
  StepResult combine(std::size_t examples, const distributed::SliceTree& tree);
  void agree(std::exception_ptr error, std::uint64_t signature, const char* what);
  StepResult blank_result() const;
  distributed::PartAddresses variable_addresses() const;
  std::size_t first_whole() const { return shards_parameters_ ? layout_->num_parameters() : 0; }  // Of changed().
  void set_draws(std::uint64_t number);

  Network& network_;
  distributed::Job& job_;
  const std::size_t slices_;
  const bool shards_, shards_parameters_;
  StepBudget& memory_;

  bool begun_ = false, told_ = false, stop_ = false;
  std::size_t bytes_used_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<std::pair<LayerBase*, std::uint64_t>> draws_;  // Of each layer, when the fit began.

  std::unique_ptr<DistributedLayout> layout_;  // Known after the first plan.
  std::vector<std::pair<Variable, Constraint>> constrained_;
  std::unique_ptr<SpreadParameters> spread_;  // With shards_parameters_, from the first step on.
  Tensor buckets_;
  Tensor scale_;
  double scale_value_ = 0;

  // Of the step under way.
  std::optional<distributed::TensorExchange> exchange_;
  std::size_t num_pieces_ = 0;               // That this rank's slices add up to.
  std::vector<bool> may_hurry_, is_merged_;  // By part: has bytes of its own in the plan; is added to the sums.
  std::unique_ptr<distributed::SliceSums<Values>> sums_;
  Values blank_;  // For the sum, in a process without slices.
  std::vector<StepResult> results_;
};

}  // namespace plimsoll::internal
