#include "plimsoll/graph/body.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/assign.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

// While it lives, tensors belong to no tidy scope.
struct OutsideScopes {
  ScopeList* const scope = std::exchange(ThreadContext::current().scope, nullptr);
  ~OutsideScopes() { ThreadContext::current().scope = scope; }
};

// Every result is made by an op for it alone, so that it can be written to where it is wanted.
void separate_results(Rewritten& rewritten) {
  GraphState& graph = *rewritten.graph;
  std::vector<ValueId> seen;
  for (ValueId& fetch : rewritten.fetches) {
    const Node& node = graph.node(fetch.node);
    const bool own = node.kind == NodeKind::kOp && !(node.outputs.size() == 1 && node.op->facts().is_view) &&
                     std::find(seen.begin(), seen.end(), fetch) == seen.end();
    bool is_viewed = false;  // A result that lies in another's bytes is copied as well.
    for (const Node& other : graph.nodes())
      is_viewed |= other.op && other.op->facts().is_view && !other.inputs.empty() && other.inputs[0] == fetch;
    if (!own || is_viewed) fetch = {graph.append_op(AssignOp(), {fetch}, node.device), 0};
    seen.push_back(fetch);
  }
}

}  // namespace

std::shared_ptr<Body> Body::trace(const std::shared_ptr<GraphState>& outer, std::span<const TensorSpec> arguments,
                                  std::vector<Tensor>& captured, Traced f) {
  std::shared_ptr<Body> body(new Body);
  body->graph_ = GraphState::make(GraphState::Role::kBody, outer);
  GraphState& graph = *body->graph_;
  const TraceWith tracing(&graph);
  const OutsideScopes outside;
  std::vector<Tensor> symbolic;
  for (const TensorSpec& spec : arguments) {
    symbolic.push_back(graph.add_placeholder(spec, current_device(), "argument"));
    body->feeds_.push_back(graph.resolve(symbolic.back(), "while_loop", "an argument"));
  }
  for (const Tensor& result : f(symbolic)) body->fetches_.push_back(graph.resolve(result, "cond", "a result"));
  for (const GraphState::Capture& capture : graph.captures()) body->feeds_.push_back(capture.inside);
  captured = graph.detach();
  return body;
}

Program& Body::plan(std::span<const SpecRef> arguments) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const Planned& planned) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (!(planned.arguments[i].shape == *arguments[i].shape)) return false;
    return true;
  };
  const auto found = std::find_if(plans_.begin(), plans_.end(), same);
  if (found != plans_.end()) return *found->program;
  Planned made;
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    made.arguments.push_back({*arguments[i].shape, arguments[i].dtype});
    feeds.push_back({feeds_[i], made.arguments.back()});
  }
  const Passes passes;
  const TraceWith nobody(nullptr);
  Rewritten rewritten = rewrite(*graph_, feeds, fetches_, false, passes);
  separate_results(rewritten);
  made.program = std::make_unique<Program>(std::move(rewritten), passes);
  plans_.push_back(std::move(made));
  return *plans_.back().program;
}

Program* Body::find(std::span<const ConstTensorView> arguments) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Planned& planned : plans_) {
    bool same = true;
    for (std::size_t i = 0; same && i < arguments.size(); ++i)
      same = planned.arguments[i].shape == arguments[i].shape();
    if (same) return planned.program.get();
  }
  return nullptr;
}

std::vector<Tensor> Body::replay(std::span<const Tensor> arguments) const {
  std::vector<std::vector<Tensor>> values(graph_->nodes().size());
  for (std::size_t i = 0; i < feeds_.size(); ++i) values[feeds_[i].node] = {arguments[i]};
  for (std::uint32_t i = 0; i < graph_->nodes().size(); ++i) {
    const Node& node = graph_->node(i);
    if (node.kind == NodeKind::kConstant) {
      values[i] = {make_tensor_on(StorageRef::share(node.constant), node.offset, node.outputs[0].spec.shape,
                                  node.outputs[0].spec.dtype, {.op = "constant"}, TensorRecord::kView)};
    } else if (node.kind == NodeKind::kOp) {
      std::vector<const Tensor*> operands;
      for (const ValueId& input : node.inputs) operands.push_back(&values[input.node][input.output]);
      if (node.outputs.size() == 1)
        values[i] = {execute_on(*node.op, operands)};
      else
        values[i] = execute_all(*node.op, operands);
    }
  }
  std::vector<Tensor> results;
  for (const ValueId& fetch : fetches_) results.push_back(values[fetch.node][fetch.output]);
  return results;
}

}  // namespace plimsoll
