#include "plimsoll/graph/loop_gradient.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/graph/control_flow.h"
#include "plimsoll/ops/assign.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

using Tensors = std::vector<Tensor>;
using Views = std::vector<TensorView>;

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kKeptStates = 32;
std::size_t rounded(std::size_t bytes) { return round_up(bytes, kAlignment); }

Tensors joined(const Tensors& a, const Tensors& b) {
  Tensors all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// The same with operations that can be differentiated again; takes time quadratic in the iterations.
Tensors gradients_by_loops(const Body& condition, const Body& body, const LoopOperands& o) {
  const std::size_t states = o.initial.size();
  const auto state_of = [&](const Tensors& counted) { return Tensors(counted.begin() + 1, counted.end()); };
  const auto step = [&](const Tensors& counted) {
    return joined({counted[0] + 1}, body.replay(joined(state_of(counted), o.captured)));
  };
  const Tensors start = joined({zeros({}, i64)}, o.initial);
  const Tensor count = while_loop(
      [&](const Tensors& counted) { return condition.replay(joined(state_of(counted), o.tested))[0]; }, step, start)[0];
  Tensors adjoint = joined({count - 1}, o.upstream);  // The iteration, then gradients of the floats: state, captures.
  const std::size_t floats = o.upstream.size();
  for (const Tensor& value : o.captured)
    if (is_floating(value.dtype())) adjoint.push_back(zeros_like(value));
  Tensors end = while_loop(
      [](const Tensors& now) { return now[0] >= 0; },
      [&](const Tensors& now) {
        const Tensors before = while_loop([&](const Tensors& counted) { return counted[0] < now[0]; }, step, start);
        Tensors upstream(states);
        for (std::size_t i = 0, next = 1; i < states; ++i)
          if (is_floating(o.initial[i].dtype())) upstream[i] = now[next++];
        Tensors gradients = replayed_gradients(body, joined(state_of(before), o.captured), upstream);
        for (std::size_t i = floats; i < gradients.size(); ++i) gradients[i] = gradients[i] + now[1 + i];
        return joined({now[0] - 1}, gradients);
      },
      adjoint);
  end.erase(end.begin());
  return end;
}

// Operands: the state, the condition's captures, the body's captures, the gradients of the final state.
class LoopGradientOp final : public OpOf<LoopGradientOp> {
 public:
  struct Sizes {
    std::size_t states, tested, captured, floats;
  };
  LoopGradientOp(std::shared_ptr<Body> condition, std::shared_ptr<Body> body, std::shared_ptr<Body> backward,
                 const Sizes& sizes)
      : condition_(std::move(condition)), body_(std::move(body)), backward_(std::move(backward)), n_(sizes) {}
  const char* name() const noexcept override { return "while_loop_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    plan(in);
    for (std::size_t i = 0; i < n_.states; ++i)
      if (is_floating(in.dtype(i))) out.add(in.shape(i), in.dtype(i));
    for (std::size_t i = 0; i < n_.captured; ++i)
      if (is_floating(in.dtype(first_captured() + i)))
        out.add(in.shape(first_captured() + i), in.dtype(first_captured() + i));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override {
    plan(in);
    std::size_t state = 0, gradients = 0;
    for (std::size_t i = 0; i < n_.states; ++i) state += rounded(TensorSpec{in.shape(i), in.dtype(i)}.bytes());
    for (std::size_t i = 0; i < out.size(); ++i) gradients += rounded(out[i].bytes());
    return kAlignment + (kKeptStates + 2) * state + gradients +
           std::max({condition_.extent_bytes(), body_.extent_bytes(), backward_.extent_bytes()});
  }
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = ~SlotMask{0}}; }
  void gradient(GradientContext& c) const override;
  OpFacts facts() const noexcept override { return {.is_pure = false, .checks = true}; }

 private:
  class Reverse;
  std::size_t first_captured() const noexcept { return n_.states + n_.tested; }
  void plan(const Specs& in) const {
    std::vector<SpecRef> tested, stepped, reversed;
    const auto add = [&](std::vector<SpecRef>& to, std::size_t begin, std::size_t count) {
      for (std::size_t i = begin; i < begin + count; ++i) to.push_back({&in.shape(i), in.dtype(i)});
    };
    add(tested, 0, n_.states + n_.tested);
    add(stepped, 0, n_.states);
    add(stepped, first_captured(), n_.captured);
    add(reversed, 0, n_.states);
    add(reversed, first_captured(), n_.captured + n_.floats);
    condition_.plan(tested);
    body_.plan(stepped);
    backward_.plan(reversed);
  }

  BoundBody condition_, body_, backward_;
  Sizes n_;
};

// One run: states are kept in slots of the scratch.
class LoopGradientOp::Reverse {
 public:
  Reverse(const LoopGradientOp& op, const OpRun& run) : op_(op), run_(run), at_(run.scratch.data()) {
    test_ = TensorView(take(1), 0, boolean, Shape::scalar());
    for (Views& slot : slots_) slot = make_state();
    for (Views& work : work_) work = make_state();
    for (const TensorView& out : run.out) next_.emplace_back(take(out.nbytes()), 0, out.dtype(), out.shape());
    for (std::size_t i = 1; i < kKeptStates; ++i) free_.push_back(i);
  }

  void go() {
    const std::size_t floats = op_.n_.floats;
    const std::span<const ConstTensorView> upstream = run_.in.last(floats);
    for (std::size_t i = 0; i < floats; ++i) copy(upstream[i], run_.out[i]);
    for (std::size_t i = floats; i < run_.out.size(); ++i)
      if (run_.out[i].nbytes() > 0) std::memset(run_.out[i].bytes(), 0, run_.out[i].nbytes());
    for (std::size_t i = 0; i < op_.n_.states; ++i) copy(run_.in[i], slots_[0][i]);
    const std::size_t iterations = count();
    if (iterations > 0 && !pending_error()) reverse(0, iterations, slots_[0]);
  }

 private:
  std::byte* take(std::size_t bytes) {
    std::byte* const begin = at_;
    at_ += rounded(bytes);
    return begin;
  }
  Views make_state() {
    Views state;
    for (std::size_t i = 0; i < op_.n_.states; ++i)
      state.emplace_back(take(run_.in[i].nbytes()), 0, run_.in[i].dtype(), run_.in[i].shape());
    return state;
  }
  static void copy(const ConstTensorView& from, const TensorView& to) {
    if (to.nbytes() > 0) std::memcpy(to.bytes(), from.bytes(), to.nbytes());
  }
  static void copy(const Views& from, const Views& to) {
    for (std::size_t i = 0; i < from.size(); ++i) copy(from[i], to[i]);
  }
  std::vector<ConstTensorView> operands(const Views& state, std::size_t begin, std::size_t count) const {
    std::vector<ConstTensorView> all(state.begin(), state.end());
    for (std::size_t i = begin; i < begin + count; ++i) all.push_back(run_.in[i]);
    return all;
  }

  // One iteration from `state`; the result is in the other of the two work areas.
  const Views& step(const Views& state) {
    turn_ ^= 1;
    op_.body_.run(operands(state, op_.first_captured(), op_.n_.captured), work_[turn_], at_);
    return work_[turn_];
  }
  // `steps` iterations from a kept state.
  const Views& forward(const Views& kept, std::size_t steps) {
    const Views* now = &kept;
    for (std::size_t i = 0; i < steps && !pending_error(); ++i) now = &step(*now);
    return *now;
  }
  std::size_t count() {
    const Views* now = &slots_[0];
    for (std::size_t iterations = 0;; ++iterations) {
      op_.condition_.run(operands(*now, op_.n_.states, op_.n_.tested), {&test_, 1}, at_);
      if (pending_error() || !*reinterpret_cast<const bool*>(test_.bytes())) return iterations;
      now = &step(*now);
      if (pending_error()) return 0;
    }
  }

  // The gradient of one iteration, from the state before it; adds to the gradients of the captures.
  void backward(const Views& state) {
    std::vector<ConstTensorView> feeds = operands(state, op_.first_captured(), op_.n_.captured);
    for (std::size_t i = 0; i < op_.n_.floats; ++i) feeds.push_back(run_.out[i]);
    op_.backward_.run(feeds, next_, at_);
    if (pending_error()) return;
    for (std::size_t i = 0; i < op_.n_.floats; ++i) copy(next_[i], run_.out[i]);
    for (std::size_t i = op_.n_.floats; i < run_.out.size(); ++i) {
      const ConstTensorView in[] = {run_.out[i], next_[i]};
      AssignOp(AssignKind::kAdd).run({in, {&run_.out[i], 1}, {}});
    }
  }

  // Iterations [low, high) backwards; `kept` is the state before the first. If all states in between fit, they are
  // kept; otherwise half of the space holds evenly spaced states, and each part uses the rest.
  void reverse(std::size_t low, std::size_t high, const Views& kept) {
    while (high - low > 1 && !pending_error()) {
      const std::size_t between = high - low - 1;
      if (free_.empty()) {
        backward(forward(kept, between));
        --high;
        continue;
      }
      const std::size_t marks = between <= free_.size() ? between : std::max<std::size_t>(1, free_.size() / 2);
      std::vector<std::pair<std::size_t, std::size_t>> marked;  // Iteration, slot.
      const Views* from = &kept;
      std::size_t at = low;
      for (std::size_t i = 0; i < marks; ++i) {
        const std::size_t to = low + (i + 1) * (high - low) / (marks + 1);
        const std::size_t slot = free_.back();
        free_.pop_back();
        copy(forward(*from, to - at), slots_[slot]);
        marked.emplace_back(to, slot);
        from = &slots_[slot];
        at = to;
      }
      for (; !marked.empty() && !pending_error(); marked.pop_back()) {
        reverse(marked.back().first, high, slots_[marked.back().second]);
        high = marked.back().first;
        free_.push_back(marked.back().second);
      }
    }
    if (!pending_error()) backward(kept);
  }

  const LoopGradientOp& op_;
  const OpRun& run_;
  std::byte* at_;  // The rest of the scratch: for programs.
  TensorView test_;
  Views slots_[kKeptStates];
  Views work_[2], next_;
  std::vector<std::size_t> free_;
  std::size_t turn_ = 0;
};

void LoopGradientOp::run(const OpRun& run) const noexcept { Reverse(*this, run).go(); }

void LoopGradientOp::gradient(GradientContext& c) const {
  GradientTape tape;
  Tensors all, watched, upstream;
  std::vector<std::size_t> inputs;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) {
    const Tensor& input = c.input(i);
    all.push_back(is_floating(input.dtype()) ? input.reshape(input.shape()) : input);  // A handle of its own.
    if (!is_floating(input.dtype())) continue;
    tape.watch(all.back());
    watched.push_back(all.back());
    inputs.push_back(i);
  }
  const auto part = [&](std::size_t begin, std::size_t count) {
    return Tensors(all.begin() + static_cast<std::ptrdiff_t>(begin),
                   all.begin() + static_cast<std::ptrdiff_t>(begin + count));
  };
  const LoopOperands operands{part(0, n_.states), part(n_.states, n_.tested), part(first_captured(), n_.captured),
                              part(first_captured() + n_.captured, n_.floats)};
  const Tensors results = gradients_by_loops(*condition_, *body_, operands);
  Tensor sum;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!c.has_grad(i)) continue;
    const Tensor product = (results[i] * c.grad(i)).sum();
    sum = sum.is_empty_handle() ? product : sum + product;
  }
  if (sum.is_empty_handle()) return;
  Tensors gradients = tape.gradient(sum, watched);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!gradients[i].is_empty_handle()) c.give(inputs[i], std::move(gradients[i]));
}

}  // namespace

std::vector<Tensor> loop_gradients(const std::shared_ptr<Body>& condition, const std::shared_ptr<Body>& body,
                                   const LoopOperands& o) {
  Tensors operands = joined(joined(o.initial, o.tested), joined(o.captured, o.upstream));
  std::vector<const Tensor*> inputs;
  for (const Tensor& operand : operands) inputs.push_back(&operand);
  const std::shared_ptr<Tracer> outer = tracer_for(inputs);
  std::vector<TensorSpec> specs;
  for (const Tensors* list : {&o.initial, &o.captured, &o.upstream})
    for (const Tensor& tensor : *list) specs.push_back({tensor.shape(), tensor.dtype()});
  const std::size_t arguments = o.initial.size() + o.captured.size();
  Tensors outside;
  const std::shared_ptr<Body> backward = Body::trace(
      std::static_pointer_cast<GraphState>(outer), device_of(operands[0]), specs, outside,
      [&](std::span<const Tensor> given) {
        Tensors upstream(o.initial.size());
        for (std::size_t i = 0, next = arguments; i < o.initial.size(); ++i)
          if (is_floating(o.initial[i].dtype())) upstream[i] = given[next++];
        return replayed_gradients(*body, Tensors(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(arguments)),
                                  upstream);
      });
  PLIMSOLL_CHECK(outside.empty());
  const LoopGradientOp::Sizes sizes{o.initial.size(), o.tested.size(), o.captured.size(), o.upstream.size()};
  return execute_all(LoopGradientOp(condition, body, backward, sizes), inputs);
}

}  // namespace plimsoll::internal
