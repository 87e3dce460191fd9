#include "plimsoll/model/internal/planned_budget.h"

#include <algorithm>

#include "plimsoll/device/device.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/internal/planned_memory.h"
#include "plimsoll/model/internal/recurrent_states.h"
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

std::size_t left_of(std::size_t budget, std::size_t taken) { return budget > taken ? budget - taken : 0; }

}  // namespace

PlannedBudget::PlannedBudget(Network& network, std::optional<std::size_t> budget)
    : network_(network), budget_(budget), measured_(measuring()) {
  if (network_.is_built()) held_ = parameter_bytes(network_) + network_.training.optimizer->state_bytes();
  // Weights that take all of it are refused with the first step, when what that needs is known.
  if (budget_) hard_.emplace("fit within its budget", std::max<std::size_t>(left_of(*budget_, held_), 1), measured_);
  const Budget& above = hard_ ? *hard_ : measured_;
  data_.emplace("batches", above.limit(), above);
}

const Chunk* PlannedBudget::charged_chunk(const Tensor& tensor) const noexcept {
  if (tensor.is_empty_handle() || tensor.is_disposed()) return nullptr;
  const Storage* const storage = tensor.record()->storage;
  const Chunk* const chunk = storage->chunk();
  return chunk && chunk->budget == data_->node().get() ? chunk : nullptr;
}

std::size_t PlannedBudget::charged_bytes(const Example& batch) const {
  std::vector<const Chunk*> counted;
  std::size_t bytes = 0;
  visit_tensors(batch, [&](const Tensor& tensor) {
    const Chunk* const chunk = charged_chunk(tensor);
    if (!chunk || std::find(counted.begin(), counted.end(), chunk) != counted.end()) return;
    counted.push_back(chunk);
    bytes += chunk->size;
  });
  return bytes;
}

std::size_t PlannedBudget::shared_bytes(const Example& batch) const {
  std::size_t bytes = 0;
  visit_tensors(batch, [&](const Tensor& tensor) {
    if (!tensor.is_empty_handle() && !tensor.is_disposed() && !charged_chunk(tensor))
      bytes += block_bytes(tensor.nbytes());
  });
  return bytes;
}

// From here on the batch has so many bytes that nobody is charged for.
void PlannedBudget::share(std::size_t bytes) {
  if (bytes == shared_batch_) return;
  peak_before_ = peak_bytes();
  shared_batch_ = bytes;
  measured_.reset_peak();
}

// There are weights now.
void PlannedBudget::begin() {
  begun_ = true;
  held_ = parameter_bytes(network_) + network_.training.optimizer->state_bytes();
}

PlannedBudget::Need PlannedBudget::need_of(StepKind kind, const Example& example, const DatasetNode& data) {
  if (!begun_) {
    prepare(network_, example.inputs, "fit");
    begin();
  }
  share(shared_bytes(example));
  Need need;
  need.kind = kind;
  if (!budget_) {
    need.is_admitted = true;
    return need;
  }
  need.step = plan_step(network_, kind, example);
  need.is_admitted = need.step && std::find(admitted_.begin(), admitted_.end(), need.step) != admitted_.end();
  if (need.is_admitted) return need;
  need.batch = BatchSpec::of(example);
  if (need.step) {
    need.needed = forecast_of(network_, *need.step, need.batch);
  } else {  // Run directly, its need is not known; the limit holds all the same.
    need.needed.by_category["parameters"] = held_;
    need.needed.smallest_budget = held_ + need.batch.block_bytes();
  }
  add_data(need.needed, example, data);
  return need;
}

void PlannedBudget::add_data(MemoryForecast& needed, const Example& batch, const DatasetNode& data) const {
  const std::size_t measured = data_->used() - std::min(data_->used(), charged_bytes(batch));
  add_held_bytes(needed, std::max(measured, data.held(BatchSpec::of(batch).tensor_bytes()).resident));
  const std::size_t loading = needed.by_category["parameters"] + needed.by_category["optimizer"] + data_->peak();
  needed.smallest_budget = std::max(needed.smallest_budget, loading);
}

void PlannedBudget::admit(Need need) {
  if (need.is_admitted) return;
  MemoryForecast& needed = need.needed;
  optimizer_bytes_ = std::max(optimizer_bytes_, needed.by_category["optimizer"]);
  if (need.kind != StepKind::kTrain) {  // The optimizer's state is there meanwhile.
    needed.smallest_budget += optimizer_bytes_ - needed.by_category["optimizer"];
    needed.by_category["optimizer"] = optimizer_bytes_;
  }
  const std::size_t beside = held_ + needed.by_category["inputs"];
  if (!needed.fits(*budget_) || *budget_ <= beside) {
    if (need.step && !need.step->has_run()) {
      network_.training.planned.clear();
      forget_new_states(network_);
    }
    refuse_budget(network_, needed, *budget_, need.batch);
  }
  if (!steps_) steps_.emplace("steps", *budget_ - beside, *hard_);
  if (admitted_.size() >= kMostAdmitted) admitted_.clear();
  if (need.step) admitted_.push_back(std::move(need.step));
}

void PlannedBudget::explain(const DatasetNode& data) const {
  const std::optional<std::size_t> size = data.batch_size();
  if (!size || !budget_ || !network_.is_connected()) return;
  try {
    const BatchSpec batch = assumed_batch(network_, *size);
    MemoryForecast needed = forecast_training(network_, batch);
    add_held_bytes(needed, data.held(batch.tensor_bytes()).resident);
    if (!needed.fits(*budget_)) refuse_budget(network_, needed, *budget_, batch);
  } catch (const FailedPrecondition&) {  // Sizes are not known, or the data is of others.
  } catch (const InvalidArgument&) {
  }
}

}  // namespace plimsoll
