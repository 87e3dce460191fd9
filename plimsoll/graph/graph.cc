#include "plimsoll/graph/graph.h"

#include <fmt/format.h>

#include <mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/gradient_nodes.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

thread_local const GraphScope* innermost = nullptr;

struct Shared {
  std::mutex mutex;
  Graph graph;  // Guarded by mutex.
};
Shared& shared() {
  static Shared& instance = *new Shared;  // Never destroyed: destructors elsewhere may use it.
  return instance;
}

// The graph for new nodes without operands.
std::shared_ptr<GraphState> current_state() {
  if (Tracer* const tracer = ThreadContext::current().tracer)
    return std::static_pointer_cast<GraphState>(tracer->shared_from_this());
  return default_graph().state();
}

}  // namespace

Graph::Graph() : state_(GraphState::make(GraphState::Role::kGraph)) {}

std::size_t Graph::size() const { return state_->size(); }
void Graph::finalize() const { state_->finalize(); }
bool Graph::is_finalized() const { return state_->is_finalized(); }

GraphScope::GraphScope(const Graph& graph, CallSite site)
    : graph_(graph), outer_(innermost), trace_(graph.state().get()), site_before_(ThreadContext::current().site) {
  if (const std::uint32_t number = site_number(site)) ThreadContext::current().site = number;
  innermost = this;
}
GraphScope::~GraphScope() {
  ThreadContext::current().site = site_before_;
  innermost = outer_;
}

Graph default_graph() {
  if (innermost) return innermost->graph();
  const std::lock_guard lock(shared().mutex);
  return shared().graph;
}

void reset_default_graph() {
  if (innermost)
    throw FailedPrecondition(
        "reset_default_graph: a GraphScope is open, whose graph it would not reset; leave it first, or use a Graph of "
        "your own");
  Graph fresh;
  const std::lock_guard lock(shared().mutex);
  std::swap(shared().graph, fresh);
}

Tensor placeholder(DType dtype, const Shape& shape, std::string_view name) {
  if (name.empty() || name.front() == '/' || name.back() == '/')
    throw InvalidArgument(fmt::format("placeholder: \"{}\" is not a name; give one without '/' at its ends", name));
  return current_state()->add_placeholder({shape.or_scalar(), dtype}, current_device(), name);
}

Tensor group(const std::vector<Tensor>& nodes, std::string_view name) {
  for (const Tensor& node : nodes)
    if (is_symbolic(node)) return std::static_pointer_cast<GraphState>(tracer_of(node))->add_group(nodes, name);
  return current_state()->add_group(nodes, name);
}

ControlDependencies::ControlDependencies(const std::vector<Tensor>& nodes) : graph_(current_state()) {
  const auto locked = graph_->lock();
  std::vector<std::uint32_t> before;
  for (const Tensor& node : nodes) before.push_back(graph_->resolve(node, "ControlDependencies", "a node").node);
  graph_->waiting_for.insert(graph_->waiting_for.end(), before.begin(), before.end());
  added_ = before.size();
}

ControlDependencies::~ControlDependencies() {
  const auto locked = graph_->lock();
  graph_->waiting_for.resize(graph_->waiting_for.size() - added_);
}

std::vector<Tensor> gradients(const Tensor& target, const std::vector<Tensor>& sources) {
  if (target.is_empty_handle() || target.is_disposed()) refuse_disposed(target, "gradients", "the target");
  if (!is_symbolic(target))
    throw InvalidArgument("gradients: the target is not symbolic; for what has been computed use a GradientTape");
  return std::static_pointer_cast<GraphState>(tracer_of(target))->add_gradients(target, sources);
}

std::vector<Tensor> gradients(const Tensor& target, std::initializer_list<Tensor> sources) {
  return gradients(target, std::vector<Tensor>(sources));
}

std::vector<Tensor> gradients(const Tensor& target, const std::vector<Variable>& sources) {
  return gradients(target, std::vector<Tensor>(sources.begin(), sources.end()));
}

std::vector<Tensor> GraphState::add_gradients(const Tensor& target, std::span<const Tensor> sources) {
  Undo undo(*this);
  require_open("gradients");
  if (!is_floating(target.dtype()))
    throw InvalidArgument(
        fmt::format("gradients: the target is of {}; only floats have gradients", dtype_name(target.dtype())));
  Node node;
  node.kind = NodeKind::kGradients;
  node.inputs = {resolve(target, "gradients", "the target")};
  node.device = device(node.inputs[0]);
  std::vector<ValueId> values;
  for (const Tensor& source : sources) values.push_back(resolve(source, "gradients", "a source"));
  const std::vector<bool> connected = depends_on(*this, node.inputs[0], values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!connected[i]) continue;
    node.inputs.push_back(values[i]);
    node.outputs.push_back({output(values[i]).spec, 0});
  }
  std::vector<Tensor> result(sources.size());
  if (node.outputs.empty()) return result;
  const std::uint32_t made = push(std::move(node), "gradients");
  undo.keep();
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (connected[i]) result[i] = tensor({made, next++});
  return result;
}

std::string Graph::placement() const {
  const auto locked = state_->lock();
  std::string text;
  for (const Node& node : state_->nodes())
    text += fmt::format("{}: ({}): {}{}\n", node.name, kind_name(node), node.device->name(),
                        node.wanted ? fmt::format(" (asked for {}, which does not exist)", node.wanted) : "");
  return text;
}

std::string Graph::to_dot() const {
  const auto locked = state_->lock();
  std::string text = "digraph plimsoll {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (std::uint32_t i = 0; i < state_->nodes().size(); ++i) {
    const Node& node = state_->node(i);
    std::string label = node.name;
    for (const NodeOutput& output : node.outputs)
      label += fmt::format("\\n{} {}", dtype_name(output.spec.dtype), output.spec.shape.to_string());
    text += fmt::format("  n{} [label=\"{}\"];\n", i, label);
    for (const ValueId& input : node.inputs) text += fmt::format("  n{} -> n{};\n", input.node, i);
    for (const std::uint32_t before : node.controls) text += fmt::format("  n{} -> n{} [style=dashed];\n", before, i);
  }
  return text + "}\n";
}

}  // namespace plimsoll
