#include "plimsoll/model/onnx/onnx_plan.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/rewrite.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {

OnnxPlan::OnnxPlan(const OnnxLayer& layer, const std::vector<TensorSpec>& inputs, const std::vector<Tensor>& known) {
  // A file says what is computed, not in which order: what changes no more than rounding is fused, too.
  const Passes passes{.fuse_attention = true, .fold_norm = true};
  Rewritten rewritten;
  const std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kTrace);
  {
    const MakingTensors activations(Category::kActivations);
    const TraceWith tracing(graph.get());
    std::vector<Tensor> given;
    std::vector<ValueId> feeds, fetches;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      is_fed_.push_back(known[i].is_empty_handle());
      given.push_back(known[i]);
      if (!is_fed_.back()) continue;
      given.back() = graph->add_placeholder(inputs[i], current_device(), "input");
      feeds.push_back(graph->resolve(given.back(), "predict", "an input"));
    }
    for (const Tensor& output : layer.run(given, known, false))
      fetches.push_back(graph->resolve(output, "predict", "an output"));
    const TraceWith nobody(nullptr);
    std::vector<Feed> fed;
    for (const ValueId& feed : feeds) fed.push_back({feed, graph->output(feed).spec});
    rewritten = rewrite(*graph, fed, fetches, true, passes);
  }
  program_ = std::make_unique<Program>(std::move(rewritten), passes);
  for (const Program::VariableUse& use : program_->variables())
    variables_.push_back(*program_->graph().variables()[use.number].eager);
}

std::vector<Tensor> OnnxPlan::run(const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_fed_[i]) feeds.push_back(&inputs[i]);
  std::vector<Tensor> results(program_->num_fetches());
  program_->run(
      {.feeds = feeds, .variables = variables_, .results = results, .where = "predict", .may_recompute = true});
  return results;
}

std::shared_ptr<OnnxPlan> OnnxPlans::get(const OnnxLayer& layer, const std::vector<TensorSpec>& inputs) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const Entry& entry) {
    return std::equal(
        inputs.begin(), inputs.end(), entry.inputs.begin(), entry.inputs.end(),
        [](const TensorSpec& a, const TensorSpec& b) { return a.dtype == b.dtype && a.shape == b.shape; });
  };
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found != entries_.end()) {
    std::rotate(found, found + 1, entries_.end());
    return entries_.back().plan;
  }
  Entry made{inputs, nullptr};
  try {
    made.plan = std::make_shared<OnnxPlan>(layer, inputs, std::vector<Tensor>(inputs.size()));
  } catch (const FailedPrecondition&) {  // Elements decide.
  }
  if (entries_.size() == kMost) entries_.erase(entries_.begin());
  entries_.push_back(std::move(made));
  return entries_.back().plan;
}

MemoryForecast OnnxPlan::forecast(std::size_t beside) const {
  const MemoryPlan& plan = program_->memory_plan();
  MemoryForecast forecast;
  const std::array<std::size_t, kCategories> inside = plan.extent_by_category();
  for (std::size_t i = 0; i < kCategories; ++i)
    forecast.by_category[category_name(static_cast<Category>(i))] = inside[i];
  forecast.peak_bytes = beside + program_->block_bytes();
  forecast.by_category["activations"] += program_->block_bytes() - plan.extent_bytes;  // Results.
  forecast.lower_bound_bytes = beside + program_->block_bytes() - plan.peak_bytes + plan.lower_bound_bytes;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.bytes <= forecast.largest_op_bytes) continue;
    forecast.largest_op_bytes = buffer.bytes;
    forecast.largest_op = buffer.name.substr(0, buffer.name.find('#'));
  }
  forecast.front = program_->front();
  for (BudgetPoint& point : forecast.front) point.bytes += beside;
  forecast.floor_bytes = beside + program_->floor_bytes();
  forecast.floor_step = program_->floor_step();
  forecast.smallest_budget = forecast.front.back().bytes;
  return forecast;
}

}  // namespace plimsoll::internal
