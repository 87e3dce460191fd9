#include "plimsoll/graph/control_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/graph/body.h"
#include "plimsoll/graph/loop_gradient.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::size_t kAlignment = 64;
std::size_t rounded(std::size_t bytes) { return round_up(bytes, kAlignment); }

std::vector<SpecRef> part(const Specs& in, std::size_t begin, std::size_t count) {
  std::vector<SpecRef> refs;
  for (std::size_t i = begin; i < begin + count; ++i) refs.push_back({&in.shape(i), in.dtype(i)});
  return refs;
}

bool all_known(const Specs& in) {
  for (std::size_t i = 0; i < in.size(); ++i)
    if (!in.shape(i).is_known()) return false;
  return true;
}

bool may_agree(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (std::size_t axis = 0; axis < a.rank(); ++axis)
    if (a[axis] != b[axis] && a[axis] != kUnknownSize && b[axis] != kUnknownSize) return false;
  return true;
}

struct Compared {
  const TensorSpec& spec;
  const char* where;
};
void require_agreement(const char* where, std::size_t index, const Compared& a, const Compared& b, const char* remedy) {
  if (a.spec.dtype == b.spec.dtype && may_agree(a.spec.shape, b.spec.shape)) return;
  throw InvalidArgument(fmt::format("{}: tensor {} is {} {} {} and {} {} {}; {}", where, index,
                                    dtype_name(a.spec.dtype), a.spec.shape.to_string(), a.where,
                                    dtype_name(b.spec.dtype), b.spec.shape.to_string(), b.where, remedy));
}

// Operands: the predicate, the first branch's captures, the second branch's captures.
class CondOp final : public OpOf<CondOp> {
 public:
  CondOp(std::shared_ptr<Body> then, std::shared_ptr<Body> otherwise)
      : then_(std::move(then)), otherwise_(std::move(otherwise)) {}
  const char* name() const noexcept override { return "cond"; }
  void infer(const Specs& in, SpecList& out) const override {
    if (in.dtype(0) != boolean || (in.shape(0).is_known() && in.shape(0).size() != 1))
      throw InvalidArgument(fmt::format("cond: the predicate is {} {}; give one boolean", dtype_name(in.dtype(0)),
                                        in.shape(0).to_string()));
    const bool known = all_known(in);
    for (std::size_t i = 0; i < then_->num_results(); ++i) {
      const TensorSpec a = known ? plan(in, true).fetch_spec(i) : then_->result_spec(i),
                       b = known ? plan(in, false).fetch_spec(i) : otherwise_->result_spec(i);
      require_agreement("cond", i, {a, "in the first branch"}, {b, "in the second"}, "give the same dtype and shape");
      out.add(a.shape, a.dtype);
    }
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return std::max(plan(in, true).extent_bytes(), plan(in, false).extent_bytes());
  }
  void run(const OpRun& run) const noexcept override {
    const bool taken = *reinterpret_cast<const bool*>(run.in[0].bytes());
    const std::size_t begin = taken ? 1 : 1 + then_->num_arguments();
    const BoundBody& body = taken ? then_ : otherwise_;
    const std::span<const ConstTensorView> feeds = run.in.subspan(begin, body->num_arguments());
    body.run(feeds, run.out, run.scratch.data());
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = ~SlotMask{0}}; }
  void gradient(GradientContext& c) const override;
  OpFacts facts() const noexcept override { return {.is_pure = false, .checks = true}; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "the predicate" : "a captured value"; }

 private:
  Program& plan(const Specs& in, bool first) const {
    const std::size_t begin = first ? 1 : 1 + then_->num_arguments();
    const BoundBody& body = first ? then_ : otherwise_;
    return body.plan(part(in, begin, body->num_arguments()));
  }

  BoundBody then_, otherwise_;
};

void CondOp::gradient(GradientContext& c) const {
  std::vector<Tensor> first, second, upstream;
  for (std::size_t i = 0; i < then_->num_arguments(); ++i) first.push_back(c.input(1 + i));
  for (std::size_t i = 0; i < otherwise_->num_arguments(); ++i)
    second.push_back(c.input(1 + then_->num_arguments() + i));
  for (std::size_t i = 0; i < then_->num_results(); ++i)
    upstream.push_back(c.has_grad(i) && is_floating(then_->result_spec(i).dtype) ? c.grad(i) : Tensor());
  const auto zeros_for = [](const std::vector<Tensor>& arguments, std::vector<Tensor>& gradients) {
    for (const Tensor& argument : arguments)
      if (is_floating(argument.dtype())) gradients.push_back(zeros_like(argument));
  };
  const std::vector<Tensor> gradients = plimsoll::cond(
      c.input(0),
      [&] {
        std::vector<Tensor> result = replayed_gradients(*then_, first, upstream);
        zeros_for(second, result);
        return result;
      },
      [&] {
        std::vector<Tensor> result;
        zeros_for(first, result);
        for (Tensor& gradient : replayed_gradients(*otherwise_, second, upstream))
          result.push_back(std::move(gradient));
        return result;
      });
  std::size_t next = 0;
  for (std::size_t i = 1; i < c.num_inputs(); ++i)
    if (is_floating(c.input_dtype(i))) c.give(i, gradients[next++]);
}

// Operands: the state, the condition's captures, the body's captures.
class WhileOp final : public OpOf<WhileOp> {
 public:
  WhileOp(std::shared_ptr<Body> condition, std::shared_ptr<Body> body)
      : condition_(std::move(condition)), body_(std::move(body)) {}
  const char* name() const noexcept override { return "while_loop"; }
  void infer(const Specs& in, SpecList& out) const override {
    const bool known = all_known(in);
    const TensorSpec test = known ? condition_plan(in).fetch_spec(0) : condition_->result_spec(0);
    if (test.dtype != boolean || (test.shape.is_known() && test.shape.size() != 1))
      throw InvalidArgument(fmt::format("while_loop: the condition gives {} {}; give one boolean",
                                        dtype_name(test.dtype), test.shape.to_string()));
    for (std::size_t i = 0; i < num_state(); ++i) {
      const TensorSpec next = known ? body_plan(in).fetch_spec(i) : body_->result_spec(i);
      const TensorSpec before{in.shape(i), in.dtype(i)};
      require_agreement("while_loop", i, {before, "before the body"}, {next, "after it"},
                        "what a traced loop carries keeps its dtype and shape: pad it to the largest shape and carry "
                        "how much of it is filled, or loop outside of the function, where a TensorArray may grow");
      out.add(in.shape(i), in.dtype(i));
    }
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override {
    std::size_t bytes = kAlignment;  // The condition's result.
    for (std::size_t i = 0; i < num_state(); ++i) bytes += rounded(out[i].bytes());
    return bytes + std::max(condition_plan(in).extent_bytes(), body_plan(in).extent_bytes());
  }
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = ~SlotMask{0}}; }
  void gradient(GradientContext& c) const override;
  OpFacts facts() const noexcept override { return {.is_pure = false, .checks = true}; }
  std::string input_name(std::size_t input) const override {
    return input < num_state() ? fmt::format("state {}", input) : "a captured value";
  }

 private:
  std::size_t num_state() const noexcept { return body_->num_results(); }
  std::size_t condition_captures() const noexcept { return condition_->num_arguments() - num_state(); }
  std::size_t body_captures() const noexcept { return body_->num_arguments() - num_state(); }
  Program& condition_plan(const Specs& in) const {
    return condition_.plan(part(in, 0, num_state() + condition_captures()));
  }
  Program& body_plan(const Specs& in) const {
    std::vector<SpecRef> refs = part(in, 0, num_state());
    for (const SpecRef& captured : part(in, num_state() + condition_captures(), body_captures()))
      refs.push_back(captured);
    return body_.plan(refs);
  }

  BoundBody condition_, body_;
};

void WhileOp::run(const OpRun& run) const noexcept {
  const std::size_t states = num_state();
  std::byte* scratch = run.scratch.data();
  const TensorView test(scratch, 0, boolean, Shape::scalar());
  scratch += kAlignment;
  std::vector<TensorView> now(run.out.begin(), run.out.end()), next;
  for (std::size_t i = 0; i < states; ++i) {
    next.emplace_back(scratch, 0, now[i].dtype(), now[i].shape());
    scratch += rounded(now[i].nbytes());
    if (now[i].nbytes() > 0) std::memcpy(now[i].bytes(), run.in[i].bytes(), now[i].nbytes());
  }
  std::vector<ConstTensorView> tested(now.begin(), now.end()), stepped(now.begin(), now.end());
  for (std::size_t i = 0; i < condition_captures(); ++i) tested.push_back(run.in[states + i]);
  for (std::size_t i = 0; i < body_captures(); ++i) stepped.push_back(run.in[states + condition_captures() + i]);
  for (;;) {
    for (std::size_t i = 0; i < states; ++i) tested[i] = stepped[i] = now[i];
    condition_.run(tested, {&test, 1}, scratch);
    if (pending_error() || !*reinterpret_cast<const bool*>(test.bytes())) break;
    body_.run(stepped, next, scratch);
    if (pending_error()) break;
    std::swap(now, next);
  }
  for (std::size_t i = 0; i < states; ++i)
    if (now[i].bytes() != run.out[i].bytes() && now[i].nbytes() > 0)
      std::memcpy(run.out[i].bytes(), now[i].bytes(), now[i].nbytes());
}

void WhileOp::gradient(GradientContext& c) const {
  const std::size_t states = num_state();
  LoopOperands operands;
  for (std::size_t i = 0; i < states; ++i) operands.initial.push_back(c.input(i));
  for (std::size_t i = 0; i < condition_captures(); ++i) operands.tested.push_back(c.input(states + i));
  for (std::size_t i = 0; i < body_captures(); ++i)
    operands.captured.push_back(c.input(states + condition_captures() + i));
  for (std::size_t i = 0; i < states; ++i)
    if (is_floating(c.input_dtype(i))) operands.upstream.push_back(c.grad(i));
  std::vector<Tensor> gradients = loop_gradients(condition_.shared(), body_.shared(), operands);
  std::size_t next = 0;
  for (std::size_t i = 0; i < states; ++i)
    if (is_floating(c.input_dtype(i))) c.give(i, std::move(gradients[next++]));
  for (std::size_t i = 0; i < body_captures(); ++i) {
    const std::size_t input = states + condition_captures() + i;
    if (is_floating(c.input_dtype(input))) c.give(input, std::move(gradients[next++]));
  }
}

std::shared_ptr<GraphState> graph_of(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> operands;
  for (const Tensor& tensor : tensors) operands.push_back(&tensor);
  return std::static_pointer_cast<GraphState>(tracer_for(operands));
}

std::vector<Tensor> execute_with(const Op& op, const std::vector<Tensor>& operands) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& operand : operands) inputs.push_back(&operand);
  return execute_all(op, inputs);
}

// In a graph only requested nodes run: makes sure that requesting one of `values` also runs `before`.
void wait_for(GraphState& graph, const std::vector<Tensor>& before, std::vector<Tensor>& values) {
  if (before.empty()) return;
  struct Restore {
    std::vector<std::uint32_t>& waiting_for;
    const std::size_t size = waiting_for.size();
    ~Restore() { waiting_for.resize(size); }
  } restore{graph.waiting_for};
  for (const Tensor& node : before) graph.waiting_for.push_back(graph.resolve(node, "cond", "an assignment").node);
  for (Tensor& value : values) value = value.expand_dims(0).squeeze({0});  // The same value, as another node.
}

}  // namespace

namespace control_detail {

bool is_traced(std::span<const Tensor> tensors) noexcept {
  if (ThreadContext::current().tracer) return true;
  for (const Tensor& tensor : tensors)
    if (is_symbolic(tensor)) return true;
  return false;
}

std::vector<Tensor> cond(const Tensor& predicate, Branch then, Branch otherwise) {
  const std::shared_ptr<GraphState> outer = graph_of({&predicate, 1});
  Device& device = device_of(predicate);
  GraphState::Undo undo(*outer);
  const std::shared_ptr<Body> a = Body::open_branch(outer, device, [&](std::span<const Tensor>) { return then(); }),
                              b = Body::open_branch(outer, device,
                                                    [&](std::span<const Tensor>) { return otherwise(); });
  if (a->num_results() != b->num_results())
    throw InvalidArgument(fmt::format("cond: the first branch gives {} tensors, the second {}; give the same structure",
                                      a->num_results(), b->num_results()));
  // A variable that one of them changes is a result of both, and assigned afterwards.
  std::vector<GraphState::AnyVariable> changed;
  for (const Body* branch : {a.get(), b.get()})
    for (const GraphState::Changed& each : branch->changed()) {
      const auto same = [&](const GraphState::AnyVariable& known) { return known.id == each.variable.id; };
      if (std::none_of(changed.begin(), changed.end(), same)) changed.push_back(each.variable);
    }
  for (const GraphState::AnyVariable& variable : changed) {
    a->add_value_of(variable);
    b->add_value_of(variable);
  }
  std::vector<Tensor> operands = {predicate};
  for (Body* branch : {a.get(), b.get()})
    for (Tensor& captured : branch->close()) operands.push_back(std::move(captured));
  std::vector<Tensor> results = execute_with(CondOp(a, b), operands);
  const std::size_t own = results.size() - changed.size();
  std::vector<Tensor> assigned;
  for (std::size_t i = 0; i < changed.size(); ++i)
    assigned.push_back(outer->assign(changed[i], results[own + i], AssignKind::kSet));
  results.resize(own);
  if (outer->role() == GraphState::Role::kGraph) wait_for(*outer, assigned, results);
  undo.keep();
  return results;
}

std::vector<Tensor> while_loop(Condition condition, Step step, const std::vector<Tensor>& state) {
  const std::shared_ptr<GraphState> outer = graph_of(state);
  Device& device = state.empty() ? current_device() : device_of(state[0]);
  GraphState::Undo undo(*outer);
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : state) specs.push_back({tensor.shape(), tensor.dtype()});
  std::vector<Tensor> tested, stepped, operands = state;
  const std::shared_ptr<Body> test = Body::trace(
      outer, device, specs, tested, [&](std::span<const Tensor> now) { return std::vector<Tensor>{condition(now)}; });
  const std::shared_ptr<Body> body =
      Body::trace(outer, device, specs, stepped, [&](std::span<const Tensor> now) { return step(now); });
  if (body->num_results() != state.size())
    throw InvalidArgument(
        fmt::format("while_loop: the state has {} tensors, the body gives {}; give the same structure", state.size(),
                    body->num_results()));
  operands.insert(operands.end(), tested.begin(), tested.end());
  operands.insert(operands.end(), stepped.begin(), stepped.end());
  std::vector<Tensor> results = execute_with(WhileOp(test, body), operands);
  undo.keep();
  return results;
}

}  // namespace control_detail
}  // namespace plimsoll
