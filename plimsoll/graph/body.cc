#include "plimsoll/graph/body.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/interrupt.h"
#include "plimsoll/device/device.h"
#include "plimsoll/ops/assign.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostPlans = 8;  // The most plans that a body keeps for later calls.

// Makes sure that every result has an op of its own, so that it can be written directly to its destination.
void separate_results(Rewritten& rewritten) {
  GraphState& graph = *rewritten.graph;
  std::vector<ValueId> seen;
  for (ValueId& fetch : rewritten.fetches) {
    const Node& node = graph.node(fetch.node);
    const bool own = node.kind == NodeKind::kOp && !(node.outputs.size() == 1 && node.op->facts().is_view) &&
                     std::find(seen.begin(), seen.end(), fetch) == seen.end();
    bool is_viewed = false;  // A result in another's bytes is copied as well.
    for (const Node& other : graph.nodes())
      is_viewed |= other.op && other.op->facts().is_view && !other.inputs.empty() && other.inputs[0] == fetch;
    if (!own || is_viewed) fetch = {graph.append_op(AssignOp(), {fetch}, node.device), 0};
    seen.push_back(fetch);
  }
}

}  // namespace

std::shared_ptr<Body> Body::trace(const std::shared_ptr<GraphState>& outer, Device& device,
                                  std::span<const TensorSpec> arguments, std::vector<Tensor>& captured, Traced f) {
  std::shared_ptr<Body> body(new Body);
  body->device_ = &device;
  body->graph_ = GraphState::make(GraphState::Role::kBody, outer);
  body->trace_open(arguments, f);
  captured = body->close();
  return body;
}

std::shared_ptr<Body> Body::open_branch(const std::shared_ptr<GraphState>& outer, Device& device, Traced f) {
  std::shared_ptr<Body> body(new Body);
  body->device_ = &device;
  body->graph_ = GraphState::make(GraphState::Role::kBody, outer);
  body->graph_->become_branch();
  body->trace_open({}, f);
  return body;
}

void Body::trace_open(std::span<const TensorSpec> arguments, Traced f) {
  const TraceWith tracing(graph_.get());
  const OutsideTidyScopes outside;
  std::vector<Tensor> symbolic;
  for (const TensorSpec& spec : arguments) {
    symbolic.push_back(graph_->add_placeholder(spec, *device_, "argument"));
    feeds_.push_back(graph_->resolve(symbolic.back(), "while_loop", "an argument"));
  }
  for (const Tensor& result : f(symbolic)) add_result(result);
}

void Body::add_result(const Tensor& result) {
  fetches_.push_back(graph_->resolve(result, "cond", "a result"));
  if (Device* const there = graph_->device(fetches_.back()); there != device_)
    throw InvalidArgument(
        fmt::format("cond, while_loop: a branch or loop on {} gives a tensor on {}; move it with .to(\"{}\") inside",
                    device_->name(), there->name(), device_->name()));
}

void Body::add_value_of(const GraphState::AnyVariable& variable) { add_result(graph_->read(variable)); }

std::vector<Tensor> Body::close() {
  for (const GraphState::Capture& capture : graph_->captures()) feeds_.push_back(capture.inside);
  return graph_->detach();
}

bool Body::Planned::is_for(std::span<const ConstTensorView> given) const noexcept {
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!(arguments[i].shape == given[i].shape())) return false;
  return true;
}

std::shared_ptr<Body::Planned> Body::plan(std::span<const SpecRef> arguments) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const std::shared_ptr<Planned>& planned) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (!(planned->arguments[i].shape == *arguments[i].shape)) return false;
    return true;
  };
  const auto found = std::find_if(plans_.begin(), plans_.end(), same);
  if (found != plans_.end()) {
    std::rotate(plans_.begin(), found, found + 1);
    return plans_.front();
  }
  auto made = std::make_shared<Planned>();
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    made->arguments.push_back({*arguments[i].shape, arguments[i].dtype});
    feeds.push_back({feeds_[i], made->arguments.back()});
  }
  const Passes passes;
  const TraceWith nobody(nullptr);
  Rewritten rewritten = rewrite(*graph_, feeds, fetches_, false, passes);
  separate_results(rewritten);
  rewritten.graph->put_on(*device_);  // It runs in the memory of one op.
  made->program = std::make_unique<Program>(std::move(rewritten), passes);
  plans_.insert(plans_.begin(), made);
  if (plans_.size() > kMostPlans) plans_.pop_back();
  return made;
}

Program& BoundBody::plan(std::span<const SpecRef> arguments) const {
  std::shared_ptr<Body::Planned> planned = body_->plan(arguments);
  Program& program = *planned->program;
  const std::lock_guard lock(mutex_);
  bound_ = std::move(planned);
  return program;
}

void BoundBody::run(std::span<const ConstTensorView> feeds, std::span<const TensorView> results,
                    std::byte* extent) const noexcept {
  try {
    check_interrupt();
    std::shared_ptr<Body::Planned> planned = bound();
    if (!planned || !planned->is_for(feeds)) {  // Another thread asked about other sizes meanwhile.
      std::vector<SpecRef> specs;
      for (const ConstTensorView& feed : feeds) specs.push_back({&feed.shape(), feed.dtype()});
      planned = body_->plan(specs);
    }
    planned->program->run_inside(feeds, results, extent);
  } catch (...) {
    pending_error() = std::current_exception();
  }
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
      if (operands.size() == 1 && graph_->device(node.inputs[0]) != node.device)
        values[i] = {operands[0]->to(node.device->name())};
      else if (node.outputs.size() == 1)
        values[i] = {execute_on(*node.op, operands)};
      else
        values[i] = execute_all(*node.op, operands);
    }
  }
  std::vector<Tensor> results;
  for (const ValueId& fetch : fetches_) results.push_back(values[fetch.node][fetch.output]);
  return results;
}

std::vector<Tensor> replayed_gradients(const Body& body, const std::vector<Tensor>& arguments,
                                       const std::vector<Tensor>& upstream) {
  GradientTape tape;
  std::vector<Tensor> watched;
  std::vector<Tensor> operands;
  for (const Tensor& argument : arguments) {
    // A separate handle, so that only this use of the value is watched.
    operands.push_back(is_floating(argument.dtype()) ? argument.reshape(argument.shape()) : argument);
    if (!is_floating(argument.dtype())) continue;
    tape.watch(operands.back());
    watched.push_back(operands.back());
  }
  const std::vector<Tensor> results = body.replay(operands);
  Tensor sum;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (upstream[i].is_empty_handle() || !is_floating(results[i].dtype())) continue;
    const Tensor product = (results[i] * upstream[i]).sum();
    sum = sum.is_empty_handle() ? product : sum + product;
  }
  std::vector<Tensor> gradients(watched.size());
  if (!sum.is_empty_handle()) gradients = tape.gradient(sum, watched);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].is_empty_handle()) gradients[i] = zeros_like(watched[i]);
  return gradients;
}

}  // namespace plimsoll::internal
