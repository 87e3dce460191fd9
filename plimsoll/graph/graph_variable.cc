// Variables as nodes: declared in a graph, or eager and captured by reference.
#include <fmt/format.h>

#include <atomic>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

bool may_become(const Shape& value, const Shape& variable) {
  if (value.rank() != variable.rank()) return false;
  for (std::size_t axis = 0; axis < value.rank(); ++axis)
    if (value[axis] != kUnknownSize && value[axis] != variable[axis]) return false;
  return true;
}

void require_assignable(const std::string& name, const TensorSpec& variable, const TensorSpec& value) {
  if (value.dtype == variable.dtype && may_become(value.shape, variable.shape)) return;
  throw InvalidArgument(fmt::format("assign: variable \"{}\" is {} {}, the value {} {}; they must agree", name,
                                    dtype_name(variable.dtype), variable.shape.to_string(), dtype_name(value.dtype),
                                    value.shape.to_string()));
}

}  // namespace

GraphVariables::Declared GraphState::declare(const Tensor& initial, const VariableOptions& options) {
  Undo undo(*this);
  if (role_ != Role::kGraph)
    throw FailedPrecondition(fmt::format(
        "Variable: \"{}\" is made while a function is traced, and would be another one at each trace; make it before, "
        "and use it inside",
        options.name));
  require_open("Variable");
  const ValueId value = resolve(initial, "Variable", "initial");
  if (!output(value).spec.shape.is_known())
    throw InvalidArgument(fmt::format("Variable: the initial value of \"{}\" has shape {}; give every size",
                                      options.name, output(value).spec.shape.to_string()));
  Node node;
  node.kind = NodeKind::kRead;
  node.variable = static_cast<std::uint32_t>(variables_.size());
  node.device = device(value);
  node.outputs = {{output(value).spec, 0}};
  NodeVariable variable;
  variable.spec = output(value).spec;
  variable.trainable = options.trainable && is_floating(variable.spec.dtype);
  variable.initial = value;
  variable.declared_number = node.variable;
  variable.device = node.device;
  variables_.push_back(variable);
  const std::uint32_t read = push(std::move(node), options.name.empty() ? "variable" : options.name);
  NodeVariable& made = variables_.back();
  made.name = nodes_[read].name;
  made.id = nodes_[read].outputs[0].id;
  made.last_read = {read, 0};
  undo.keep();
  return {.index = static_cast<std::uint32_t>(variables_.size() - 1), .name = made.name, .handle = tensor({read, 0})};
}

std::uint32_t GraphState::add_variable(const NodeVariable& variable) {
  const auto locked = lock();
  const auto index = static_cast<std::uint32_t>(variables_.size());
  variables_.push_back(variable);
  variables_.back().last_read = {};
  return index;
}

std::uint32_t GraphState::variable_number(const Variable& eager) {
  const auto locked = lock();
  Device& device = eager.share_bytes()->device();
  const auto [found, is_new] = variable_by_id_.try_emplace(eager.id(), static_cast<std::uint32_t>(variables_.size()));
  if (is_new) {
    NodeVariable variable;
    variable.device = &device;
    variable.eager = eager;
    variable.name = eager.name();
    variable.spec = {eager.shape(), eager.dtype()};
    variable.id = eager.id();
    variable.trainable = eager.trainable();
    variables_.push_back(std::move(variable));
  }
  return found->second;
}

ValueId GraphState::read_value(std::uint32_t variable) {
  const auto locked = lock();
  if (variables_[variable].last_read.node != kNoNode) return variables_[variable].last_read;
  require_open("Variable");
  Node node;
  node.kind = NodeKind::kRead;
  node.variable = variable;
  node.device = variables_[variable].device;
  node.outputs = {{variables_[variable].spec, variables_[variable].id}};
  set_last_read(variable, {push(std::move(node), variables_[variable].name + "/read", ""), 0});
  return variables_[variable].last_read;
}

void GraphState::forget_read(std::uint32_t variable) {
  const auto locked = lock();
  set_last_read(variable, {});
}

GraphState::AnyVariable GraphState::any(const Variable& eager) {
  return {.eager = eager, .id = eager.id(), .name = eager.name(), .spec = {eager.shape(), eager.dtype()}};
}

GraphState::AnyVariable GraphState::any(std::uint32_t declared) const {
  const NodeVariable& variable = variables_[declared];
  return {.declared = declared, .id = variable.id, .name = variable.name, .spec = variable.spec};
}

GraphState* GraphState::body_being_built() const noexcept {
  auto* const innermost = static_cast<GraphState*>(ThreadContext::current().tracer);
  for (const GraphState* graph = innermost; graph; graph = graph->outer_.get())
    if (graph->outer_.get() == this) return innermost;
  return nullptr;
}

Tensor GraphState::read(std::uint32_t declared) {
  if (GraphState* const body = body_being_built()) return body->read(any(declared));
  return tensor(read_value(declared));
}

Tensor GraphState::read(const Variable& eager) { return read(any(eager)); }

Tensor GraphState::read(const AnyVariable& variable) {
  const auto locked = lock();
  for (const Changed& changed : changed_)
    if (changed.variable.id == variable.id) return changed.value;
  if (outer_) return tensor(capture(outer_->read(variable)));
  return tensor(read_value(variable.eager ? variable_number(*variable.eager) : variable.declared));
}

Tensor GraphState::assign(std::uint32_t declared, const Tensor& value, AssignKind kind) {
  GraphState* const body = body_being_built();
  return (body ? body : this)->assign(any(declared), value, kind);
}

Tensor GraphState::assign(const Variable& eager, const Tensor& value, AssignKind kind) {
  return assign(any(eager), value, kind);
}

Tensor GraphState::assign(const AnyVariable& variable, const Tensor& value, AssignKind kind) {
  const auto locked = lock();
  if (outer_) return assign_later(variable, value, kind);
  return assign_number(variable.eager ? variable_number(*variable.eager) : variable.declared, value, kind);
}

Tensor GraphState::assign_later(const AnyVariable& variable, const Tensor& value, AssignKind kind) {
  if (!is_branch_)
    throw Unsupported(fmt::format(
        "assign: variable \"{}\" is changed inside of a loop; carry the value in the loop's state, and assign it after",
        variable.name));
  const Tensor given = tensor(resolve(value, "assign", "value"));
  require_assignable(variable.name, variable.spec, {given.shape(), given.dtype()});
  Tensor after = kind == AssignKind::kSet   ? given
                 : kind == AssignKind::kAdd ? read(variable) + given
                                            : read(variable) - given;
  for (Changed& changed : changed_)
    if (changed.variable.id == variable.id) return changed.value = after;
  changed_.push_back({variable, after});
  return after;
}

Tensor GraphState::add_update(const Op& op, std::span<const Tensor> inputs, std::span<const std::uint32_t> variables,
                              std::string_view name) {
  Undo undo(*this);
  require_open(op.name());
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back(resolve(inputs[i], op.name(), op.input_name(i)));
  const std::uint32_t made =
      append_op(op, std::move(values), nullptr, std::vector<std::uint32_t>(variables.begin(), variables.end()), name);
  for (const std::uint32_t variable : variables) set_last_read(variable, {});
  undo.keep();
  return tensor({made, 0});
}

void GraphState::update(const Op& op, std::span<const Tensor> operands, std::span<const Variable> changed) {
  Undo undo(*this);
  std::vector<std::uint32_t> numbers;
  for (const Variable& variable : changed) numbers.push_back(variable_number(variable));
  add_update(op, operands, numbers, "");
  undo.keep();
}

std::size_t GraphState::add_effect(const RunEffect& effect) {
  const auto locked = lock();
  if (role_ != Role::kTrace)
    throw Unsupported(
        "optimizer: a step inside of a branch, a loop or a Graph; in functions take it outside of them, in graphs use "
        "one of train::");
  return effects_[&effect]++;
}

std::uint64_t GraphState::defer_seed(const std::shared_ptr<SeedStream>& stream, std::uint64_t base) {
  static std::atomic<std::uint64_t> next{0};
  constexpr std::uint64_t kMark = 0x73656564736C6F74;
  const auto locked = lock();
  if (!seeds_) seeds_ = std::make_shared<SeedTable>();
  DeferredSeed made{.stands_for = seed_at(kMark, next.fetch_add(1)), .stream = stream, .base = base, .number = 0};
  for (const DeferredSeed& known : *seeds_) made.number += known.stream == stream;
  seeds_->push_back(made);
  return made.stands_for;
}

Tensor GraphState::assign_number(std::uint32_t number, const Tensor& value, AssignKind kind) {
  Undo undo(*this);
  require_open("assign");
  Node node;
  node.kind = NodeKind::kAssign;
  node.assign = kind;
  node.variable = number;
  node.device = variables_[number].device;
  node.inputs = {resolve(value, "assign", "value")};
  require_assignable(variables_[number].name, variables_[number].spec, output(node.inputs[0]).spec);
  if (device(node.inputs[0]) != node.device)
    throw InvalidArgument(fmt::format("assign: variable \"{}\" is on {}, the value on {}; move it with .to(\"{}\")",
                                      variables_[number].name, node.device->name(), device(node.inputs[0])->name(),
                                      node.device->name()));
  node.outputs = {{variables_[number].spec, 0}};
  const std::uint32_t made = push(std::move(node), variables_[number].name + "/assign", "");
  set_last_read(number, {});
  undo.keep();
  return tensor({made, 0});
}

}  // namespace plimsoll::internal
