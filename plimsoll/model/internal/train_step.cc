#include "plimsoll/model/internal/train_step.h"

#include <fmt/format.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/trace_recorder.h"
#include "plimsoll/model/internal/forward.h"
#include "plimsoll/model/internal/planned_step.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/thread_context.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

// Puts the draws of all layers back unless the step is kept.
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

void check_targets(const Network& network, const Example& example, const char* where) {
  if (!network.training.is_compiled())
    throw FailedPrecondition(
        fmt::format("{}: model \"{}\" is not compiled; call compile first", where, network.name()));
  const std::size_t outputs = network.output_slots().size();
  if (example.targets.size() != outputs)
    throw InvalidArgument(fmt::format("{}: model \"{}\" has {} outputs, the batch {} targets; give one for each", where,
                                      network.name(), outputs, example.targets.size()));
  for (std::size_t i = 0; i < outputs; ++i)
    if (example.targets[i].is_disposed() || example.targets[i].is_empty_handle())
      refuse_disposed(example.targets[i], where, "y");
}

StepResult measure(const Network& network, const Example& example, const Forward& forward) {
  StepResult result;
  result.examples = static_cast<std::size_t>(example.x().shape()[0]);
  result.loss = forward.loss.item<double>();
  for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
    result.losses.push_back(forward.losses[i].item<double>());
    std::vector<Metric::Sums> sums;
    for (const Metric& metric : network.training.metrics[i])
      sums.push_back(metric.measure(example.targets[i], forward.outputs[i], example.weights));
    result.metrics.push_back(std::move(sums));
  }
  return result;
}

}  // namespace

void prepare(Network& network, const std::vector<Tensor>& inputs, const char* where) {
  if (inputs.size() != network.num_inputs())
    throw InvalidArgument(fmt::format("{}: model \"{}\" takes {} inputs, was given {}", where, network.name(),
                                      network.num_inputs(), inputs.size()));
  for (const Tensor& input : inputs)
    if (input.is_empty_handle() || input.is_disposed()) refuse_disposed(input, where, "x");
  if (!network.is_connected()) network.connect(inputs[0].shape(), inputs[0].dtype());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& wanted = network.call_of(network.input_slots()[i]).shapes[0];
    const Shape& given = inputs[i].shape();
    bool fits = wanted.rank() == given.rank() && given.rank() > 0;
    for (std::size_t axis = 0; fits && axis < given.rank(); ++axis)
      fits = !network.input_is_told() || wanted[axis] == kUnknownSize || wanted[axis] == given[axis];
    if (!fits)
      throw InvalidArgument(fmt::format("{}: model \"{}\" takes inputs of shape {}, was given {}", where,
                                        network.name(), wanted.to_string(), given.to_string()));
  }
}

namespace {

StepResult train_directly(Network& network, const Example& example) {
  const TidyScope scope;
  DrawsBefore draws(network);
  std::vector<Variable> parameters;
  std::vector<std::pair<Variable, Constraint>> constrained;
  for (const LayerBase::Weight& weight : network.unique_weights()) {
    if (!weight.trainable) continue;
    parameters.push_back(weight.variable);
    if (weight.constraint.is_set()) constrained.emplace_back(weight.variable, weight.constraint);
  }
  CallContext context(true);
  Forward forward;
  std::vector<Tensor> gradients;
  trace_phase("forward");
  {
    GradientTape tape;
    forward = run_forward(network, example, context);
    trace_phase("backward");
    gradients = tape.gradient(forward.loss, parameters);
  }
  StepResult result = measure(network, example, forward);
  clip_gradients(gradients, network.training.clipping);
  trace_phase("update");
  network.training.optimizer->apply(parameters, gradients);
  trace_phase("between steps");
  // From here on nothing fails: values are shared, constraints work in place.
  context.commit();
  for (const auto& [variable, constraint] : constrained) constraint.apply(variable.writable_value());
  draws.keep();
  return result;
}

StepResult test_directly(Network& network, const Example& example) {
  const TidyScope scope;
  CallContext context(false);
  const Forward forward = run_forward(network, example, context);
  StepResult result = measure(network, example, forward);
  context.commit();
  return result;
}

// The plan for the example, and the tensors that it is fed with.
struct Fed {
  CallSignature signature;
  std::shared_ptr<PlannedStep> step;

  Fed(Network& network, StepKind kind, const Example& example) {
    signature.add(kind);
    signature.add(reinterpret_cast<std::uintptr_t>(&current_device()));
    for (const Tensor& input : example.inputs) signature.add(input);
    for (const Tensor& target : example.targets) signature.add(target);
    if (!example.weights.is_empty_handle()) signature.add(example.weights);
    step = network.training.planned.find(network, kind, example, signature);
  }
  // What a plan holds that never ran, the optimizer's state above all, goes when it is refused.
  template <class F>
  auto run(Network& network, F&& f) {
    try {
      return f(*step, signature.tensors());
    } catch (...) {
      if (!step->has_run()) network.training.planned.clear();
      throw;
    }
  }
};

}  // namespace

StepResult train_step(Network& network, const Example& example) {
  prepare(network, example.inputs, "train_on_batch");
  check_targets(network, example, "train_on_batch");
  trace_step(static_cast<std::uint64_t>(network.training.optimizer->step()));
  Fed fed(network, StepKind::kTrain, example);
  if (!fed.step) return train_directly(network, example);
  return fed.run(network, [](PlannedStep& step, auto feeds) { return step.run(feeds); });
}

StepResult test_step(Network& network, const Example& example) {
  prepare(network, example.inputs, "test_on_batch");
  check_targets(network, example, "test_on_batch");
  Fed fed(network, StepKind::kTest, example);
  if (!fed.step) return test_directly(network, example);
  return fed.run(network, [](PlannedStep& step, auto feeds) { return step.run(feeds); });
}

std::shared_ptr<PlannedStep> plan_step(Network& network, StepKind kind, const Example& example) {
  const char* const where = kind == StepKind::kTrain ? "train_on_batch" : "test_on_batch";
  prepare(network, example.inputs, where);
  check_targets(network, example, where);
  return Fed(network, kind, example).step;
}

std::vector<Tensor> predict_step(Network& network, const std::vector<Tensor>& inputs) {
  const Example example{.inputs = inputs, .targets = {}};  // What is fed lies here.
  Fed fed(network, StepKind::kPredict, example);
  if (fed.step) return fed.run(network, [](PlannedStep& step, auto feeds) { return step.predict(feeds); });
  CallContext context(false);
  std::vector<Tensor> outputs = network.call_all(inputs, context);
  context.commit();
  return outputs;
}

StepMeans::StepMeans(Network& network) : network_(network), losses_(network.training.losses.size()) {
  for (const auto& metrics : network.training.metrics)
    for (const Metric& metric : metrics) metric.reset();
}

void StepMeans::add(const StepResult& step) {
  const auto count = static_cast<double>(step.examples);
  examples_ += count;
  loss_ += step.loss * count;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    losses_[i] += step.losses[i] * count;
    for (std::size_t m = 0; m < step.metrics[i].size(); ++m) network_.training.metrics[i][m].add(step.metrics[i][m]);
  }
}

Logs StepMeans::logs(const char* prefix) const {
  const double count = examples_ > 0 ? examples_ : 1;
  Logs logs;
  const auto set = [&](const std::string& name, double value) { logs.set(prefix + name, static_cast<float>(value)); };
  set("loss", loss_ / count);
  if (losses_.size() > 1) {
    const std::vector<std::string> names = network_.output_names();
    for (std::size_t i = 0; i < losses_.size(); ++i) set(names[i] + "_loss", losses_[i] / count);
  }
  for (const auto& metrics : network_.training.metrics)
    for (const Metric& metric : metrics) set(metric.name(), metric.result());
  return logs;
}

}  // namespace plimsoll
