#include "plimsoll/model/training/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/spill_option.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/distributed_layout.h"
#include "plimsoll/model/training/forecast_prediction.h"
#include "plimsoll/model/training/step_budget.h"
#include "plimsoll/model/training/step_plan.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostBatch = std::size_t{1} << 30;

void require_compiled(const Network& network) {
  if (!network.training.is_compiled())
    throw FailedPrecondition(fmt::format("forecast: model \"{}\" is not compiled; call compile first", network.name()));
}

// Throws what a training that spills there would throw before its first step.
Eviction eviction_to(const char* where, const std::string& directory) {
  return open_spill(where, directory, true) ? Eviction::kSpill : Eviction::kRecompute;
}

// Removes the states that tracing gave to recurrent layers.
class ForgetNewStates {
 public:
  explicit ForgetNewStates(Network& network) noexcept : network_(network) {}
  ~ForgetNewStates() { forget_new_states(network_); }
  ForgetNewStates(const ForgetNewStates&) = delete;
  ForgetNewStates& operator=(const ForgetNewStates&) = delete;

 private:
  Network& network_;
};

// Variables of the step that are not weights: the optimizer's, and states.
struct Others {
  std::size_t optimizer = 0, states = 0;
};

Others others_of(const Network& network, const StepPlan& plan) {
  std::set<std::uint64_t> weights, slots;
  for (const LayerBase::Weight& weight : network.unique_weights()) weights.insert(weight.variable.id());
  const GraphState& graph = plan.program().graph();
  for (const Node& node : graph.nodes())
    for (std::size_t i = 1; i < node.updates.size(); ++i) slots.insert(graph.variables()[node.updates[i]].id);
  Others others;
  for (const Variable& variable : plan.variables()) {
    if (weights.count(variable.id()) > 0) continue;
    (slots.count(variable.id()) > 0 ? others.optimizer : others.states) += whole_blocks(variable.nbytes());
  }
  return others;
}

// Traces the step with an optimizer of the same kind, and discards it. Adds what recomputing needs when the step would
// not fit `enough` without it.
struct Wanted {
  Eviction eviction = Eviction::kRecompute;
  std::size_t enough = 0;
};
MemoryForecast forecast_training(Network& network, const BatchSpec& batch, const Wanted& wanted = {}) {
  const ForgetNewStates states(network);
  const Optimizer fresh(network.training.optimizer->options());
  const StepPlan plan(network, StepKind::kTrain, batch, &fresh);
  MemoryForecast forecast = plan.forecast(batch);
  if (forecast.peak_bytes > wanted.enough)
    plan.add_front(forecast, wanted.eviction == Eviction::kRecompute ? wanted.eviction : plan.spilling());
  return forecast;
}

// Sums of sizes from a file could overflow.
constexpr std::size_t kMostBytes = std::size_t{1} << 50;
MemoryForecast forecast_batch(Network& network, std::size_t batch_size, const Wanted& wanted) {
  const BatchSpec batch = assumed_batch(network, batch_size);
  Shapes inputs;
  for (const auto& input : batch.inputs) inputs.push_back(input.shape);
  if (network.bytes_between_layers(inputs) > kMostBytes)
    throw InvalidArgument(fmt::format(
        "forecast: model \"{}\" passes more than {} between its layers for a batch of {}; give smaller batches",
        network.name(), format_bytes(kMostBytes), batch_size));
  return forecast_training(network, batch, wanted);
}

// The largest slice, in the rank that needs most.
MemoryForecast forecast_ranks(Network& network, const ForecastOptions& options, const Wanted& wanted) {
  if (options.ranks < 1 || (options.slices > 0 && options.slices < static_cast<std::size_t>(options.ranks)))
    throw InvalidArgument(
        fmt::format("forecast: {} slices for {} ranks; give 1 rank or more, and as many slices or more", options.slices,
                    options.ranks));
  const ForgetNewStates states(network);
  const std::size_t given = options.slices > 0 ? options.slices : static_cast<std::size_t>(options.ranks);
  const std::size_t slices = std::clamp<std::size_t>(options.batch_size, 1, given);
  const std::size_t slice = (options.batch_size + slices - 1) / slices;
  const StepPlan plan(network, StepKind::kGradients, assumed_batch(network, slice));
  const distributed::SliceTree tree(given, options.ranks);
  if (options.shard_parameters) DistributedLayout::require_no_constraints(plan, "forecast");
  const bool shards = (options.shard_optimizer || options.shard_parameters) && options.ranks > 1;
  MemoryForecast most;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const DistributedLayout layout(plan, network.training.clipping,
                                   {.ranks = options.ranks,
                                    .rank = rank,
                                    .shards = shards,
                                    .shards_parameters = options.shard_parameters && options.ranks > 1});
    const distributed::SliceTree used(slices, options.ranks);
    const std::size_t first = options.batch_size * used.begin(rank) / slices;
    const std::size_t last = options.batch_size * used.end(rank) / slices;
    MemoryForecast forecast = plan.forecast(assumed_batch(network, std::max<std::size_t>(last - first, 1)));
    layout.beside(plan, tree, *network.training.optimizer).add_to(forecast);
    if (forecast.peak_bytes > most.peak_bytes) most = std::move(forecast);
  }
  plan.add_front(most, wanted.eviction);
  return most;
}

}  // namespace

MemoryForecast StepPlan::forecast(const BatchSpec& batch) const {
  const MemoryPlan& plan = program_->memory_plan();
  const Others others = others_of(network_, *this);
  const std::size_t parameters = network_.parameter_bytes();
  MemoryForecast forecast;
  const std::array<std::size_t, kCategories> inside = plan.extent_by_category();
  for (std::size_t i = 0; i < kCategories; ++i)
    forecast.by_category[category_name(static_cast<Category>(i))] = inside[i];
  forecast.by_category["parameters"] += parameters;
  forecast.by_category["optimizer"] += others.optimizer;
  forecast.by_category["other"] += others.states;
  forecast.by_category["inputs"] += batch.block_bytes();
  forecast.by_category["workspace"] += program_->staged_bytes();
  const std::size_t held =
      parameters + others.optimizer + others.states + batch.block_bytes() + program_->staged_bytes();
  forecast.peak_bytes = held + plan.extent_bytes;
  forecast.lower_bound_bytes = held + plan.lower_bound_bytes;
  forecast.smallest_budget = forecast.peak_bytes;
  forecast.floor_bytes = forecast.peak_bytes;
  forecast.front = {{forecast.peak_bytes, 1}};
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.bytes <= forecast.largest_op_bytes) continue;
    forecast.largest_op_bytes = buffer.bytes;
    forecast.largest_op = buffer.name.substr(0, buffer.name.find('#'));
  }
  return forecast;
}

// What is held besides the step's own blocks does not change.
void StepPlan::add_front(MemoryForecast& forecast, Eviction eviction) const {
  const std::size_t beside = forecast.peak_bytes - program_->block_bytes();
  const auto whole = [&](const ProgramPoint& point) {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(beside) + point.net());
  };
  forecast.front.clear();
  for (const ProgramPoint& point : program_->points(eviction)) forecast.front.push_back({whole(point), point.slowdown});
  forecast.floor_bytes = whole(program_->floor(eviction));
  forecast.floor_step = program_->floor_step(eviction);
  forecast.smallest_budget = forecast.front.back().bytes;
}

std::size_t StepPlan::most_saved_bytes(double max_slowdown, Eviction eviction) const {
  const std::ptrdiff_t least = program_->smallest_point(max_slowdown, eviction).net();
  return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(program_->block_bytes()) - least);
}

StepPlan::ParkedSizes StepPlan::parked_bytes() const {
  std::set<std::uint64_t> weights;
  for (const LayerBase::Weight& weight : network_.unique_weights()) weights.insert(weight.variable.id());
  ParkedSizes parked;
  for (const std::uint32_t number : program_->parked_variables()) {
    const Variable& variable = variables_[number];
    parked.all += whole_blocks(variable.nbytes());
    if (weights.count(variable.id()) == 0) parked.state += whole_blocks(variable.nbytes());
  }
  return parked;
}

MemoryForecast Model::forecast(const ForecastOptions& options) const {
  if (options.predict) {
    if (options.ranks != 1 || options.slices > 0 || !options.spill.empty())
      throw InvalidArgument("forecast: a prediction has no ranks, slices or spill; leave them out, or predict");
    return forecast_prediction(*this, options.batch_size);
  }
  require_compiled(*network_);
  const Wanted wanted{.eviction = eviction_to("forecast", options.spill)};
  if (options.ranks != 1 || options.slices > 0) return forecast_ranks(*network_, options, wanted);
  return forecast_batch(*network_, options.batch_size, wanted);
}

MemoryForecast Model::forecast(const Example& batch) const {
  require_compiled(*network_);
  require_inputs(*network_, batch.inputs, "forecast");
  BatchSpec spec = BatchSpec::of(batch);
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    spec.inputs[i].dtype = input_dtype_for(*network_, i, spec.inputs[i].dtype);
  return forecast_training(*network_, spec);
}

MemoryForecast Model::forecast(const Dataset& batches) const {
  require_compiled(*network_);
  const StepBudget memory(*network_, "forecast", StepLimits{});
  Example batch;
  std::unique_ptr<ExampleStream> pass;
  {
    const BudgetScope charged(memory.loading());
    const auto frozen = batches.is_set() ? batches.node()->frozen(false) : nullptr;  // Does not affect later passes.
    pass = frozen ? frozen->open() : batches.open();
    if (!pass->next(batch)) throw InvalidArgument("forecast: the dataset has no batches; give it some");
    cast_inputs(*network_, batch.inputs);
  }
  require_inputs(*network_, batch.inputs, "forecast");
  MemoryForecast result = forecast_training(*network_, BatchSpec::of(batch));
  memory.add_data(result, batch, *batches.node());
  return result;
}

double MemoryForecast::predicted_slowdown(std::size_t bytes) const noexcept {
  for (const BudgetPoint& point : front)
    if (point.bytes <= bytes) return point.slowdown;
  return std::numeric_limits<double>::infinity();
}

// The need grows about linearly: doubles until it is too much, then bisects with guesses. It need not grow with every
// example; the answer fits and the next larger batch does not.
std::size_t Model::max_batch_size(std::size_t bytes, double max_slowdown, const std::string& spill) const {
  require_compiled(*network_);
  if (!(max_slowdown >= 1))
    throw InvalidArgument(fmt::format("max_batch_size: max_slowdown is {:g}; give 1 or more", max_slowdown));
  const Eviction eviction = eviction_to("max_batch_size", spill);
  const auto need = [&](std::size_t batch) {
    try {
      const MemoryForecast forecast =
          forecast_batch(*network_, batch, {.eviction = eviction, .enough = max_slowdown > 1 ? bytes : SIZE_MAX});
      std::size_t least = forecast.peak_bytes;
      for (const BudgetPoint& point : forecast.front)
        if (point.slowdown <= max_slowdown) least = point.bytes;
      return least;
    } catch (const InvalidArgument&) {
      if (batch == 1) throw;
      return SIZE_MAX;  // Sizes that no memory can hold.
    }
  };
  const Shape& input = network_->is_connected() ? network_->call_of(network_->input_slots()[0]).shapes[0] : Shape();
  if (input.is_set() && input.rank() > 0 && input[0] != kUnknownSize) {  // A model with a fixed batch size.
    const auto only = static_cast<std::size_t>(input[0]);
    return need(only) <= bytes ? only : 0;
  }
  std::size_t low = 0, high = 1, low_need = 0, high_need = need(1);
  while (high_need <= bytes && high < kMostBatch) {
    low = high, low_need = high_need;
    high *= 2;
    high_need = need(high);
  }
  if (high_need <= bytes) return high;
  if (low == 0) return 0;
  for (bool halve = false; high - low > 1; halve = !halve) {
    std::size_t guess = low + (high - low) / 2;
    if (!halve && high_need > low_need)
      guess = low + static_cast<std::size_t>(static_cast<double>(high - low) * static_cast<double>(bytes - low_need) /
                                             static_cast<double>(high_need - low_need));
    guess = std::clamp(guess, low + 1, high - 1);
    const std::size_t guess_need = need(guess);
    if (guess_need <= bytes) {
      low = guess, low_need = guess_need;
      if (low + 1 < high && need(low + 1) > bytes) return low;  // Guesses are mostly right.
    } else {
      high = guess, high_need = guess_need;
    }
  }
  return low;
}

std::string MemoryForecast::to_string() const {
  std::string text;
  for (const auto& [category, bytes] : by_category)
    if (bytes > 0) text += fmt::format("{:<12} {:>12} {:>14} bytes\n", category, format_bytes(bytes), bytes);
  const auto add = [&](const char* name, std::size_t bytes) {
    text += fmt::format("{:<12} {:>12} {:>14} bytes\n", name, format_bytes(bytes), bytes);
  };
  add("peak", peak_bytes);
  add("lower bound", lower_bound_bytes);
  if (front.size() < 2) return text;
  for (const BudgetPoint& point : front)
    text += fmt::format("within       {:>12} {:>14} bytes  {:.2f} x\n", format_bytes(point.bytes), point.bytes,
                        point.slowdown);
  return text;
}

std::ostream& operator<<(std::ostream& out, const MemoryForecast& forecast) { return out << forecast.to_string(); }

}  // namespace plimsoll
