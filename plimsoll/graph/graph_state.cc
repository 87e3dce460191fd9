#include "plimsoll/graph/graph_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/scope_namer.h"
#include "plimsoll/tensor/tensor_thread.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kBlock = 16384;  // Of ops.

std::uint64_t next_graph() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1);
}

std::uint64_t new_value_id() {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const EnterThread inside(thread);
  return counts.next_id();
}

std::uint64_t constant_key(const Storage& storage, std::size_t offset) {
  return reinterpret_cast<std::uintptr_t>(&storage) * 31 + offset;
}

std::uint64_t number_of(ValueId value) { return std::uint64_t{value.node} << 32 | value.output; }

}  // namespace

std::shared_ptr<GraphState> GraphState::make(Role role, std::shared_ptr<GraphState> outer) {
  static const bool named = [] {
    set_scope_namer([](Tracer& tracer, const std::string& full_name) {
      return static_cast<GraphState&>(tracer).scope_name(full_name);
    });
    return true;
  }();
  static_cast<void>(named);
  return std::shared_ptr<GraphState>(new GraphState(role, std::move(outer)));
}

GraphState::GraphState(Role role, std::shared_ptr<GraphState> outer)
    : role_(role), outer_(std::move(outer)), id_(next_graph()) {
  enrol();
}

GraphState::~GraphState() {
  retire();
  for (const Node& node : nodes_)
    if (node.op) node.op->~Op();
}

std::string GraphState::describe() const {
  constexpr const char* kRoles[] = {"graph", "function trace", "branch or loop body", "plan"};
  return fmt::format("{} {}", kRoles[static_cast<std::size_t>(role_)], id_);
}

void GraphState::visit_held(Visit f) const {
  for (const StorageRef& constant : constants_) f(*constant, "constant");
}

void GraphState::require_open(const char* where) const {
  if (finalized_)
    throw FailedPrecondition(
        fmt::format("{}: the graph is finalized, no node can be added; build everything before finalize(), or use a "
                    "graph of its own",
                    where));
}

void GraphState::finalize() {
  const auto locked = lock();
  finalized_ = true;
}
bool GraphState::is_finalized() const {
  const auto locked = lock();
  return finalized_;
}
std::size_t GraphState::size() const {
  const auto locked = lock();
  return nodes_.size();
}

// TensorFlow's rule: the first keeps its name, later ones are numbered; names are compared without case.
std::string GraphState::unique_name(std::string_view scope, std::string_view base_name) {
  std::string name = scope.empty() ? std::string(base_name) : fmt::format("{}/{}", scope, base_name);
  const auto key_of = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  const std::string key = key_of(name);
  const auto first = names_.find(key);
  if (first == names_.end()) {
    set_name_count(key, 1);
    return name;
  }
  for (std::uint32_t number = first->second;; ++number) {
    std::string numbered = fmt::format("{}_{}", name, number);
    const std::string numbered_key = key_of(numbered);
    if (names_.count(numbered_key) > 0) continue;
    set_name_count(key, number + 1);
    set_name_count(numbered_key, 1);
    return numbered;
  }
}

std::string GraphState::scope_name(const std::string& full_name) {
  const auto locked = lock();
  return role_ == Role::kGraph ? unique_name("", full_name) : full_name;
}

void GraphState::set_name_count(const std::string& key, std::uint32_t count) {
  std::uint32_t& now = names_[key];
  if (undo_depth_ > 0) changes_.push_back({.name = key, .number = now, .read = {}});
  now = count;
}

void GraphState::set_last_read(std::uint32_t variable, ValueId read) {
  if (undo_depth_ > 0) changes_.push_back({.name = {}, .number = variable, .read = variables_[variable].last_read});
  variables_[variable].last_read = read;
}

GraphState::Undo::Undo(GraphState& graph)
    : graph_(graph),
      locked_(graph.lock()),
      nodes_(graph.nodes_.size()),
      variables_(graph.variables_.size()),
      captures_(graph.captures_.size()),
      constants_(graph.constants_.size()),
      seeds_(graph.seeds_ ? graph.seeds_->size() : 0),
      changes_(graph.changes_.size()),
      has_effects_(graph.has_effects_) {
  ++graph.undo_depth_;
}

GraphState::Undo::~Undo() {
  GraphState& graph = graph_;
  if (!kept_) {
    for (; graph.changes_.size() > changes_; graph.changes_.pop_back()) {
      const Change& change = graph.changes_.back();
      if (change.name.empty())
        graph.variables_[change.number].last_read = change.read;
      else if (change.number == 0)
        graph.names_.erase(change.name);
      else
        graph.names_[change.name] = change.number;
    }
    for (; graph.nodes_.size() > nodes_; graph.nodes_.pop_back()) graph.forget_node(graph.nodes_.back());
    for (; graph.captures_.size() > captures_; graph.captures_.pop_back()) {
      const SymbolicValue& outside = symbolic_value(graph.captures_.back().outside);
      graph.captured_values_.erase(number_of({outside.node, outside.output}));
    }
    for (; graph.variables_.size() > variables_; graph.variables_.pop_back())
      if (graph.variables_.back().eager) graph.variable_by_id_.erase(graph.variables_.back().id);
    for (; graph.constants_.size() > constants_; graph.constants_.pop_back()) {
      StorageRef dropped;  // Ends outside the gate.
      const EnterThread inside(ThreadMemory::current());
      dropped = std::move(graph.constants_.back());
    }
    if (graph.seeds_) graph.seeds_->resize(seeds_);
    graph.has_effects_ = has_effects_;
  }
  if (--graph.undo_depth_ == 0) graph.changes_.clear();
}

// The size of the node and what it keeps on the heap; the op's object is in the graph's blocks.
std::size_t GraphState::bytes_of(const Node& node) noexcept {
  return sizeof(Node) + node.updates.capacity() * sizeof(node.updates[0]) +
         node.inputs.capacity() * sizeof(node.inputs[0]) + node.controls.capacity() * sizeof(node.controls[0]) +
         node.outputs.capacity() * sizeof(node.outputs[0]) + node.name.capacity() +
         (node.op ? node.op->object_bytes() : 0);
}

void GraphState::forget_node(const Node& node) noexcept {
  counted_.subtract(bytes_of(node));
  if (node.op) node.op->~Op();
  if (node.kind != NodeKind::kConstant) return;
  const auto found = constants_by_bytes_.find(constant_key(*node.constant, node.offset));
  if (found != constants_by_bytes_.end() && found->second.node + 1 == nodes_.size()) constants_by_bytes_.erase(found);
}

void GraphState::put_on(Device& device) noexcept {
  for (Node& node : nodes_) node.device = &device;
}

const Op* GraphState::keep(const Op& op) {
  constexpr std::size_t kAlign = alignof(std::max_align_t);
  const std::size_t bytes = round_up(op.object_bytes(), kAlign);
  if (blocks_.empty() || blocks_.back().size - blocks_.back().used < bytes) {
    const std::size_t size = std::max(kBlock, bytes);
    blocks_.push_back({std::make_unique<std::byte[]>(size), size, 0});
  }
  Block& block = blocks_.back();
  const Op* const kept = op.copy_to(block.bytes.get() + block.used);
  block.used += bytes;
  return kept;
}

// All or nothing: the op, if any, was stored before.
std::uint32_t GraphState::push(Node node, std::string_view base_name) {
  return push(std::move(node), base_name, ThreadContext::current().name_scope);
}

std::uint32_t GraphState::push(Node node, std::string_view base_name, std::string_view scope) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  Undo undo(*this);
  if (role_ == Role::kGraph) node.name = unique_name(scope, base_name);
  note_placement(node);
  for (NodeOutput& output : node.outputs)
    if (output.id == 0) output.id = new_value_id();
  if (!waiting_for.empty()) node.controls.insert(node.controls.end(), waiting_for.begin(), waiting_for.end());
  node.category = ThreadContext::current().category;
  node.scope = ThreadContext::current().name_scope;
  node.site = ThreadContext::current().site;
  has_effects_ |= node.kind == NodeKind::kAssign || node.kind == NodeKind::kUpdate;
  nodes_.push_back(std::move(node));
  undo.keep();
  counted_.add(bytes_of(nodes_.back()));
  return index;
}

Tensor GraphState::tensor(ValueId value) {
  const auto locked = lock();
  const Node& node = nodes_[value.node];
  const NodeOutput& output = node.outputs[value.output];
  const bool trainable = node.is_trainable || (node.kind == NodeKind::kRead && variables_[node.variable].trainable);
  const char* const op = node.op                               ? node.op->name()
                         : node.kind == NodeKind::kPlaceholder ? "placeholder"
                         : node.kind == NodeKind::kConstant    ? "constant"
                         : node.kind == NodeKind::kGradients   ? "gradients"
                         : node.kind == NodeKind::kGroup       ? "group"
                                                               : "variable";
  Tensor made = make_symbolic({weak_from_this(), value.node, value.output}, *device(value),
                              {.shape = output.spec.shape,
                               .dtype = output.spec.dtype,
                               .op = op,
                               .id = output.id,
                               .flags = static_cast<std::uint8_t>(trainable ? TensorRecord::kTrainable : 0)});
  if (!node.name.empty()) set_name(made, value.output == 0 ? node.name : fmt::format("{}:{}", node.name, value.output));
  return made;
}

ValueId GraphState::capture(const Tensor& tensor) {
  const SymbolicValue& value = symbolic_value(tensor);
  const std::uint64_t key = number_of({value.node, value.output});
  if (const auto found = captured_values_.find(key); found != captured_values_.end()) return found->second;
  Node node;
  node.kind = NodeKind::kPlaceholder;
  node.device = &device_of(tensor);
  node.is_trainable = tensor.record()->has(TensorRecord::kTrainable);
  node.outputs = {{{tensor.shape(), tensor.dtype()}, tensor.id()}};
  const ValueId inside{push(std::move(node), "capture"), 0};
  captures_.push_back({inside, tensor});
  captured_values_[key] = inside;
  return inside;
}

std::vector<Tensor> GraphState::detach() {
  const auto locked = lock();
  std::vector<Tensor> outside;
  for (Capture& captured : captures_) outside.push_back(std::exchange(captured.outside, Tensor()));
  outer_.reset();
  changed_.clear();
  finalized_ = true;
  return outside;
}

ValueId GraphState::constant_of(const Tensor& tensor, std::string_view name) {
  const TensorRecord& record = *tensor.record();
  Storage* const storage = record.storage.load(std::memory_order_acquire);
  const std::uint64_t key = constant_key(*storage, record.offset);
  const auto found = constants_by_bytes_.find(key);
  if (name.empty() && found != constants_by_bytes_.end()) {
    const Node& known = nodes_[found->second.node];
    if (known.constant == storage && known.offset == record.offset && known.outputs[0].id == record.id &&
        known.outputs[0].spec.dtype == record.dtype && known.outputs[0].spec.shape == record.shape())
      return found->second;
  }
  storage->resident();
  if (constants_.size() == constants_.capacity()) constants_.reserve(std::max<std::size_t>(8, 2 * constants_.size()));
  Node node;
  node.kind = NodeKind::kConstant;
  node.constant = storage;
  node.offset = record.offset;
  node.device = &storage->device();
  node.outputs = {{{record.shape(), record.dtype}, record.id}};
  const ValueId value{push(std::move(node), name.empty() ? "constant" : name), 0};
  constants_by_bytes_[key] = value;
  const EnterThread inside(ThreadMemory::current());
  constants_.push_back(StorageRef::share(storage));
  return value;
}

ValueId GraphState::resolve(const Tensor& tensor, const char* where, const std::string& argument) {
  const auto locked = lock();
  if (tensor.is_empty_handle() || tensor.is_disposed()) refuse_disposed(tensor, where, argument);
  if (!is_symbolic(tensor)) {
    if (tensor.record()->has(TensorRecord::kReference))
      if (const std::optional<Variable> variable = Variable::find(tensor.id())) {
        if (outer_) return resolve(read(*variable), where, argument);
        return read_value(variable_number(*variable));
      }
    if (role_ == Role::kBody || finalized_) require_open(where);
    return constant_of(tensor, "");
  }
  const SymbolicValue& value = symbolic_value(tensor);
  const std::shared_ptr<Tracer> owner = tracer_of(tensor);
  if (owner.get() == this) return {value.node, value.output};
  for (const GraphState* outside = outer_.get(); outside; outside = outside->outer_.get())
    if (owner.get() == outside) {
      if (outside == outer_.get()) return capture(tensor);
      return capture(outer_->tensor(outer_->resolve(tensor, where, argument)));
    }
  throw FailedPrecondition(fmt::format(
      "{}: {}{} belongs to another graph than the one being built; build both in one GraphScope, and do not keep what "
      "a function made while it was traced",
      where, argument, tensor.name().empty() ? "" : fmt::format(" \"{}\"", tensor.name())));
}

std::vector<Tensor> GraphState::add(const Op& op, std::span<const Tensor* const> inputs) {
  Undo undo(*this);
  require_open(op.name());
  std::vector<ValueId> values;
  values.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back(resolve(*inputs[i], op.name(), op.input_name(i)));
  const std::uint32_t node = append_op(op, std::move(values), nullptr);
  undo.keep();
  std::vector<Tensor> outputs;
  outputs.reserve(nodes_[node].outputs.size());
  for (std::uint32_t i = 0; i < nodes_[node].outputs.size(); ++i) outputs.push_back(tensor({node, i}));
  return outputs;
}

std::uint32_t GraphState::append_op(const Op& op, std::vector<ValueId> inputs, Device* device,
                                    std::vector<std::uint32_t> updates, std::string_view name) {
  const auto locked = lock();
  Node node;
  node.kind = updates.empty() ? NodeKind::kOp : NodeKind::kUpdate;
  node.updates = std::move(updates);
  std::vector<SpecRef> refs;
  refs.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = output(inputs[i]).spec;
    refs.push_back({&spec.shape, spec.dtype});
    Device* const there = this->device(inputs[i]);
    if (!device) device = there;
    if (device != there)
      throw InvalidArgument(fmt::format("{}: {} is on {}, {} on {}; move one with .to(\"{}\")", op.name(),
                                        op.input_name(0), device->name(), op.input_name(i), there->name(),
                                        device->name()));
  }
  SpecList specs;
  op.infer(Specs(refs), specs);
  node.outputs.resize(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) node.outputs[i].spec = specs[i];
  node.device = device ? device : &current_device();
  node.inputs = std::move(inputs);
  if (nodes_.size() == nodes_.capacity()) nodes_.reserve(std::max<std::size_t>(16, 2 * nodes_.size()));
  node.op = keep(op);
  try {
    return name.empty() ? push(std::move(node), op.name()) : push(std::move(node), name, "");
  } catch (...) {
    node.op->~Op();
    throw;
  }
}

std::uint32_t GraphState::append_move(const Op& copy, ValueId value, Device* to) {
  const auto locked = lock();
  Node node;
  node.device = to;
  node.outputs = {{output(value).spec, 0}};
  node.inputs = {value};
  if (nodes_.size() == nodes_.capacity()) nodes_.reserve(std::max<std::size_t>(16, 2 * nodes_.size()));
  node.op = keep(copy);
  try {
    return push(std::move(node), copy.name());
  } catch (...) {
    node.op->~Op();
    throw;
  }
}

Tensor GraphState::move(const Op& copy, const Tensor& value, Device& to) {
  Undo undo(*this);
  require_open(copy.name());
  const std::uint32_t made = append_move(copy, resolve(value, copy.name(), "x"), &to);
  undo.keep();
  return tensor({made, 0});
}

std::uint32_t GraphState::append(Node node) {
  const auto locked = lock();
  if (node.kind == NodeKind::kConstant) {
    if (constants_.size() == constants_.capacity()) constants_.reserve(std::max<std::size_t>(8, 2 * constants_.size()));
    const EnterThread inside(ThreadMemory::current());
    constants_.push_back(StorageRef::share(node.constant));
  }
  return push(std::move(node), "");
}

Tensor GraphState::add_constant(const Tensor& value, std::string_view name) {
  const auto locked = lock();
  require_open("constant");
  return tensor(constant_of(value, name.empty() ? "constant" : name));
}

Tensor GraphState::add_placeholder(const TensorSpec& spec, Device& device, std::string_view name) {
  const auto locked = lock();
  require_open("placeholder");
  Node node;
  node.kind = NodeKind::kPlaceholder;
  node.device = &device;
  node.outputs = {{spec, 0}};
  return tensor({push(std::move(node), name), 0});
}

Tensor GraphState::add_group(std::span<const Tensor> after, std::string_view name) {
  Undo undo(*this);
  require_open("group");
  Node node;
  node.kind = NodeKind::kGroup;
  node.device = &current_device();
  for (const Tensor& tensor : after) node.controls.push_back(resolve(tensor, "group", "a node").node);
  node.outputs = {{{Shape({0}), f32}, 0}};
  const std::uint32_t made = push(std::move(node), name);
  undo.keep();
  return tensor({made, 0});
}

}  // namespace plimsoll::internal
