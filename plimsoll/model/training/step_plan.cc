#include "plimsoll/model/training/step_plan.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/graph/call_signature.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/on_device_of.h"
#include "plimsoll/tensor/thread_context.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll::internal {
namespace {

// While it lives, tensors belong to no tidy scope and to the category of activations.
class Tracing {
 public:
  explicit Tracing(GraphState& graph) : trace_(&graph) {}

 private:
  const MakingTensors activations_{Category::kActivations};
  const TraceWith trace_;
};

void constrain(const Constraint& constraint, const Variable& variable) {
  const TensorView weight = variable.writable_value();
  constraint.apply(HostWrite(Runtime::instance().device(variable.device()), weight, HostWrite::Elements::kKept));
}

double number_in(const ConstTensorView& scalar) {
  return visit_dtype(scalar.dtype(), [&]<class T>(TypeTag<T>) {
    return static_cast<double>(*reinterpret_cast<const T*>(scalar.bytes()));
  });
}

// Restores the draws of all layers unless the step is kept.
class DrawsBefore {
 public:
  explicit DrawsBefore(Network& network) {
    network.visit_layers([this](LayerBase& layer) { draws_.emplace_back(&layer, layer.draws()); });
  }
  ~DrawsBefore() {
    if (kept_) return;
    for (const auto& [layer, draws] : draws_) layer->set_draws(draws);
  }
  DrawsBefore(const DrawsBefore&) = delete;
  DrawsBefore& operator=(const DrawsBefore&) = delete;
  void keep() noexcept { kept_ = true; }

 private:
  std::vector<std::pair<LayerBase*, std::uint64_t>> draws_;
  bool kept_ = false;
};

// Parameters that a step trains, and the constraints on them.
struct Trained {
  std::vector<Variable> parameters;
  std::vector<std::pair<Variable, Constraint>> constrained;

  explicit Trained(const Network& network) {
    for (const LayerBase::Weight& weight : network.unique_weights()) {
      if (!weight.trainable) continue;
      parameters.push_back(weight.variable);
      if (weight.constraint.is_set()) constrained.emplace_back(weight.variable, weight.constraint);
    }
  }
};

using Feeds = ShortList<const Tensor*, 16>;

Feeds feeds_of(const Example& batch) {
  Feeds feeds;
  for (const Tensor& input : batch.inputs) feeds.push_back(&input);
  for (const Tensor& target : batch.targets) feeds.push_back(&target);
  if (!batch.weights.is_empty_handle()) feeds.push_back(&batch.weights);
  return feeds;
}

}  // namespace

// Known while a step is traced.
struct StepPlan::Traced {
  std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kTrace);
  std::vector<ValueId> feeds, fetches;
  Example batch;
  Tensor scale;  // Of kGradients.
  CallContext context;
  Forward forward;

  Traced(const BatchSpec& spec, StepKind kind) : context(kind == StepKind::kTrain || kind == StepKind::kGradients) {
    const auto add = [&](const TensorSpec& tensor) {
      const bool is_placed = feeds.size() < spec.devices.size();
      Device& device = is_placed ? *spec.devices[feeds.size()] : *spec.device;
      Tensor symbolic = graph->add_placeholder(tensor, device, "batch");
      feeds.push_back(graph->resolve(symbolic, "step", "a batch"));
      return symbolic;
    };
    for (const TensorSpec& input : spec.inputs) batch.inputs.push_back(add(input));
    for (const TensorSpec& target : spec.targets) batch.targets.push_back(add(target));
    if (spec.weights) batch.weights = add(*spec.weights);
    if (kind == StepKind::kGradients) scale = add({Shape(std::vector<std::int64_t>()), f32});
  }
  void fetch(const Tensor& tensor) { fetches.push_back(graph->resolve(tensor, "step", "a result")); }
};

StepPlan::StepPlan(Network& network, StepKind kind) noexcept : network_(network), kind_(kind) {}
StepPlan::~StepPlan() = default;

StepPlan::StepPlan(Network& network, StepKind kind, const BatchSpec& batch, const Optimizer* optimizer)
    : StepPlan(network, kind) {
  std::shared_ptr<GraphState> graph;
  Rewritten rewritten;
  const Passes passes;
  {
    Traced traced(batch, kind);
    graph = traced.graph;
    const Tracing tracing(*graph);
    if (kind == StepKind::kPredict) {
      for (const Tensor& output : network.call_all(traced.batch.inputs, traced.context)) traced.fetch(output);
      traced.context.commit();
    } else if (kind == StepKind::kTest) {
      traced.forward = run_forward(network, traced.batch, traced.context);
      fetch_measures(traced);
      traced.context.commit();
    } else if (kind == StepKind::kGradients) {
      trace_gradients(traced);
    } else {
      trace_training(optimizer ? *optimizer : *network.training.optimizer, traced);
    }
    const TraceWith nobody(nullptr);
    std::vector<Feed> feeds;
    for (const ValueId& feed : traced.feeds) feeds.push_back({feed, graph->output(feed).spec});
    rewritten = rewrite(*graph, feeds, traced.fetches, true, passes);
  }
  examples_ = static_cast<std::size_t>(batch.inputs.at(0).shape[0]);
  program_ =
      std::make_unique<Program>(std::move(rewritten), passes, kind == StepKind::kTrain || kind == StepKind::kTest);
  for (const Program::VariableUse& use : program_->variables())
    variables_.push_back(*program_->graph().variables()[use.number].eager);
}

void StepPlan::trace_training(const Optimizer& optimizer, Traced& traced) {
  Trained trained(network_);
  std::vector<Tensor> gradients;
  {
    GradientTape tape;
    traced.forward = run_forward(network_, traced.batch, traced.context);
    gradients = tape.gradient(traced.forward.loss, trained.parameters);
  }
  fetch_measures(traced);
  clip_gradients(gradients, network_.training.clipping);
  optimizer.apply(trained.parameters, gradients);
  constrained_ = std::move(trained.constrained);
  traced.context.commit();
}

// What is added up over slices: gradients, and layers' assignments. States of recurrent layers belong to examples, so
// they cannot be added up.
std::vector<Tensor> StepPlan::find_changed(const std::vector<Variable>& parameters,
                                           const std::vector<Tensor>& gradients, const CallContext& context,
                                           const Tensor& scale) {
  changed_.clear();
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i].is_empty_handle()) continue;
    changed_.push_back(parameters[i]);
    values.push_back(gradients[i]);
  }
  num_parameters_ = changed_.size();
  if (num_parameters_ == 0)
    throw FailedPrecondition("fit: no trainable variable has a gradient; does the loss depend on one?");
  std::set<std::uint64_t> weights;
  for (const LayerBase::Weight& weight : network_.unique_weights()) weights.insert(weight.variable.id());
  for (const auto& [variable, value] : context.later()) {
    if (weights.count(variable.id()) == 0 || !is_floating(variable.dtype()))
      throw InvalidArgument(
          fmt::format("fit: variable \"{}\" keeps something from batch to batch, which slices of a batch cannot share; "
                      "make its layer "
                      "not stateful, or train in one process without a job",
                      variable.name()));
    changed_.push_back(variable);
    values.push_back(value * (scale.dtype() == value.dtype() ? scale : scale.cast(value.dtype())));
  }
  return values;
}

namespace {

Tensor scaled(const Tensor& loss, const Tensor& scale) {
  const Tensor here = beside(scale, loss);
  return loss * (loss.dtype() == here.dtype() ? here : here.cast(loss.dtype()));
}

}  // namespace

void StepPlan::trace_gradients(Traced& traced) {
  Trained trained(network_);
  std::vector<Tensor> gradients;
  {
    GradientTape tape;
    traced.forward = run_forward(network_, traced.batch, traced.context);
    gradients = tape.gradient(scaled(traced.forward.loss, traced.scale), trained.parameters);
  }
  fetch_measures(traced);
  for (const Tensor& value : find_changed(trained.parameters, gradients, traced.context, traced.scale))
    traced.fetch(value);
  constrained_ = std::move(trained.constrained);
}

void StepPlan::fetch_measures(Traced& traced) {
  const Forward& forward = traced.forward;
  traced.fetch(forward.loss);
  for (const Tensor& loss : forward.losses) traced.fetch(loss);
  num_losses_ = forward.losses.size();
  metrics_.resize(num_losses_);
  for (std::size_t i = 0; i < num_losses_; ++i) {
    const OnDeviceOf there(forward.outputs[i]);
    for (const Metric& metric : network_.training.metrics[i]) {
      const Metric::Parts parts = metric.parts(forward.targets[i], forward.outputs[i], forward.weights[i]);
      metrics_[i].push_back({metric, traced.fetches.size(), parts.tensors.size(), parts.count});
      for (const Tensor& part : parts.tensors) traced.fetch(part);
    }
  }
}

// Has room for all measurements: filling it in cannot fail a step that has succeeded.
StepResult StepPlan::blank_result() const {
  StepResult result;
  result.examples = examples_;
  result.losses.resize(num_losses_);
  result.metrics.resize(num_losses_);
  for (std::size_t i = 0; i < num_losses_; ++i) {
    result.metrics[i].reserve(metrics_[i].size());
    for (const Measured& measured : metrics_[i]) result.metrics[i].push_back(measured.metric.zero_sums());
  }
  return result;
}

void StepPlan::measure(std::span<const ConstTensorView> fetched, StepResult& result) const noexcept {
  result.loss = number_in(fetched[0]);
  for (std::size_t i = 0; i < num_losses_; ++i) {
    result.losses[i] = number_in(fetched[1 + i]);
    for (std::size_t m = 0; m < metrics_[i].size(); ++m) {
      const Measured& measured = metrics_[i][m];
      measured.metric.sum(fetched.subspan(measured.first, measured.count), measured.examples, result.metrics[i][m]);
    }
  }
}

// Keeps the states that recurrent layers got from the first run, or discards them. A plan that was refused before it
// ever ran is discarded with everything it holds, above all the optimizer's state.
template <class F>
auto StepPlan::run_whole(F&& f) {
  const bool first = !program_ || !has_run();
  try {
    auto result = f();
    has_run_.store(true, std::memory_order_relaxed);
    if (first) keep_new_states(network_);
    return result;
  } catch (...) {
    if (first) {
      if (program_) network_.training.plans.clear();
      forget_new_states(network_);
    }
    throw;
  }
}

StepResult StepPlan::run(const Example& batch, const Recomputing& recomputing) {
  if (kind_ == StepKind::kTrain) trace_step(static_cast<std::uint64_t>(network_.training.optimizer->step()));
  return run_whole([&] {
    if (program_) return run_program(batch, recomputing);
    return kind_ == StepKind::kTrain ? train_directly(batch) : test_directly(batch);
  });
}

std::vector<Tensor> StepPlan::predict(const std::vector<Tensor>& inputs, const Recomputing& recomputing) {
  return run_whole([&] {
    if (!program_) {
      CallContext context(false);
      std::vector<Tensor> outputs = network_.call_all(inputs, context);
      context.commit();
      return outputs;
    }
    Feeds feeds;
    for (const Tensor& input : inputs) feeds.push_back(&input);
    std::vector<Tensor> results(program_->num_fetches());
    program_->run({.feeds = feeds.span(),
                   .variables = variables_,
                   .results = results,
                   .may_recompute = recomputing.is_allowed,
                   .max_slowdown = recomputing.max_slowdown,
                   .spill = recomputing.spill});
    return results;
  });
}

StepResult StepPlan::run_program(const Example& batch, const Recomputing& recomputing) {
  StepResult result = blank_result();
  const auto read = [&](std::span<const ConstTensorView> fetched) { measure(fetched, result); };
  const ReadInside reader(read);
  const Feeds feeds = feeds_of(batch);
  program_->run({.feeds = feeds.span(),
                 .variables = variables_,
                 .read = &reader,
                 .may_recompute = recomputing.is_allowed,
                 .max_slowdown = recomputing.max_slowdown,
                 .recomputed_cost_fraction = &result.recomputed,
                 .spill = recomputing.spill,
                 .parks_variables = recomputing.parks_variables && spilling() == Eviction::kSpillVariables,
                 .spilled_bytes = &result.spilled_bytes});
  // They work in place, on values that the program has made the variables' own.
  for (const auto& [variable, constraint] : constrained_) constrain(constraint, variable);
  if (counted_at_.exchange(result.recomputed, std::memory_order_relaxed) != result.recomputed)
    network_.training.plans.recount(*this);
  return result;
}

StepResult StepPlan::train_directly(const Example& batch) {
  const TidyScope scope;
  DrawsBefore draws(network_);
  const Trained trained(network_);
  CallContext context(true);
  Forward forward;
  std::vector<Tensor> gradients;
  trace_phase("forward");
  {
    GradientTape tape;
    forward = run_forward(network_, batch, context);
    trace_phase("backward");
    gradients = tape.gradient(forward.loss, trained.parameters);
  }
  StepResult result = plimsoll::measure(network_, batch, forward);
  clip_gradients(gradients, network_.training.clipping);
  trace_phase("update");
  network_.training.optimizer->apply(trained.parameters, gradients);
  trace_phase("between steps");
  // Nothing fails below: values are shared, constraints work in place.
  context.commit();
  for (const auto& [variable, constraint] : trained.constrained) constrain(constraint, variable);
  draws.keep();
  return result;
}

namespace {

// A result that shares its bytes with something else gets its own.
void own_bytes(std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) {
    const bool shares = tensor.record()->storage.load(std::memory_order_relaxed)->references() > 1;
    if (shares || tensor.record()->offset != 0) tensor = tensor.clone();
  }
}

}  // namespace

StepResult StepPlan::gradients(const Example& slice, const Tensor& scale, std::vector<Tensor>& out,
                               const Recomputing& recomputing, const Watch* watch, const BorrowedVariables* borrowed) {
  return run_whole([&] {
    if (!program_) return gradients_directly(slice, scale, out);
    StepResult result = blank_result();
    Feeds feeds = feeds_of(slice);
    feeds.push_back(&scale);
    std::vector<Tensor> results(program_->num_fetches());
    const std::size_t first = results.size() - changed_.size();
    std::vector<std::size_t> ended;
    const auto tell = [&](std::span<const ProgramTables::FetchEnd> ends) {
      ended.clear();
      for (const ProgramTables::FetchEnd& end : ends)
        if (end.fetch >= first) ended.push_back(end.fetch - first);
      (*watch)(std::span<const Tensor>(results).subspan(first), ended);
    };
    const AfterStep after_step(tell);
    program_->run({.feeds = feeds.span(),
                   .variables = variables_,
                   .results = results,
                   .after_step = watch ? &after_step : nullptr,
                   .borrowed = borrowed,
                   .may_recompute = recomputing.is_allowed,
                   .max_slowdown = recomputing.max_slowdown,
                   .recomputed_cost_fraction = &result.recomputed,
                   .spill = recomputing.spill,
                   .spilled_bytes = &result.spilled_bytes});
    std::vector<ConstTensorView> measured;
    for (const Tensor& each : results) measured.push_back(each.view());
    measure(measured, result);
    out.assign(results.begin() + static_cast<std::ptrdiff_t>(first), results.end());
    results.clear();
    own_bytes(out);
    if (counted_at_.exchange(result.recomputed, std::memory_order_relaxed) != result.recomputed)
      network_.training.plans.recount(*this);
    return result;
  });
}

StepResult StepPlan::gradients_directly(const Example& slice, const Tensor& scale, std::vector<Tensor>& out) {
  Trained trained(network_);
  CallContext context(true);
  Forward forward;
  std::vector<Tensor> gradients;
  {
    GradientTape tape;
    forward = run_forward(network_, slice, context);
    gradients = tape.gradient(scaled(forward.loss, scale), trained.parameters);
  }
  StepResult result = plimsoll::measure(network_, slice, forward);
  out = find_changed(trained.parameters, gradients, context, scale);
  constrained_ = std::move(trained.constrained);
  gradients.clear();
  forward = {};
  own_bytes(out);
  return result;
}

StepResult StepPlan::test_directly(const Example& batch) {
  const TidyScope scope;
  CallContext context(false);
  const Forward forward = run_forward(network_, batch, context);
  StepResult result = plimsoll::measure(network_, batch, forward);
  context.commit();
  return result;
}

}  // namespace plimsoll::internal
