#include "plimsoll/graph/traced_call.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/gradient_nodes.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {

// What a tape records of a call.
class CallOp final : public OpOf<CallOp> {
 public:
  CallOp(std::shared_ptr<TracedCall> call, Draws draws) : call_(std::move(call)), draws_(std::move(draws)) {}

  const char* name() const noexcept override { return "function"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }  // Never called.
  void run(const OpRun&) const noexcept override {}
  SavedSlots saved(SlotMask) const override {
    SavedSlots slots{.inputs = ~SlotMask{0}};
    for (const TracedCall::Source& source : call_->differentiated_->sources)
      if (!source.from_operand) slots.outputs |= slot(source.number);
    return slots;
  }
  void gradient(GradientContext& c) const override;

 private:
  void gradient_of_all(GradientContext& c) const;

  std::shared_ptr<TracedCall> call_;
  Draws draws_;
};

void CallOp::gradient(GradientContext& c) const {
  TracedCall::Differentiated& made = *call_->differentiated_;
  Signature asked;
  std::vector<std::size_t> operands;
  for (std::size_t i = 0; i < c.num_inputs(); ++i)
    if (c.wants(i) && made.gradients[i].node != kNoNode) {
      asked.push_back(i);
      operands.push_back(i);
    }
  for (std::size_t i = 0; i < made.num_saved; ++i)
    if (c.has_grad(call_->fetches_.size() + i)) return gradient_of_all(c);
  if (operands.empty()) return;
  std::shared_ptr<TracedCall> backward = made.backward.find(asked);
  if (!backward) {
    std::vector<ValueId> fetches;
    for (const std::size_t operand : operands) fetches.push_back(made.gradients[operand]);
    backward = TracedCall::make(made.joint, made.backward_feeds, std::move(fetches), false, call_->passes_);
    backward = made.backward.insert(asked, backward, backward->bytes());
  }
  std::vector<const Tensor*> feeds;
  for (const TracedCall::Source& source : made.sources)
    feeds.push_back(source.from_operand ? &c.input(source.number) : &c.output(source.number));
  for (const std::size_t fetch : made.seeded) feeds.push_back(&c.grad(fetch));
  std::vector<Tensor> gradients = backward->call(feeds, &draws_);
  for (std::size_t i = 0; i < operands.size(); ++i) c.give(operands[i], std::move(gradients[i]));
}

// Used when someone differentiates what a gradient was computed from: the saved values have gradients too. Everything
// is recomputed from the operands.
void CallOp::gradient_of_all(GradientContext& c) const {
  TracedCall::Differentiated& made = *call_->differentiated_;
  TracedCall& whole = call_->whole();
  std::vector<const Tensor*> feeds;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) feeds.push_back(&c.input(i));
  for (std::size_t i = 0; i < call_->fetches_.size() + made.num_saved; ++i)
    if (is_floating(made.output_specs[i].dtype)) feeds.push_back(&c.grad(i));
  std::vector<Tensor> gradients = whole.call(feeds, &draws_);
  std::size_t next = 0;
  for (std::size_t i = 0; i < c.num_inputs(); ++i)
    if (made.whole_has[i]) c.give(i, std::move(gradients[next++]));
}

std::shared_ptr<TracedCall> TracedCall::make(std::shared_ptr<GraphState> graph, std::vector<ValueId> feeds,
                                             std::vector<ValueId> fetches, bool effects, const Passes& passes) {
  return std::shared_ptr<TracedCall>(
      new TracedCall(std::move(graph), std::move(feeds), std::move(fetches), effects, passes));
}

namespace {

std::vector<Feed> specs_of(const GraphState& graph, const std::vector<ValueId>& feeds) {
  std::vector<Feed> specs;
  for (const ValueId& feed : feeds)
    specs.push_back({feed, feed.node == kNoNode ? TensorSpec() : graph.output(feed).spec});
  return specs;
}

}  // namespace

std::vector<Feed> TracedCall::feed_specs() const { return specs_of(*graph_, feeds_); }

std::vector<Variable> TracedCall::variables_of(const Program& program) {
  std::vector<Variable> variables;
  for (const Program::VariableUse& use : program.variables())
    variables.push_back(*program.graph().variables()[use.number].eager);
  return variables;
}

Program& TracedCall::program() {
  if (Program* const made = ready_.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex_);
  if (!program_) {
    program_ = std::make_shared<Program>(rewrite(*graph_, feed_specs(), fetches_, effects_, passes_), passes_);
    variables_ = variables_of(*program_);
    ready_.store(program_.get(), std::memory_order_release);
  }
  return *program_;
}

MemoryPlan TracedCall::memory_plan(Eviction eviction) { return program().memory_plan_with_front(eviction); }
std::size_t TracedCall::bytes() { return program().bytes() + graph_->nodes().size() * sizeof(Node); }

void TracedCall::call(std::span<const Tensor* const> feeds, std::span<Tensor> results, const Draws* draws,
                      std::string_view where, bool may_recompute, SpillFile* spill) {
  Program& quick = program();
  if (Interceptor* const interceptor = ThreadContext::current().interceptor)
    if (call_watched(feeds, results, draws, where, may_recompute, spill, *interceptor)) return;
  quick.run({.feeds = feeds,
             .variables = variables_,
             .results = results,
             .given_draws = draws,
             .where = where,
             .may_recompute = may_recompute,
             .spill = spill});
}

std::vector<Tensor> TracedCall::call(std::span<const Tensor* const> feeds, const Draws* draws) {
  std::vector<Tensor> results(fetches_.size());
  call(feeds, results, draws);
  return results;
}

bool TracedCall::call_watched(std::span<const Tensor* const> feeds, std::span<Tensor> results, const Draws* draws,
                              std::string_view where, bool may_recompute, SpillFile* spill, Interceptor& interceptor) {
  std::vector<Tensor> snapshots;
  for (const Variable& variable : variables_) snapshots.push_back(variable.value());
  std::vector<const Tensor*> operands(feeds.begin(), feeds.end());
  for (const Tensor& snapshot : snapshots) operands.push_back(&snapshot);
  if (!interceptor.watches(operands)) return false;
  Differentiated& made = differentiated();
  // The same operands, in the order of the joint graph.
  snapshots.clear();
  operands.resize(feeds.size());
  for (const Variable& variable : made.operand_variables) snapshots.push_back(variable.value());
  for (const Tensor& snapshot : snapshots) operands.push_back(&snapshot);
  std::vector<Tensor> outputs(fetches_.size() + made.num_saved);
  Draws drawn;
  made.forward->run({.feeds = feeds,
                     .variables = made.forward_variables,
                     .results = outputs,
                     .given_draws = draws,
                     .drawn = &drawn,
                     .where = where,
                     .may_recompute = may_recompute,
                     .spill = spill});
  interceptor.executed(CallOp(shared_from_this(), std::move(drawn)), operands, outputs);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = std::move(outputs[i]);
  return true;
}

namespace {

// For a value's incoming gradient.
ValueId add_placeholder_like(GraphState& graph, ValueId value) {
  Node node;
  node.kind = NodeKind::kPlaceholder;
  node.device = graph.device(value);
  node.outputs = {{graph.output(value).spec, 0}};
  return {graph.append(std::move(node)), 0};
}

// Nodes before `boundary` whose outputs the gradients read.
std::vector<ValueId> crossing_values(const GraphState& graph, std::uint32_t boundary,
                                     std::span<const ValueId> gradients) {
  std::vector<bool> needed(graph.nodes().size(), false);
  std::vector<ValueId> crossing;
  const auto need = [&](ValueId value) {
    if (value.node == kNoNode) return;
    if (value.node >= boundary) {
      needed[value.node] = true;
    } else if (graph.node(value.node).kind != NodeKind::kConstant &&
               std::find(crossing.begin(), crossing.end(), value) == crossing.end()) {
      crossing.push_back(value);
    }
  };
  for (const ValueId& gradient : gradients) need(gradient);
  for (std::size_t i = needed.size(); i-- > boundary;)
    if (needed[i])
      for (const ValueId& input : graph.nodes()[i].inputs) need(input);
  return crossing;
}

}  // namespace

TracedCall::Differentiated& TracedCall::differentiated() {
  const std::lock_guard lock(mutex_);
  if (differentiated_) return *differentiated_;
  auto made = std::make_unique<Differentiated>();
  const TraceWith nobody(nullptr);
  Passes unmerged = passes_;
  unmerged.merge = false;  // Gradients of what is merged would add up in another order.
  unmerged.lean = false;
  Rewritten joint = rewrite(*graph_, feed_specs(), fetches_, effects_, unmerged);
  made->joint = joint.graph;
  GraphState& graph = *made->joint;
  const auto boundary = static_cast<std::uint32_t>(graph.nodes().size());

  // Operands: the feeds, then the variables that are read.
  std::vector<ValueId> operands(joint.feeds), sources;
  for (std::uint32_t i = 0; i < boundary; ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kRead) continue;
    const Variable& variable = *graph.variables()[node.variable].eager;
    const auto same = [&](const Variable& known) { return known.id() == variable.id(); };
    if (std::any_of(made->operand_variables.begin(), made->operand_variables.end(), same)) continue;
    made->operand_variables.push_back(variable);
    operands.push_back({i, 0});
  }
  std::vector<std::size_t> source_of;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].node != kNoNode && is_floating(graph.output(operands[i]).spec.dtype)) {
      sources.push_back(operands[i]);
      source_of.push_back(i);
    }
  std::vector<GradientSeed> seeds;
  for (std::size_t i = 0; i < joint.fetches.size(); ++i) {
    if (!is_floating(graph.output(joint.fetches[i]).spec.dtype)) continue;
    seeds.push_back({joint.fetches[i], add_placeholder_like(graph, joint.fetches[i])});
    made->seeded.push_back(i);
  }
  const std::vector<ValueId> gradients = gradient_nodes(graph, seeds, sources);
  made->gradients.resize(operands.size());
  for (std::size_t i = 0; i < sources.size(); ++i) made->gradients[source_of[i]] = gradients[i];

  // What the gradients read of the forward part comes from an operand, a result, or an additional result.
  std::vector<ValueId> outputs(joint.fetches);
  for (const ValueId& value : crossing_values(graph, boundary, made->gradients)) {
    made->backward_feeds.push_back(value);
    const auto operand = std::find(operands.begin(), operands.end(), value);
    if (operand != operands.end()) {
      made->sources.push_back({true, static_cast<std::size_t>(operand - operands.begin())});
      continue;
    }
    auto output = std::find(outputs.begin(), outputs.end(), value);
    if (output == outputs.end()) output = outputs.insert(outputs.end(), value);
    made->sources.push_back({false, static_cast<std::size_t>(output - outputs.begin())});
  }
  for (const GradientSeed& seed : seeds) made->backward_feeds.push_back(seed.gradient);
  made->num_saved = outputs.size() - joint.fetches.size();
  for (const ValueId& output : outputs) made->output_specs.push_back(graph.output(output).spec);
  made->operands = operands;
  made->outputs = outputs;
  Rewritten forward = rewrite(graph, specs_of(graph, joint.feeds), outputs, effects_, passes_);
  made->forward = std::make_shared<Program>(std::move(forward), passes_);
  made->forward_variables = variables_of(*made->forward);
  differentiated_ = std::move(made);
  return *differentiated_;
}

TracedCall& TracedCall::whole() {
  const std::lock_guard lock(mutex_);
  Differentiated& made = *differentiated_;
  if (made.whole) return *made.whole;
  const TraceWith nobody(nullptr);
  Passes unmerged = passes_;
  unmerged.merge = unmerged.lean = false;
  Rewritten copy = rewrite(*made.joint, specs_of(*made.joint, made.operands), made.outputs, false, unmerged);
  GraphState& graph = *copy.graph;
  std::vector<ValueId> call_feeds(copy.feeds), sources;
  std::vector<std::size_t> source_of;
  for (std::size_t i = 0; i < made.operands.size(); ++i) {
    if (call_feeds[i].node == kNoNode || !is_floating(graph.output(call_feeds[i]).spec.dtype)) continue;
    sources.push_back(call_feeds[i]);
    source_of.push_back(i);
  }
  std::vector<GradientSeed> seeds;
  for (const ValueId& fetch : copy.fetches) {
    if (!is_floating(graph.output(fetch).spec.dtype)) continue;
    seeds.push_back({fetch, add_placeholder_like(graph, fetch)});
    call_feeds.push_back(seeds.back().gradient);
  }
  const std::vector<ValueId> gradients = gradient_nodes(graph, seeds, sources);
  std::vector<ValueId> fetches;
  made.whole_has.assign(made.operands.size(), false);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].node == kNoNode) continue;
    made.whole_has[source_of[i]] = true;
    fetches.push_back(gradients[i]);
  }
  made.whole = make(copy.graph, std::move(call_feeds), std::move(fetches), false, passes_);
  return *made.whole;
}

}  // namespace plimsoll::internal
