#include "plimsoll/model/training/train_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/model/data/counted.h"
#include "plimsoll/model/data/rows.h"
#include "plimsoll/model/internal/require_tensors.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/model/training/forward.h"
#include "plimsoll/model/training/planned_step.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/on_device_of.h"
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

// Which of several inputs; a batch that lacks its first axis is most likely an example.
[[noreturn]] void refuse_shape(const Network& network, std::size_t i, const Shape& given, const char* where) {
  const Network::Call& input = network.call_of(network.input_slots()[i]);
  const Shape& wanted = input.shapes[0];
  const std::string which =
      network.num_inputs() == 1 ? "inputs" : fmt::format("input {} (\"{}\")", i, input.layer->name());
  throw InvalidArgument(fmt::format("{}: model \"{}\" takes {} of shape {}, was given {}{}", where, network.name(),
                                    which, wanted.to_string(), given.to_string(),
                                    given.rank() + 1 == wanted.rank()
                                        ? "; the first axis counts examples: batch the dataset, or add that axis"
                                        : ""));
}

void check_targets(const Network& network, const Example& example, const char* where) {
  if (!network.training.is_compiled())
    throw FailedPrecondition(
        fmt::format("{}: model \"{}\" is not compiled; call compile first", where, network.name()));
  const std::size_t outputs = network.output_slots().size();
  if (example.targets.size() != outputs)
    throw InvalidArgument(fmt::format("{}: model \"{}\" has {}, the batch {}; give one for each", where, network.name(),
                                      counted(outputs, "output"), counted(example.targets.size(), "target")));
  require_tensors(example.targets, where, "y");
}

StepResult measure(const Network& network, const Example& example, const Forward& forward) {
  StepResult result;
  result.examples = static_cast<std::size_t>(example.x().shape()[0]);
  result.loss = forward.loss.item<double>();
  for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
    result.losses.push_back(forward.losses[i].item<double>());
    const OnDeviceOf there(forward.outputs[i]);
    std::vector<Metric::Sums> sums;
    for (const Metric& metric : network.training.metrics[i])
      sums.push_back(metric.measure(forward.targets[i], forward.outputs[i], forward.weights[i]));
    result.metrics.push_back(std::move(sums));
  }
  return result;
}

}  // namespace

DType input_dtype_for(const Network& network, std::size_t input, DType given) {
  const bool connected = network.is_connected();
  if (input >= network.num_inputs() || (!connected && network.layers().empty())) return given;
  const std::size_t slot = connected ? network.input_slots()[input] : 0;
  const DType wanted = connected ? network.call_of(slot).layer->input_dtype() : network.layers()[0]->input_dtype();
  if (given == wanted) return given;
  if (!is_floating(wanted)) return is_floating(given) ? wanted : given;
  if (!is_integer(given)) return wanted;
  const auto reads_numbers = [&](const Network::Call& call) {
    return std::find(call.inputs.begin(), call.inputs.end(), slot) != call.inputs.end() &&
           std::string_view(call.layer->class_name()) != "Embedding";
  };
  return std::any_of(network.calls().begin(), network.calls().end(), reads_numbers) || !connected ? wanted : given;
}

void cast_inputs(const Network& network, std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_empty_handle() || inputs[i].is_disposed()) continue;  // Refused by whoever reads it.
    const DType dtype = input_dtype_for(network, i, inputs[i].dtype());
    if (dtype == inputs[i].dtype()) continue;
    const OutsideScopes outside;
    inputs[i] = inputs[i].cast(dtype);
  }
}

void prepare(Network& network, const std::vector<Tensor>& inputs, const char* where) {
  if (inputs.size() != network.num_inputs())
    throw InvalidArgument(fmt::format("{}: model \"{}\" takes {}, was given {}", where, network.name(),
                                      counted(network.num_inputs(), "input"), inputs.size()));
  require_tensors(inputs, where, "x");
  if (!network.is_connected()) network.connect(inputs[0].shape(), input_dtype_for(network, 0, inputs[0].dtype()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& wanted = network.call_of(network.input_slots()[i]).shapes[0];
    const Shape& given = inputs[i].shape();
    bool fits = wanted.rank() == given.rank() && given.rank() > 0;
    for (std::size_t axis = 0; fits && axis < given.rank(); ++axis)
      fits = !network.input_is_told() || wanted[axis] == kUnknownSize || wanted[axis] == given[axis];
    if (!fits) refuse_shape(network, i, given, where);
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
    try {
      step = network.training.planned.find(network, kind, example, signature);
    } catch (...) {
      forget_new_states(network);
      throw;
    }
  }
  // What a plan holds that never ran, the optimizer's state above all, goes when it is refused.
  template <class F>
  auto run(Network& network, F&& f) {
    const bool first = !step->has_run();
    try {
      auto result = f(*step, signature.tensors());
      if (first) keep_new_states(network);
      return result;
    } catch (...) {
      if (first) {
        network.training.planned.clear();
        forget_new_states(network);
      }
      throw;
    }
  }
};

// The example, or one with cast inputs, which `room` then holds.
const Example& with_cast_inputs(const Network& network, const Example& given, std::optional<Example>& room) {
  for (std::size_t i = 0; i < given.inputs.size(); ++i) {
    const DType dtype = given.inputs[i].dtype();
    if (input_dtype_for(network, i, dtype) == dtype) continue;
    room = given;
    cast_inputs(network, room->inputs);
    return *room;
  }
  return given;
}

// A step that is run directly.
template <class F>
auto run_directly(Network& network, F&& f) {
  try {
    auto result = f();
    keep_new_states(network);
    return result;
  } catch (...) {
    forget_new_states(network);
    throw;
  }
}

}  // namespace

StepResult train_step(Network& network, const Example& given) {
  prepare(network, given.inputs, "train_on_batch");
  std::optional<Example> cast;
  const Example& example = with_cast_inputs(network, given, cast);
  check_targets(network, example, "train_on_batch");
  trace_step(static_cast<std::uint64_t>(network.training.optimizer->step()));
  Fed fed(network, StepKind::kTrain, example);
  if (!fed.step) return run_directly(network, [&] { return train_directly(network, example); });
  return fed.run(network, [](PlannedStep& step, auto feeds) { return step.run(feeds); });
}

StepResult test_step(Network& network, const Example& given) {
  prepare(network, given.inputs, "test_on_batch");
  std::optional<Example> cast;
  const Example& example = with_cast_inputs(network, given, cast);
  check_targets(network, example, "test_on_batch");
  Fed fed(network, StepKind::kTest, example);
  if (!fed.step) return run_directly(network, [&] { return test_directly(network, example); });
  return fed.run(network, [](PlannedStep& step, auto feeds) { return step.run(feeds); });
}

std::shared_ptr<PlannedStep> plan_step(Network& network, StepKind kind, const Example& example) {
  const char* const where = kind == StepKind::kTrain ? "train_on_batch" : "test_on_batch";
  prepare(network, example.inputs, where);
  if (kind != StepKind::kPredict) check_targets(network, example, where);
  return Fed(network, kind, example).step;
}

std::vector<Tensor> predict_step(Network& network, const std::vector<Tensor>& given) {
  Example example{.inputs = given, .targets = {}};  // What is fed lies here.
  cast_inputs(network, example.inputs);
  const std::vector<Tensor>& inputs = example.inputs;
  Fed fed(network, StepKind::kPredict, example);
  if (fed.step) return fed.run(network, [](PlannedStep& step, auto feeds) { return step.predict(feeds); });
  return run_directly(network, [&] {
    CallContext context(false);
    std::vector<Tensor> outputs = network.call_all(inputs, context);
    context.commit();
    return outputs;
  });
}

StepMeans::StepMeans(Network& network, std::string_view prefix)
    : network_(network), losses_(network.training.losses.size()) {
  const auto tell = [&](const std::string& name) { names_.push_back(std::string(prefix) + name); };
  tell("loss");
  if (losses_.size() > 1)
    for (const std::string& output : network.output_names()) tell(output + "_loss");
  for (const auto& metrics : network.training.metrics) metrics_.insert(metrics_.end(), metrics.begin(), metrics.end());
  for (const Metric& metric : metrics_) tell(metric.name());
  for (const std::string& name : names_) logs_.set(name, 0);
}

void StepMeans::add(const StepResult& step) noexcept {
  if (!std::exchange(begun_, true))
    for (const Metric& metric : metrics_) metric.reset();
  const auto count = static_cast<double>(step.examples);
  examples_ += count;
  loss_ += step.loss * count;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    losses_[i] += step.losses[i] * count;
    for (std::size_t m = 0; m < step.metrics[i].size(); ++m) network_.training.metrics[i][m].add(step.metrics[i][m]);
  }
}

const Logs& StepMeans::logs() & noexcept {
  const double count = examples_ > 0 ? examples_ : 1;
  auto name = names_.begin();
  const auto set = [&](double value) { logs_.set(*name++, static_cast<float>(value)); };  // Of a name that is there.
  set(loss_ / count);
  if (losses_.size() > 1)
    for (const double loss : losses_) set(loss / count);
  for (const Metric& metric : metrics_) set(metric.result());
  return logs_;
}

Logs StepMeans::logs() && noexcept {
  logs();
  return std::move(logs_);
}

}  // namespace plimsoll
