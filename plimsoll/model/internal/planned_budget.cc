#include "plimsoll/model/internal/planned_budget.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/internal/planned_memory.h"
#include "plimsoll/model/internal/train_step.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostAdmitted = 64;

Budget measuring() {
  const std::size_t limit = current_device().arena().limit();
  const std::optional<Budget> outer = Budget::current();
  return outer ? Budget("fit", limit, *outer) : Budget("fit", limit);
}

}  // namespace

PlannedBudget::PlannedBudget(Network& network, std::optional<std::size_t> budget)
    : network_(network), budget_(budget), measured_(measuring()) {}

// After the first batch was loaded: what of it is not charged is a view of somebody else's bytes.
void PlannedBudget::begin(const BatchSpec& batch) {
  begun_ = true;
  held_ = parameter_bytes(network_) + network_.training.optimizer->state_bytes();
  shared_batch_ = batch.block_bytes() - std::min(batch.block_bytes(), measured_.used());
  if (!budget_) return;
  const std::size_t taken = held_ + shared_batch_;
  if (*budget_ > taken) hard_.emplace("fit within its budget", *budget_ - taken, measured_);
}

void PlannedBudget::admit(StepKind kind, const Example& example) {
  if (!begun_) {
    prepare(network_, example.inputs, "fit");  // Then there are weights.
    begin(BatchSpec::of(example));
  }
  if (!budget_) return;
  const std::shared_ptr<PlannedStep> step = plan_step(network_, kind, example);
  if (step && std::find(admitted_.begin(), admitted_.end(), step) != admitted_.end()) return;
  const BatchSpec batch = BatchSpec::of(example);
  MemoryForecast needed;
  if (step) {
    needed = forecast_of(network_, *step, batch);
  } else {  // Run directly, its need is not known; the limit holds all the same.
    needed.by_category["parameters"] = held_;
    needed.smallest_budget = held_ + batch.block_bytes();
  }
  optimizer_bytes_ = std::max(optimizer_bytes_, needed.by_category["optimizer"]);
  if (kind != StepKind::kTrain) {  // The optimizer's state is there meanwhile.
    needed.smallest_budget += optimizer_bytes_ - needed.by_category["optimizer"];
    needed.by_category["optimizer"] = optimizer_bytes_;
  }
  if (!needed.fits(*budget_) || !hard_) {
    if (step && !step->has_run()) network_.training.planned.clear();
    refuse_budget(network_, needed, *budget_, batch);
  }
  if (admitted_.size() >= kMostAdmitted) admitted_.clear();
  if (step) admitted_.push_back(step);
}

}  // namespace plimsoll
