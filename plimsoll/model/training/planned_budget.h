// PlannedBudget: what a fit may take, checked against plans before steps run, and what it took.
//
//   PlannedBudget memory(network, "fit", options.budget);
//   { const BudgetScope charged(memory.loading()); stream->next(batch); }
//   memory.admit({memory.need_of(StepKind::kTrain, batch, *data.node())});   // OutOfMemory when it needs more.
//   { const BudgetScope charged(memory.running()); train_step(network, batch); }
//   memory.peak_bytes();                                                   // Real, counted as a forecast counts
//
// Counted: weights, optimizer state, the step's plan, the batch (whether or not it shares bytes with what it was cut
// from), and what the pass over the dataset holds beside it. The budgets around are asked too, before the first step. A
// refusal names the smallest limit that serves everything that was asked for. Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/training/forecast.h"
#include "plimsoll/model/training/planned_step.h"

namespace plimsoll {

struct Chunk;
class BudgetNode;

class PlannedBudget {
 public:
  PlannedBudget(Network& network, const char* where, std::optional<std::size_t> budget);

  // A step with such a batch, and a pass that gives it.
  struct Need {
    StepKind kind = StepKind::kTrain;
    std::shared_ptr<PlannedStep> step;  // nullptr: it is run directly, or was admitted before.
    BatchSpec batch;
    MemoryForecast needed;
    std::size_t loading = 0;  // Of it, what is needed while batches are loaded.
    std::size_t shared = 0;   // Bytes of the batch that nobody is charged for.
    bool is_admitted = false;
  };
  using Needs = std::vector<Need>;  // Of training first.

  const Budget& loading() const noexcept { return *data_; }  // For passes and batches.
  const Budget& running() const noexcept { return steps_ ? *steps_ : *data_; }
  // When its batch has been loaded. Quick where nothing is limited.
  Need need_of(StepKind kind, const Example& batch, const DatasetNode& data);
  Need measure(StepKind kind, const Example& batch, const DatasetNode& data);  // The same, limited or not.
  void admit(Needs needs);  // Throws OutOfMemory when a limit is smaller.
  // Throws what admit() would, for needs that were measured without limits; returns when no limit is too small.
  void refuse_too_small(Needs needs) const;
  // What the pass holds beside the batch; gives what is needed while it loads one.
  std::size_t add_data(MemoryForecast& needed, const Example& batch, const DatasetNode& data) const;

  std::size_t peak_bytes() const { return std::max(peak_before_, held_ + shared_batch_ + measured_.peak()); }
  std::size_t used_bytes() const { return held_ + shared_batch_ + measured_.used(); }
  const std::optional<std::size_t>& limit() const noexcept { return budget_; }
  bool is_limited() const noexcept { return budget_ || !around_.empty(); }
  bool has_refused() const noexcept { return refused_; }  // With the limit that would do.

 private:
  struct Around {  // A budget that ours is inside of.
    std::shared_ptr<BudgetNode> node;
    std::size_t used;  // When we began.
  };
  void begin();
  void settle(Needs& needs) const;
  const Need* find_refused(const Needs& needs, const Around*& by, std::size_t& limit) const;
  [[noreturn]] void refuse(const Need& need, const Around* by, std::size_t limit) const;
  void share(std::size_t bytes);
  std::size_t charged_bytes(const Example& batch) const;            // Of its tensors, to loading().
  std::size_t shared_bytes(const Example& batch) const;             // Of those that are somebody else's, but count.
  const Chunk* charged_chunk(const Tensor& tensor) const noexcept;  // Charged to loading(); nullptr when it is not.

  Network& network_;
  const char* const where_;
  const std::optional<std::size_t> budget_;
  std::vector<Around> around_;  // Innermost first.
  std::size_t held_at_first_ = 0;
  std::size_t held_ = 0;  // Weights and optimizer state that were there before.
  std::size_t shared_batch_ = 0, peak_before_ = 0;
  Budget measured_;              // All that is charged.
  std::optional<Budget> hard_;   // Inside of it, what may be.
  std::optional<Budget> data_;   // Inside of that, what passes and batches take,
  std::optional<Budget> steps_;  // and what steps take.
  bool begun_ = false, refused_ = false;
  std::vector<std::shared_ptr<PlannedStep>> admitted_;
};

}  // namespace plimsoll
