#include "plimsoll/model/training/planned_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/model/training/train_step.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

Shape with_batch(const Shape& shape, std::size_t batch_size, const std::string& name) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  const auto batch = static_cast<std::int64_t>(batch_size);
  if (sizes.empty()) sizes.push_back(kUnknownSize);
  if (sizes[0] != kUnknownSize && sizes[0] != batch)
    throw InvalidArgument(
        fmt::format("forecast: model \"{}\" takes batches of {}, was asked for {}", name, sizes[0], batch));
  sizes[0] = batch;
  const Shape result(sizes);
  if (!result.is_known())
    throw FailedPrecondition(
        fmt::format("forecast: model \"{}\" takes inputs of shape {}; give a batch, so that all sizes are known", name,
                    shape.to_string()));
  return result;
}

// Puts states back to none that tracing gave to recurrent layers.
class NewStatesGo {
 public:
  explicit NewStatesGo(Network& network) noexcept : network_(network) {}
  ~NewStatesGo() { forget_new_states(network_); }
  NewStatesGo(const NewStatesGo&) = delete;
  NewStatesGo& operator=(const NewStatesGo&) = delete;

 private:
  Network& network_;
};

// Variables of the step that are no weights: the optimizer's, and states.
struct Others {
  std::size_t optimizer = 0, states = 0;
};

Others others_of(const Network& network, const PlannedStep& step) {
  std::set<std::uint64_t> weights, slots;
  for (const LayerBase::Weight& weight : network.unique_weights()) weights.insert(weight.variable.id());
  const GraphState& graph = step.program().graph();
  for (const Node& node : graph.nodes())
    for (std::size_t i = 1; i < node.updates.size(); ++i) slots.insert(graph.variables()[node.updates[i]].id);
  Others others;
  for (const Variable& variable : step.variables()) {
    if (weights.count(variable.id()) > 0) continue;
    (slots.count(variable.id()) > 0 ? others.optimizer : others.states) += block_bytes(variable.nbytes());
  }
  return others;
}

}  // namespace

std::size_t parameter_bytes(const Network& network) {
  std::size_t bytes = 0;
  for (const LayerBase::Weight& weight : network.unique_weights()) bytes += block_bytes(weight.variable.nbytes());
  return bytes;
}

BatchSpec assumed_batch(const Network& network, std::size_t batch_size) {
  if (batch_size == 0) throw InvalidArgument("forecast: batch_size is 0; give 1 or more");
  if (!network.is_connected())
    throw FailedPrecondition(fmt::format(
        "forecast: model \"{}\" does not know its input's shape; give its first layer an input_shape", network.name()));
  BatchSpec batch;
  batch.device = &current_device();
  Shapes inputs;
  for (const std::size_t slot : network.input_slots()) {
    const Network::Call& call = network.call_of(slot);
    inputs.push_back(with_batch(call.shapes[0], batch_size, network.name()));
    batch.inputs.push_back({inputs.back(), call.layer->input_dtype()});
  }
  const Shapes outputs = network.output_shapes(inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool labels = network.training.losses.at(i).takes_labels();
    if (labels)
      batch.targets.push_back({Shape(std::vector<std::int64_t>(outputs[i].begin(), outputs[i].end() - 1)), i32});
    else
      batch.targets.push_back({outputs[i], f32});
  }
  return batch;
}

MemoryForecast forecast_of(const Network& network, const PlannedStep& step, const BatchSpec& batch) {
  const MemoryPlan& plan = step.program().memory_plan();
  const Others others = others_of(network, step);
  const std::size_t parameters = parameter_bytes(network);
  MemoryForecast forecast;
  const std::array<std::size_t, kCategories> inside = plan.extent_by_category();
  for (std::size_t i = 0; i < kCategories; ++i)
    forecast.by_category[category_name(static_cast<Category>(i))] = inside[i];
  forecast.by_category["parameters"] += parameters;
  forecast.by_category["optimizer"] += others.optimizer;
  forecast.by_category["other"] += others.states;
  forecast.by_category["inputs"] += batch.block_bytes();
  const std::size_t held = parameters + others.optimizer + others.states + batch.block_bytes();
  forecast.peak_bytes = held + plan.extent_bytes;
  forecast.lower_bound_bytes = held + plan.lower_bound_bytes;
  forecast.smallest_budget = forecast.peak_bytes;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.bytes <= forecast.largest_op_bytes) continue;
    forecast.largest_op_bytes = buffer.bytes;
    forecast.largest_op = buffer.name.substr(0, buffer.name.find('#'));
  }
  return forecast;
}

void add_held_bytes(MemoryForecast& forecast, std::size_t bytes) {
  forecast.by_category["inputs"] += bytes;
  forecast.peak_bytes += bytes;
  forecast.lower_bound_bytes += bytes;
  forecast.smallest_budget += bytes;
}

MemoryForecast forecast_training(Network& network, const BatchSpec& batch) {
  const NewStatesGo states(network);
  const Optimizer fresh(network.training.optimizer->options());
  const PlannedStep step(network, StepKind::kTrain, batch, &fresh);
  return forecast_of(network, step, batch);
}

namespace {

using Rows = std::vector<std::pair<std::string, std::size_t>>;

Rows largest_first(const MemoryForecast& needed) {
  Rows rows(needed.by_category.begin(), needed.by_category.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return rows;
}

std::vector<MemoryHolder> holders_of(const Network& network, const Rows& rows) {
  std::vector<MemoryHolder> holders;
  for (const auto& [category, bytes] : rows)
    if (bytes > 0)
      holders.push_back(
          {.op = "step", .scope = network.name(), .category = category, .shape = "", .bytes = bytes, .count = 1});
  return holders;
}

// What most of it is.
std::string most_of(const MemoryForecast& needed, const Rows& rows) {
  return fmt::format("most of it {} {}, the largest buffer that of {} with {}", rows[0].first,
                     format_bytes(rows[0].second), needed.largest_op.empty() ? "nothing" : needed.largest_op,
                     format_bytes(needed.largest_op_bytes));
}

}  // namespace

void refuse_budget(const Network& network, const char* where, const MemoryForecast& needed, std::size_t budget,
                   const BatchSpec& batch) {
  const Rows rows = largest_first(needed);
  OutOfMemoryDetails details;
  details.requested = needed.smallest_budget;
  details.limit = budget;
  details.smallest_sufficient_limit = needed.smallest_budget;
  details.holders = holders_of(network, rows);
  details.what = fmt::format(
      "{}: model \"{}\" needs {} for a step with a batch of {}, its budget is {}; {}; give it a budget of {} bytes, or "
      "smaller batches",
      where, network.name(), format_bytes_exactly(needed.smallest_budget), batch.inputs.at(0).shape[0],
      format_bytes_exactly(budget), most_of(needed, rows), needed.smallest_budget);
  throw_refusal(std::move(details), {.budget = where, .op = where, .scope = network.name().c_str()});
}

void refuse_budget_around(const Network& network, const char* where, const MemoryForecast& needed,
                          const BatchSpec& batch, const BudgetAround& budget) {
  const Rows rows = largest_first(needed);
  OutOfMemoryDetails details;
  details.requested = budget.sufficient - budget.used;
  details.limit = budget.limit;
  details.in_use = budget.used;
  details.smallest_sufficient_limit = budget.sufficient;
  details.holders = holders_of(network, rows);
  details.what = fmt::format(
      "{}: model \"{}\" needs {} more for a step with a batch of {}, budget \"{}\" of {} has {} in use; {}; give that "
      "budget {} bytes, or the model smaller batches",
      where, network.name(), format_bytes_exactly(details.requested), batch.inputs.at(0).shape[0], budget.name,
      format_bytes_exactly(budget.limit), format_bytes_exactly(budget.used), most_of(needed, rows), budget.sufficient);
  throw_refusal(std::move(details), {.budget = budget.name.c_str(), .op = where, .scope = network.name().c_str()});
}

void require_room_to_predict(Network& network, const std::vector<std::vector<Tensor>>& batches, std::int64_t count) {
  const std::optional<Budget> innermost = Budget::current();
  if (!innermost) return;
  std::size_t results = 0, most = 0;
  for (const std::vector<Tensor>& inputs : batches) {
    const std::shared_ptr<PlannedStep> step =
        plan_step(network, StepKind::kPredict, {.inputs = inputs, .targets = {}, .weights = {}});
    if (!step) return;
    const Program& program = step->program();
    most = std::max(most, program.block_bytes());
    if (batches.size() == 1 && inputs[0].shape()[0] == count) continue;
    std::size_t whole = 0;
    for (std::size_t i = 0; i < program.num_fetches(); ++i) {
      const TensorSpec& part = program.fetch_spec(i);
      const std::int64_t rows = std::max<std::int64_t>(1, inputs[0].shape()[0]);
      whole += block_bytes(part.bytes() / static_cast<std::size_t>(rows) * static_cast<std::size_t>(count));
    }
    results = std::max(results, whole);
  }
  for (const BudgetNode* node = innermost->node().get(); node; node = node->parent()) {
    const std::size_t used = node->used(), needed = used + results + most;
    if (needed <= node->limit()) continue;
    OutOfMemoryDetails details;
    details.requested = results + most;
    details.limit = node->limit();
    details.in_use = used;
    details.smallest_sufficient_limit = needed;
    details.what = fmt::format(
        "predict: model \"{}\" needs {}, of which the results of {} examples take {}, budget \"{}\" of {} has {} in "
        "use; give it {} bytes, or predict smaller batches",
        network.name(), format_bytes_exactly(results + most), count, format_bytes(results), node->name(),
        format_bytes_exactly(node->limit()), format_bytes_exactly(used), needed);
    throw_refusal(std::move(details),
                  {.budget = node->name().c_str(), .op = "predict", .scope = network.name().c_str()});
  }
}

}  // namespace plimsoll
