#include "plimsoll/model/training/step_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/graph/park_variable.h"
#include "plimsoll/graph/spill_option.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
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

using CategoryBytes = std::vector<std::pair<std::string, std::size_t>>;

CategoryBytes largest_first(const MemoryForecast& needed) {
  CategoryBytes categories(needed.by_category.begin(), needed.by_category.end());
  std::sort(categories.begin(), categories.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return categories;
}

std::vector<MemoryHolder> holders_of(const Network& network, const CategoryBytes& categories) {
  std::vector<MemoryHolder> holders;
  for (const auto& [category, bytes] : categories)
    if (bytes > 0)
      holders.push_back(
          {.op = "step", .scope = network.name(), .category = category, .shape = "", .bytes = bytes, .count = 1});
  return holders;
}

// What makes up most of the peak.
std::string most_of(const MemoryForecast& needed, const CategoryBytes& categories) {
  return fmt::format("at the peak most is {}, {}, and the largest buffer is that of {}, {}", categories[0].first,
                     format_bytes(categories[0].second), needed.largest_op.empty() ? "nothing" : needed.largest_op,
                     format_bytes(needed.largest_op_bytes));
}

}  // namespace

std::string describe_recomputing(const MemoryForecast& needed, const RecomputingWords& words) {
  const std::string floor = format_bytes_exactly(needed.floor_bytes);
  const bool spills = words.eviction != Eviction::kRecompute;
  if (words.too_long > 0)
    return fmt::format("a step of {} operations is too long to look for plans that recompute", words.too_long);
  if (needed.front.size() < 2)
    return fmt::format("{}, since {} needs {} by itself",
                       spills ? "recomputing and spilling do not help" : "recomputing does not help", needed.floor_step,
                       floor);
  return fmt::format(
      "at {} a step takes {:.2f} times as long as at {}{}, and {} less than {}, for {}", format_bytes(words.sufficient),
      needed.predicted_slowdown(words.sufficient), format_bytes_exactly(needed.peak_bytes),
      words.max_slowdown < kMostSlowdown ? fmt::format(" (max_slowdown {:g})", words.max_slowdown) : "",
      spills ? "recomputing and spilling never need" : "recomputing never needs", floor, needed.floor_step);
}

void add_held_bytes(MemoryForecast& forecast, std::size_t bytes, std::size_t least) {
  forecast.by_category["inputs"] += bytes;
  forecast.peak_bytes += bytes;
  forecast.lower_bound_bytes += bytes;
  forecast.floor_bytes += bytes;
  forecast.smallest_budget = std::max(forecast.smallest_budget + bytes, least);
  for (BudgetPoint& point : forecast.front) point.bytes = std::max(point.bytes + bytes, least);
  // When several have become equal, keeps the fastest.
  const auto alike = [](const BudgetPoint& a, const BudgetPoint& b) { return a.bytes == b.bytes; };
  forecast.front.erase(std::unique(forecast.front.begin(), forecast.front.end(), alike), forecast.front.end());
}

StepBudget::StepBudget(Network& network, const char* where, const StepLimits& limits)
    : network_(network),
      where_(where),
      limits_(limits),
      spill_(open_spill(where, limits.spill, limits.bytes.has_value())),
      measured_(measuring()) {
  if (network_.is_built()) park_variables();
  for (const BudgetNode* node = measured_.node()->parent(); node; node = node->parent())
    around_.push_back({const_cast<BudgetNode*>(node)->shared_from_this(), node->used()});
  if (network_.is_built()) held_ = resident_bytes();
  held_at_first_ = held_;
  // Weights that take all of it are refused with the first step, once its need is known.
  if (limit()) hard_.emplace("fit within its budget", std::max<std::size_t>(left_of(*limit(), held_), 1), measured_);
  const Budget& above = hard_ ? *hard_ : measured_;
  data_.emplace("batches", above.limit(), above);
  if (hard_) all_steps_.emplace("all steps", hard_->limit(), *hard_);
}

StepBudget::~StepBudget() {
  if (!spill_) return;
  for (const Admitted& each : admitted_) each.plan->program().release_slots();
  for (const Variable& variable : returning_) try {
      if (!variable.is_disposed()) unpark_variable(variable);
    } catch (const Error& error) {  // It is loaded again when it is read.
      log_message(LogLevel::warning,
                  fmt::format("{}: \"{}\" stays in the spill file: {}", where_, variable.name(), error.what()));
      return;
    }
}

// To the file, if there is one. Variables that others hold stay in memory.
void StepBudget::park_variables() {
  if (!spill_ || !limits_.parks) return;
  for (const LayerBase::Weight& weight : network_.unique_weights()) {
    const bool was_there = weight.variable.share_bytes()->is_resident();
    const auto is_known = [&](const Variable& known) { return known.id() == weight.variable.id(); };
    if (park_variable(weight.variable, *spill_) && was_there &&
        std::none_of(returning_.begin(), returning_.end(), is_known))
      returning_.push_back(weight.variable);
  }
  for (const Variable& state : network_.training.optimizer->state_variables()) park_variable(state, *spill_);
}

std::size_t StepBudget::resident_bytes() const {
  std::size_t bytes = network_.training.optimizer->state_bytes();
  for (const LayerBase::Weight& weight : network_.unique_weights())
    if (!(limits_.shards_parameters && weight.trainable) && weight.variable.share_bytes()->is_resident())
      bytes += whole_blocks(weight.variable.nbytes());
  return bytes;
}

const Chunk* StepBudget::charged_chunk(const Tensor& tensor) const noexcept {
  if (tensor.is_empty_handle() || tensor.is_disposed()) return nullptr;
  const Storage* const storage = tensor.record()->storage;
  const Chunk* const chunk = storage->chunk();
  return chunk && chunk->budget == data_->node().get() ? chunk : nullptr;
}

std::size_t StepBudget::charged_bytes(const Example& batch) const {
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

std::size_t StepBudget::shared_bytes(const Example& batch) const {
  std::size_t bytes = 0;
  visit_tensors(batch, [&](const Tensor& tensor) {
    if (!tensor.is_empty_handle() && !tensor.is_disposed() && !charged_chunk(tensor))
      bytes += whole_blocks(tensor.nbytes());
  });
  return bytes;
}

// From here on the batch has this many bytes that nobody is charged for.
void StepBudget::share(std::size_t bytes) {
  if (bytes == shared_batch_) return;
  peak_before_ = peak_bytes();
  shared_batch_ = bytes;
  measured_.reset_peak();
}

// Weights exist once there is a plan.
void StepBudget::begin(const Example& batch) {
  if (!std::exchange(begun_, true)) {
    park_variables();
    held_ = resident_bytes();
  }
  share(shared_bytes(batch));
}

void BesideStep::add_to(MemoryForecast& forecast) const {
  forecast.by_category["gradients"] += gradients;
  forecast.by_category["activations"] += activations;
  forecast.by_category["inputs"] += inputs;
  forecast.by_category["optimizer"] += optimizer;
  forecast.by_category["workspace"] += workspace;
  forecast.by_category["parameters"] += shards - whole;
  for (std::size_t* const bytes :
       {&forecast.peak_bytes, &forecast.lower_bound_bytes, &forecast.floor_bytes, &forecast.smallest_budget})
    *bytes += all();
  for (BudgetPoint& point : forecast.front) point.bytes += all();
}

StepBudget::Need StepBudget::need_of(const std::shared_ptr<StepPlan>& plan, const Example& batch, const Example& loaded,
                                     const DatasetNode& data, const BesideStep& beside) const {
  Need need;
  need.plan = plan;
  need.shared = shared_bytes(batch);
  need.batch = BatchSpec::of(batch);
  if (plan->has_program()) {
    need.needed = plan->forecast(need.batch);
    beside.add_to(need.needed);
  } else {  // The need of a step that runs op by op is not known; the limit still holds.
    need.needed.by_category["parameters"] = held_;
    need.needed.peak_bytes = held_ + need.batch.block_bytes();
  }
  need.loading = add_data(need.needed, loaded, data);
  return need;
}

std::size_t StepBudget::add_data(MemoryForecast& needed, const Example& loaded, const DatasetNode& data) const {
  const BatchSpec spec = BatchSpec::of(loaded);  // Its blocks may be larger than what a forecast counts for it.
  const std::size_t counted = std::min(charged_bytes(loaded), spec.block_bytes());
  const std::size_t measured = data_->used() - std::min(data_->used(), counted);
  const std::size_t held = std::max(measured, data.held(spec.tensor_bytes()).resident);
  const bool is_first = admitted_.empty();  // Anything loaded before counts.
  const std::size_t loading =
      is_first ? needed.by_category["parameters"] + needed.by_category["optimizer"] + data_->peak() : 0;
  add_held_bytes(needed, held, loading);
  return loading;
}

// The optimizer's state stays in memory while steps other than training run.
void StepBudget::add_optimizer(Needs& needs) const {
  const std::size_t optimizer = std::max(network_.training.optimizer->state_bytes(),
                                         needs.empty() ? 0 : needs[0].needed.by_category["optimizer"]);
  const bool has_parked = !needs.empty() && may_use(needs[0], Means::kParked);
  const std::size_t parked = has_parked ? needs[0].plan->parked_bytes().state : 0;
  for (Need& need : needs) {
    MemoryForecast& needed = need.needed;
    const std::size_t more = optimizer - std::min(optimizer, needed.by_category["optimizer"]);
    needed.by_category["optimizer"] += more;
    needed.peak_bytes += more;
    need.loading += need.loading > 0 ? more : 0;
    need.parked_state = std::min(parked, more);
  }
}

bool StepBudget::may_use(const Need& need, Means means) const {
  if (means == Means::kNatural) return true;
  if (!limit() || !need.plan->has_program()) return false;
  return means == Means::kLean || (spill_ && limits_.parks && need.plan->spilling() == Eviction::kSpillVariables);
}

Eviction StepBudget::eviction(const StepPlan& plan) const {
  if (!spill_) return Eviction::kRecompute;
  return parks_ ? plan.spilling() : Eviction::kSpill;
}

std::size_t StepBudget::whole_bytes(const Need& need, Means means) const {
  const std::size_t peak = need.needed.peak_bytes;
  switch (means) {
    case Means::kNatural:
      return peak;
    case Means::kLean:
      return peak - need.plan->most_saved_bytes(limits_.max_slowdown, spill_ ? Eviction::kSpill : Eviction::kRecompute);
    case Means::kParked:
      return peak - need.parked_state - need.plan->most_saved_bytes(limits_.max_slowdown, Eviction::kSpillVariables);
  }
  return peak;
}

std::size_t StepBudget::loading_bytes(const Need& need, Means means) const {
  if (means != Means::kParked) return need.loading;
  return left_of(need.loading, need.plan->parked_bytes().all + need.parked_state);
}

// What recomputing, and then parking, saves is computed only when necessary.
template <class F>
std::size_t StepBudget::smallest_limit(const Need& need, std::size_t given, F&& needed_with, Means* means) const {
  std::size_t smallest = SIZE_MAX;
  for (const Means each : {Means::kNatural, Means::kLean, Means::kParked}) {
    if (!may_use(need, each)) continue;
    const std::size_t needed = needed_with(whole_bytes(need, each), loading_bytes(need, each));
    if (needed < smallest && means) *means = each;
    smallest = std::min(smallest, needed);
    if (smallest <= given) break;
  }
  return smallest;
}

// At least a byte is left for the steps' own budget.
std::size_t StepBudget::smallest_limit(const Need& need, Means* means) const {
  const std::size_t inputs = need.needed.by_category.at("inputs");
  const auto needed_with = [&](std::size_t whole, std::size_t loading) {
    return std::max({whole, loading, held_ + inputs + 1});
  };
  return smallest_limit(need, *limit(), needed_with, means);
}

std::size_t StepBudget::smallest_limit(const Need& need, const Around& around, Means* means) const {
  const std::size_t elsewhere = held_at_first_ + need.shared;
  const auto needed_with = [&](std::size_t whole, std::size_t loading) {
    return around.used + std::max(left_of(whole, elsewhere), left_of(loading, held_at_first_));
  };
  return smallest_limit(need, around.node->limit(), needed_with, means);
}

// Once a step does not fit with variables in memory, all are parked.
void StepBudget::decide_parking(const Needs& needs) {
  if (!spill_ || !limits_.parks) return;
  for (const Need& need : needs) {
    Means means = Means::kNatural;
    smallest_limit(need, &means);
    parks_ |= means == Means::kParked;
    if (!need.plan->has_program() || !admitted_.empty()) continue;
    for (const Around& around : around_) {
      smallest_limit(need, around, &means);
      parks_ |= means == Means::kParked;
    }
  }
}

// The one that exceeds a limit most, and the limit that suffices: for several budgets the largest, because the user may
// have given them one number.
StepBudget::Refused StepBudget::find_refused(const Needs& needs) const {
  Refused refused;
  const auto compare = [&](const Need& need, std::size_t needed, std::size_t given, const Around* around) {
    if (needed > given && needed > refused.sufficient) refused = {&need, around, needed};
  };
  for (const Need& need : needs) {
    if (limit()) compare(need, smallest_limit(need), *limit(), nullptr);
    if (!need.plan->has_program() || !admitted_.empty()) continue;
    for (const Around& around : around_) compare(need, smallest_limit(need, around), around.node->limit(), &around);
  }
  return refused;
}

void StepBudget::refuse(const Refused& refused) const {
  MemoryForecast needed = refused.need->needed;
  const CategoryBytes categories = largest_first(needed);
  const std::string batch = fmt::format("a step with a batch of {}", refused.need->batch.inputs.at(0).shape[0]);
  std::string why = most_of(needed, categories);
  if (limit() && refused.need->plan->has_program()) {
    const Eviction may = spill_ && limits_.parks ? refused.need->plan->spilling() : eviction(*refused.need->plan);
    refused.need->plan->add_front(needed, may);
    const std::size_t at = refused.by ? needed.smallest_budget : refused.sufficient;
    const Program& program = refused.need->plan->program();
    const std::size_t too_long = program.is_too_long_to_recompute() ? program.num_steps() : 0;
    why = describe_recomputing(needed, {at, limits_.max_slowdown, may, too_long}) + "; " + why;
  }
  OutOfMemoryDetails details;
  details.smallest_sufficient_limit = refused.sufficient;
  details.holders = holders_of(network_, categories);
  if (!refused.by) {
    details.requested = refused.sufficient;
    details.limit = *limit();
    details.what = fmt::format(
        "{}: model \"{}\" needs {} for {}, its budget is {}; {}; give it a budget of {} bytes, or smaller batches",
        where_, network_.name(), format_bytes_exactly(refused.sufficient), batch, format_bytes_exactly(*limit()), why,
        refused.sufficient);
    throw_refusal(std::move(details), {.budget = where_, .op = where_, .scope = network_.name().c_str()});
  }
  const BudgetNode& node = *refused.by->node;
  details.requested = refused.sufficient - refused.by->used;
  details.limit = node.limit();
  details.in_use = refused.by->used;
  details.what = fmt::format(
      "{}: model \"{}\" needs {} more for {}, budget \"{}\" of {} has {} in use; {}; give that budget {} bytes, or the "
      "model smaller batches",
      where_, network_.name(), format_bytes_exactly(details.requested), batch, node.name(),
      format_bytes_exactly(node.limit()), format_bytes_exactly(refused.by->used), why, refused.sufficient);
  throw_refusal(std::move(details), {.budget = node.name().c_str(), .op = where_, .scope = network_.name().c_str()});
}

void StepBudget::expect(const std::shared_ptr<StepPlan>& plan, const Example& batch, const DatasetNode& data,
                        const Example* loaded) {
  if (!loaded) loaded = &batch;
  begin(*loaded);
  expected_.push_back(need_of(plan, batch, *loaded, data));
}

void StepBudget::refuse_expected(const StepBudget& unlimited) const {
  Needs needs = unlimited.expected_;
  std::stable_partition(needs.begin(), needs.end(), [](const Need& n) { return n.plan->kind() == StepKind::kTrain; });
  add_optimizer(needs);
  if (const Refused refused = find_refused(needs); refused.need) refuse(refused);
}

// A step that fits as it is needs no front.
void StepBudget::predict_slowdown(const Need& need) {
  if (!limit() || need.plan->kind() != StepKind::kTrain || !need.plan->has_program()) return;
  const std::size_t elsewhere = held_at_first_ + need.shared;
  std::size_t room = *limit();
  for (const Around& around : around_) room = std::min(room, around.node->limit() - around.used + elsewhere);
  if (need.needed.peak_bytes <= room) return;
  MemoryForecast needed = need.needed;
  need.plan->add_front(needed, eviction(*need.plan));
  predicted_slowdown_ = needed.predicted_slowdown(room);
}

// The step's own blocks may use what is left besides the model, this batch, and what earlier steps have left.
void StepBudget::make_room(const Admitted& next) {
  if (!limit() || has_room_ == next.plan.get()) return;
  if (parks_) park_variables();  // What steps of another plan have loaded.
  const std::size_t room = left_of(*limit(), held_ + next.inputs + all_steps_->used());
  steps_.emplace("steps", std::max<std::size_t>(room, 1), *all_steps_);
  has_room_ = next.plan.get();
}

void StepBudget::admit(const std::shared_ptr<StepPlan>& plan, const Example& batch, const DatasetNode& data,
                       const BesideStep& beside) {
  begin(batch);
  if (!is_limited()) return;
  const auto is_plan = [&](const Admitted& each) { return each.plan == plan; };
  if (const auto known = std::find_if(admitted_.begin(), admitted_.end(), is_plan); known != admitted_.end())
    return make_room(*known);
  Needs needs = {need_of(plan, batch, batch, data, beside)};
  std::move(expected_.begin(), expected_.end(), std::back_inserter(needs));
  expected_.clear();
  add_optimizer(needs);
  if (const Refused refused = find_refused(needs); refused.need) {
    refused_ = true;
    const StepPlan& refused_plan = *refused.need->plan;
    if (admitted_.empty() || (refused_plan.has_program() && !refused_plan.has_run())) {
      network_.training.plans.clear();
      forget_new_states(network_);
    }
    refuse(refused);
  }
  decide_parking(needs);
  if (admitted_.empty()) predict_slowdown(needs[0]);
  if (admitted_.size() >= kMostAdmitted) {
    for (const Admitted& each : admitted_) each.plan->program().release_slots();
    admitted_.clear();
    has_room_ = nullptr;
  }
  needs[0].needed.by_category["inputs"] -= beside.inputs;  // Steps are charged for them.
  make_room({plan, needs[0].needed.by_category["inputs"]});
  for (Need& need : needs)
    if (need.plan->has_program()) admitted_.push_back({std::move(need.plan), need.needed.by_category["inputs"]});
}

StepResult StepBudget::run(StepPlan& plan, const Example& batch) {
  const BudgetScope scope(stepping());
  StepResult result = plan.run(batch, recomputing());
  if (plan.kind() == StepKind::kTrain)
    note_trained(result);
  else
    spilled_bytes_ += result.spilled_bytes;
  return result;
}

void StepBudget::note_trained(const StepResult& result) noexcept {
  spilled_bytes_ += result.spilled_bytes;
  last_spilled_ = result.spilled_bytes;
  last_recomputed_ = result.recomputed;
  recomputed_ += result.recomputed;
  ++trained_;
}

}  // namespace plimsoll::internal
