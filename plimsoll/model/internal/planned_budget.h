// PlannedBudget: what a fit may take, checked against plans before steps run, and what it took.
//
//   PlannedBudget memory(network, options.budget);
//   { const BudgetScope charged(memory.loading()); stream->next(batch); }
//   memory.admit(StepKind::kTrain, batch);                 // Throws OutOfMemory when the step's plan is larger.
//   { const BudgetScope charged(memory.running()); train_step(network, batch); }
//   memory.peak_bytes();                                   // Real, counted as a forecast counts
//
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/memory/budget.h"
#include "plimsoll/model/internal/planned_step.h"

namespace plimsoll {

class PlannedBudget {
 public:
  PlannedBudget(Network& network, std::optional<std::size_t> budget);

  const Budget& loading() const noexcept { return hard_ ? *hard_ : measured_; }  // For batches.
  const Budget& running() const noexcept { return loading(); }                   // For steps.
  // Before a step, when its batch has been loaded.
  void admit(StepKind kind, const Example& batch);
  std::size_t peak_bytes() const { return held_ + shared_batch_ + measured_.peak(); }
  std::size_t used_bytes() const { return held_ + shared_batch_ + measured_.used(); }
  const std::optional<std::size_t>& limit() const noexcept { return budget_; }

 private:
  void begin(const BatchSpec& batch);

  Network& network_;
  const std::optional<std::size_t> budget_;
  std::size_t held_ = 0;          // Weights and optimizer state that were there before.
  std::size_t shared_batch_ = 0;  // Bytes of a batch that are somebody else's, but count.
  std::size_t optimizer_bytes_ = 0;
  Budget measured_;             // All that is charged.
  std::optional<Budget> hard_;  // Inside of it, what may be.
  bool begun_ = false;
  std::vector<std::shared_ptr<PlannedStep>> admitted_;
};

}  // namespace plimsoll
