#include "plimsoll/model/training/planned_budget.h"

#include <algorithm>

#include "plimsoll/device/device.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/model/training/planned_memory.h"
#include "plimsoll/model/training/train_step.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostAdmitted = 64;

// All devices together: a model may be on several.
Budget measuring() {
  std::size_t limit = 0;
  for (const auto& device : Runtime::instance().devices()) limit += std::min(device->arena().limit(), SIZE_MAX - limit);
  const std::optional<Budget> outer = Budget::current();
  return outer ? Budget("fit", limit, *outer) : Budget("fit", limit);
}

std::size_t left_of(std::size_t budget, std::size_t taken) { return budget > taken ? budget - taken : 0; }

}  // namespace

PlannedBudget::PlannedBudget(Network& network, const char* where, std::optional<std::size_t> budget)
    : network_(network), where_(where), budget_(budget), measured_(measuring()) {
  for (const BudgetNode* node = measured_.node()->parent(); node; node = node->parent())
    around_.push_back({const_cast<BudgetNode*>(node)->shared_from_this(), node->used()});
  if (network_.is_built()) held_ = parameter_bytes(network_) + network_.training.optimizer->state_bytes();
  held_at_first_ = held_;
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
  if (is_limited()) return measure(kind, example, data);
  if (!begun_) {
    prepare(network_, example.inputs, where_);
    begin();
  }
  share(shared_bytes(example));
  Need need;
  need.is_admitted = true;
  return need;
}

PlannedBudget::Need PlannedBudget::measure(StepKind kind, const Example& example, const DatasetNode& data) {
  if (!begun_) {
    prepare(network_, example.inputs, where_);
    begin();
  }
  Need need;
  need.kind = kind;
  need.shared = shared_bytes(example);
  share(need.shared);
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
  need.loading = add_data(need.needed, example, data);
  return need;
}

std::size_t PlannedBudget::add_data(MemoryForecast& needed, const Example& batch, const DatasetNode& data) const {
  const std::size_t measured = data_->used() - std::min(data_->used(), charged_bytes(batch));
  add_held_bytes(needed, std::max(measured, data.held(BatchSpec::of(batch).tensor_bytes()).resident));
  if (!admitted_.empty()) return 0;  // What was loaded before has been.
  const std::size_t loading = needed.by_category["parameters"] + needed.by_category["optimizer"] + data_->peak();
  needed.smallest_budget = std::max(needed.smallest_budget, loading);
  return loading;
}

// The optimizer's state is there while others than training steps run.
void PlannedBudget::settle(Needs& needs) const {
  const std::size_t optimizer = std::max(network_.training.optimizer->state_bytes(),
                                         needs.empty() ? 0 : needs[0].needed.by_category["optimizer"]);
  for (Need& need : needs) {
    MemoryForecast& needed = need.needed;
    const std::size_t more = optimizer - std::min(optimizer, needed.by_category["optimizer"]);
    needed.by_category["optimizer"] += more;
    needed.peak_bytes += more;
    need.loading += need.loading > 0 ? more : 0;
    // At least a byte is left for the steps' own budget.
    needed.smallest_budget = std::max(needed.smallest_budget + more, held_ + needed.by_category["inputs"] + 1);
  }
}

// The one that needs most of a limit that is too small, and the limit that would do: of several budgets the largest, as
// they may have been given one number.
const PlannedBudget::Need* PlannedBudget::find_refused(const Needs& needs, const Around*& by,
                                                       std::size_t& limit) const {
  const Need* refused = nullptr;
  const auto compare = [&](const Need& need, std::size_t needed, std::size_t given, const Around* around) {
    if (needed <= given || needed <= limit) return;
    refused = &need;
    by = around;
    limit = needed;
  };
  by = nullptr;
  limit = 0;
  for (const Need& need : needs) {
    if (budget_) compare(need, need.needed.smallest_budget, *budget_, nullptr);
    if (!need.step || !admitted_.empty()) continue;
    const std::size_t step = left_of(need.needed.peak_bytes, held_at_first_ + need.shared);
    const std::size_t more = std::max(step, left_of(need.loading, held_at_first_));
    for (const Around& around : around_) compare(need, around.used + more, around.node->limit(), &around);
  }
  return refused;
}

void PlannedBudget::refuse(const Need& need, const Around* by, std::size_t limit) const {
  if (by)
    refuse_budget_around(network_, where_, need.needed, need.batch,
                         {by->node->name(), by->node->limit(), by->used, limit});
  refuse_budget(network_, where_, need.needed, *budget_, need.batch);
}

void PlannedBudget::refuse_too_small(Needs needs) const {
  settle(needs);
  const Around* by = nullptr;
  std::size_t limit = 0;
  if (const Need* const refused = find_refused(needs, by, limit)) refuse(*refused, by, limit);
}

void PlannedBudget::admit(Needs needs) {
  std::erase_if(needs, [](const Need& need) { return need.is_admitted; });
  if (needs.empty()) return;
  settle(needs);
  const Around* by = nullptr;
  std::size_t limit = 0;
  if (const Need* const refused = find_refused(needs, by, limit)) {
    refused_ = true;
    if (admitted_.empty() || (refused->step && !refused->step->has_run())) {
      network_.training.planned.clear();
      forget_new_states(network_);
    }
    refuse(*refused, by, limit);
  }
  if (budget_ && !steps_) steps_.emplace("steps", *budget_ - held_ - needs[0].needed.by_category["inputs"], *hard_);
  if (admitted_.size() >= kMostAdmitted) admitted_.clear();
  for (Need& need : needs)
    if (need.step) admitted_.push_back(std::move(need.step));
}

}  // namespace plimsoll
