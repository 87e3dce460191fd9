#include "plimsoll/model/training/planned_step.h"

#include <fmt/format.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/model/data/rows.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/training/forward.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/on_device_of.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {
namespace {

constexpr std::size_t kCacheBytes = std::size_t{32} << 20;

// While it lives, tensors belong to no tidy scope and are of the category of activations.
class Tracing {
 public:
  explicit Tracing(GraphState& graph) : before_(ThreadContext::current()), trace_(&graph) {
    ThreadContext::current().scope = nullptr;
    ThreadContext::current().category = Category::kActivations;
  }
  ~Tracing() {
    ThreadContext::current().scope = before_.scope;
    ThreadContext::current().category = before_.category;
  }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  const ThreadContext before_;
  const TraceWith trace_;
};

double number_in(const ConstTensorView& scalar) {
  return visit_dtype(scalar.dtype(), [&]<class T>(TypeTag<T>) {
    return static_cast<double>(*reinterpret_cast<const T*>(scalar.bytes()));
  });
}

TensorSpec spec_of(const Tensor& tensor) { return {tensor.shape(), tensor.dtype()}; }

}  // namespace

BatchSpec BatchSpec::of(const Example& example) {
  BatchSpec spec;
  for (const Tensor& input : example.inputs) spec.inputs.push_back(spec_of(input));
  for (const Tensor& target : example.targets) spec.targets.push_back(spec_of(target));
  if (!example.weights.is_empty_handle()) spec.weights = spec_of(example.weights);
  spec.device = &device_of(example.x());
  visit_tensors(example, [&](const Tensor& tensor) {
    if (!tensor.is_empty_handle()) spec.devices.push_back(&device_of(tensor));
  });
  return spec;
}

std::vector<std::size_t> BatchSpec::tensor_bytes() const {
  std::vector<std::size_t> bytes;
  for (const auto* specs : {&inputs, &targets})
    for (const TensorSpec& spec : *specs) bytes.push_back(spec.bytes());
  if (weights) bytes.push_back(weights->bytes());
  return bytes;
}

std::size_t BatchSpec::block_bytes() const { return whole_blocks_of(tensor_bytes()); }

// What is known while a step is traced.
struct PlannedStep::Traced {
  std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kTrace);
  std::vector<ValueId> feeds, fetches;
  Example example;
  CallContext context;
  Forward forward;

  Traced(const BatchSpec& batch, bool training) : context(training) {
    const auto add = [&](const TensorSpec& spec) {
      Device& device = batch.devices.empty() ? *batch.device : *batch.devices.at(feeds.size());
      Tensor symbolic = graph->add_placeholder(spec, device, "batch");
      feeds.push_back(graph->resolve(symbolic, "step", "a batch"));
      return symbolic;
    };
    for (const TensorSpec& input : batch.inputs) example.inputs.push_back(add(input));
    for (const TensorSpec& target : batch.targets) example.targets.push_back(add(target));
    if (batch.weights) example.weights = add(*batch.weights);
  }
  void fetch(const Tensor& tensor) { fetches.push_back(graph->resolve(tensor, "step", "a result")); }
};

PlannedStep::PlannedStep(Network& network, StepKind kind, const BatchSpec& batch, const Optimizer* optimizer) {
  std::shared_ptr<GraphState> graph;
  Rewritten rewritten;
  const Passes passes;
  {
    Traced traced(batch, kind == StepKind::kTrain);
    graph = traced.graph;
    const Tracing tracing(*graph);
    if (kind == StepKind::kPredict) {
      for (const Tensor& output : network.call_all(traced.example.inputs, traced.context)) traced.fetch(output);
      traced.context.commit();
    } else if (kind == StepKind::kTest) {
      traced.forward = run_forward(network, traced.example, traced.context);
      fetch_measures(network, traced);
      traced.context.commit();
    } else {
      trace_training(network, optimizer ? *optimizer : *network.training.optimizer, traced);
    }
    const TraceWith nobody(nullptr);
    std::vector<Feed> feeds;
    for (const ValueId& feed : traced.feeds) feeds.push_back({feed, graph->output(feed).spec});
    rewritten = rewrite(*graph, feeds, traced.fetches, true, passes);
  }
  examples_ = static_cast<std::size_t>(batch.inputs.at(0).shape[0]);
  program_ = std::make_unique<Program>(std::move(rewritten), passes, kind != StepKind::kPredict);
  for (const Program::VariableUse& use : program_->variables())
    variables_.push_back(*program_->graph().variables()[use.number].eager);
}

void PlannedStep::trace_training(Network& network, const Optimizer& optimizer, Traced& traced) {
  std::vector<Variable> parameters;
  for (const LayerBase::Weight& weight : network.unique_weights()) {
    if (!weight.trainable) continue;
    parameters.push_back(weight.variable);
    if (weight.constraint.is_set()) constrained_.emplace_back(weight.variable, weight.constraint);
  }
  std::vector<Tensor> gradients;
  {
    GradientTape tape;
    traced.forward = run_forward(network, traced.example, traced.context);
    gradients = tape.gradient(traced.forward.loss, parameters);
  }
  fetch_measures(network, traced);
  clip_gradients(gradients, network.training.clipping);
  optimizer.apply(parameters, gradients);
  traced.context.commit();
}

void PlannedStep::fetch_measures(Network& network, Traced& traced) {
  const Forward& forward = traced.forward;
  traced.fetch(forward.loss);
  for (const Tensor& loss : forward.losses) traced.fetch(loss);
  num_losses_ = forward.losses.size();
  metrics_.resize(num_losses_);
  for (std::size_t i = 0; i < num_losses_; ++i) {
    const OnDeviceOf there(forward.outputs[i]);
    for (const Metric& metric : network.training.metrics[i]) {
      const Metric::Parts parts = metric.parts(forward.targets[i], forward.outputs[i], forward.weights[i]);
      metrics_[i].push_back({metric, traced.fetches.size(), parts.tensors.size(), parts.count});
      for (const Tensor& part : parts.tensors) traced.fetch(part);
    }
  }
}

// With room for all that is measured: filling it in cannot fail a step that has happened.
StepResult PlannedStep::blank_result() const {
  StepResult result;
  result.examples = examples_;
  result.losses.resize(num_losses_);
  result.metrics.resize(num_losses_);
  for (std::size_t i = 0; i < num_losses_; ++i) {
    result.metrics[i].reserve(metrics_[i].size());
    for (const Measured& measured : metrics_[i]) result.metrics[i].push_back(measured.metric.no_sums());
  }
  return result;
}

void PlannedStep::measure(std::span<const ConstTensorView> fetched, StepResult& result) const noexcept {
  result.loss = number_in(fetched[0]);
  for (std::size_t i = 0; i < num_losses_; ++i) {
    result.losses[i] = number_in(fetched[1 + i]);
    for (std::size_t m = 0; m < metrics_[i].size(); ++m) {
      const Measured& measured = metrics_[i][m];
      measured.metric.sum(fetched.subspan(measured.first, measured.count), measured.examples, result.metrics[i][m]);
    }
  }
}

StepResult PlannedStep::run(std::span<const Tensor* const> feeds) {
  StepResult result = blank_result();
  const auto read = [&](std::span<const ConstTensorView> fetched) { measure(fetched, result); };
  const ReadInside reader(read);
  program_->run({.feeds = feeds, .variables = variables_, .read = &reader});
  // They work in place, on values that the program has made the variables' own.
  for (const auto& [variable, constraint] : constrained_) constraint.apply(variable.writable_value());
  has_run_.store(true, std::memory_order_relaxed);
  return result;
}

std::vector<Tensor> PlannedStep::predict(std::span<const Tensor* const> feeds) {
  std::vector<Tensor> results(program_->num_fetches());
  program_->run({.feeds = feeds, .variables = variables_, .results = results});
  has_run_.store(true, std::memory_order_relaxed);
  return results;
}

struct PlannedSteps::Entry {
  std::unique_ptr<PlannedStep> step;  // nullptr: run such batches directly.
};

PlannedSteps::PlannedSteps() : steps_(kCacheBytes) {}
PlannedSteps::~PlannedSteps() = default;
void PlannedSteps::clear() { steps_.clear(); }

// Layers that were changed since are traced anew.
void PlannedSteps::forget_when_changed(Network& network) {
  const std::lock_guard lock(mutex_);
  std::uint64_t changes = network.changes();
  for (const LayerBase* layer : layers_) changes += layer->changes();
  if (changes == seen_changes_ && !layers_.empty()) return;
  steps_.clear();
  layers_.clear();
  seen_changes_ = network.changes();
  network.visit_layers([this](LayerBase& layer) {
    layers_.push_back(&layer);
    seen_changes_ += layer.changes();
  });
}

std::shared_ptr<PlannedStep> PlannedSteps::find(Network& network, StepKind kind, const Example& example,
                                                const CallSignature& signature) {
  if (network.training.run_eagerly || signature.has_symbolic() || ThreadContext::current().tracer) return nullptr;
  forget_when_changed(network);
  std::shared_ptr<Entry> entry = steps_.find(signature.words());
  if (!entry) {
    entry = make(network, kind, example);
    if (!entry) return nullptr;
    // Building may have changed layers: states, weights of inner ones.
    forget_when_changed(network);
    const std::size_t bytes = entry->step ? entry->step->program().bytes() : sizeof(Entry);
    entry = steps_.insert(signature.words(), std::move(entry), bytes);
  }
  PlannedStep* const step = entry->step.get();
  return step ? std::shared_ptr<PlannedStep>(std::move(entry), step) : nullptr;
}

std::shared_ptr<PlannedSteps::Entry> PlannedSteps::make(Network& network, StepKind kind, const Example& example) {
  auto entry = std::make_shared<Entry>();
  try {
    entry->step = std::make_unique<PlannedStep>(network, kind, BatchSpec::of(example));
  } catch (const OutOfMemory&) {
    throw;
  } catch (const InvalidArgument&) {  // Run directly, it says the same.
    return nullptr;
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(told_, true))
      log_message(LogLevel::info, fmt::format("model \"{}\": its steps are run directly, without a plan: {}",
                                              network.name(), error.what()));
  }
  return entry;
}

}  // namespace plimsoll
