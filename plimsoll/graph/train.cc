#include "plimsoll/graph/train.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/gradient_nodes.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/optimizer_update.h"
#include "plimsoll/tensor/context_guards.h"

namespace plimsoll::train {
namespace {

// OptimizerUpdate whose last operand is the number of steps done.
class CountedUpdate final : public OpOf<CountedUpdate> {
 public:
  explicit CountedUpdate(const OptimizerOptions& options) noexcept : options_(options) {}
  const char* name() const noexcept override { return OptimizerUpdate(options_, 1).name(); }
  void infer(const Specs& in, SpecList& out) const override {
    std::vector<SpecRef> refs;
    for (std::size_t i = 0; i + 1 < in.size(); ++i) refs.push_back({&in.shape(i), in.dtype(i)});
    OptimizerUpdate(options_, 1).infer(Specs(refs), out);
  }
  void run(const OpRun& run) const noexcept override {
    const std::int64_t done = *reinterpret_cast<const std::int64_t*>(run.in.back().bytes());
    OptimizerUpdate(options_, done + 1).run({run.in.first(run.in.size() - 1), run.out, run.scratch});
  }
  OpFacts facts() const noexcept override { return {.is_pure = false, .has_gradient = false}; }
  std::string input_name(std::size_t input) const override {
    if (input == 2 + OptimizerUpdate::num_slots(options_)) return "the number of steps";
    return OptimizerUpdate(options_, 1).input_name(input);
  }

 private:
  OptimizerOptions options_;
};

struct Change {
  Tensor gradient;
  std::uint32_t variable;  // In the graph.
};

// Every variable is updated where it is: its slots are made there, its gradient and the step count are moved there.
Tensor add_updates(const std::shared_ptr<GraphState>& graph, const OptimizerOptions& options, const std::string& name,
                   const std::vector<Change>& changes) {
  const TraceWith here(graph.get());
  const NameScopeGuard unnamed("");  // Names start with that of the variable, which includes its scope.
  const PlacementScope nowhere;
  const Variable steps(constant(std::int64_t{0}), {.name = name + "/step", .trainable = false});
  std::vector<Tensor> updates;
  for (const Change& change : changes) {
    const NodeVariable variable = graph->variables()[change.variable];
    const DeviceScope there(variable.device->name());
    std::vector<Tensor> operands = {graph->read(change.variable), change.gradient.to(variable.device->name())};
    std::vector<std::uint32_t> changed = {change.variable};
    for (std::size_t i = 0; i < OptimizerUpdate::num_slots(options); ++i) {
      const OptimizerUpdate::SlotSpec slot = OptimizerUpdate::slot_spec(options, i);
      const std::string slot_name = fmt::format("{}/{}/{}", variable.name, name, slot.name);
      const Variable kept(full(variable.spec.shape, slot.initial, variable.spec.dtype),
                          {.name = slot_name, .trainable = false});
      operands.push_back(kept.value());
      changed.push_back(*kept.graph_index());
    }
    operands.push_back(steps.value().to(variable.device->name()));
    updates.push_back(
        graph->add_update(CountedUpdate(options), operands, changed, fmt::format("{}/{}/update", variable.name, name)));
  }
  updates.push_back(steps.assign_add(constant(std::int64_t{1})));
  return graph->add_group(updates, name);
}

std::shared_ptr<GraphState> graph_of(const Tensor& loss) {
  if (!is_symbolic(loss))
    throw InvalidArgument(
        "minimize: the loss is not symbolic; build it in a GraphScope, or use a tape and an optimizer");
  return std::static_pointer_cast<GraphState>(tracer_of(loss));
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, std::string name) : options_(options), name_(std::move(name)) {
  const plimsoll::Optimizer checked(options);
}

Tensor Optimizer::minimize(const Tensor& loss) const {
  const std::shared_ptr<GraphState> graph = graph_of(loss);
  GraphState::Undo undo(*graph);
  std::vector<std::uint32_t> numbers;
  std::vector<Tensor> values;
  for (std::uint32_t i = 0; i < graph->variables().size(); ++i)
    if (graph->variables()[i].trainable) {
      numbers.push_back(i);
      values.push_back(graph->read(i));
    }
  const std::vector<Tensor> found = gradients(loss, values);
  std::vector<Change> changes;
  std::string unconnected;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].is_empty_handle())
      changes.push_back({found[i], numbers[i]});
    else
      unconnected += fmt::format("{}\"{}\"", unconnected.empty() ? "" : ", ", graph->variables()[numbers[i]].name);
  }
  if (changes.empty())
    throw InvalidArgument(
        "minimize: the loss depends on no trainable variable; is something rounded or compared on the way?");
  Tensor made = add_updates(graph, options_, name_, changes);
  undo.keep();
  if (!unconnected.empty())
    log_message(LogLevel::warning,
                fmt::format("minimize: the loss does not depend on {}, which will not change; use it in the loss, make "
                            "it with trainable = false, or give minimize the variables to change",
                            unconnected));
  return made;
}

Tensor Optimizer::minimize(const Tensor& loss, const std::vector<Variable>& variables) const {
  GraphState::Undo undo(*graph_of(loss));
  const std::vector<Tensor> found = gradients(loss, variables);
  std::vector<std::pair<Tensor, Variable>> pairs;
  for (std::size_t i = 0; i < variables.size(); ++i) pairs.emplace_back(found[i], variables[i]);
  Tensor made = apply_gradients(pairs);
  undo.keep();
  return made;
}

Tensor Optimizer::apply_gradients(const std::vector<std::pair<Tensor, Variable>>& gradients_and_variables) const {
  std::shared_ptr<GraphState> graph;
  for (const auto& [gradient, variable] : gradients_and_variables)
    if (!graph && !gradient.is_empty_handle()) graph = graph_of(gradient);
  if (!graph) throw InvalidArgument("apply_gradients: no variable has a gradient");
  GraphState::Undo undo(*graph);
  std::vector<Change> changes;
  for (const auto& [gradient, variable] : gradients_and_variables) {
    if (gradient.is_empty_handle()) continue;
    changes.push_back({gradient, variable.graph_index() ? *variable.graph_index() : graph->variable_number(variable)});
  }
  Tensor made = add_updates(graph, options_, name_, changes);
  undo.keep();
  return made;
}

GradientDescentOptimizer::GradientDescentOptimizer(double learning_rate)
    : Optimizer(SGDOptions{.learning_rate = learning_rate}, "GradientDescent") {}
MomentumOptimizer::MomentumOptimizer(double learning_rate, double momentum, bool use_nesterov)
    : Optimizer(SGDOptions{.learning_rate = learning_rate, .momentum = momentum, .nesterov = use_nesterov},
                "Momentum") {}
AdagradOptimizer::AdagradOptimizer(double learning_rate, double initial_accumulator_value)
    : Optimizer(AdagradOptions{.learning_rate = learning_rate, .initial_accumulator_value = initial_accumulator_value},
                "Adagrad") {}
RMSPropOptimizer::RMSPropOptimizer(double learning_rate, double decay, double momentum, double epsilon)
    : Optimizer(RMSpropOptions{.learning_rate = learning_rate, .rho = decay, .momentum = momentum, .epsilon = epsilon},
                "RMSProp") {}
AdamOptimizer::AdamOptimizer(double learning_rate, double beta_1, double beta_2, double epsilon)
    : Optimizer(AdamOptions{.learning_rate = learning_rate, .beta_1 = beta_1, .beta_2 = beta_2, .epsilon = epsilon},
                "Adam") {}

}  // namespace plimsoll::train
