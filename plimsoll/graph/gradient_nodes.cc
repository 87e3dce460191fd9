#include "plimsoll/graph/gradient_nodes.h"

#include <unordered_set>

#include "plimsoll/autograd/backward.h"
#include "plimsoll/autograd/tape_record.h"
#include "plimsoll/tensor/context_guards.h"

namespace plimsoll::internal {
namespace {

// The nodes that the targets are computed from.
std::vector<bool> ancestors(const GraphState& graph, std::span<const ValueId> targets) {
  std::vector<bool> marked(graph.nodes().size(), false);
  for (const ValueId& target : targets) marked[target.node] = true;
  for (std::size_t i = marked.size(); i-- > 0;)
    if (marked[i])
      for (const ValueId& input : graph.nodes()[i].inputs) marked[input.node] = true;
  return marked;
}

// Records these nodes as a tape would have.
void replay(GraphState& graph, const std::vector<bool>& marked, TapeRecord& record) {
  const NameScopeGuard kept;
  for (std::uint32_t i = 0; i < marked.size(); ++i) {
    if (!marked[i] || graph.node(i).kind != NodeKind::kOp) continue;
    bool watched = false;
    for (const ValueId& input : graph.node(i).inputs) watched |= record.find(graph.output(input).id) != kNoSlot;
    if (!watched) continue;
    std::vector<Tensor> inputs, outputs;
    for (const ValueId& input : graph.node(i).inputs) inputs.push_back(graph.tensor(input));
    for (std::uint32_t output = 0; output < graph.node(i).outputs.size(); ++output)
      outputs.push_back(graph.tensor({i, output}));
    std::vector<const Tensor*> operands;
    for (const Tensor& input : inputs) operands.push_back(&input);
    ThreadContext::current().name_scope = graph.node(i).scope;  // As if it were added there.
    record.add(*graph.node(i).op, operands, outputs);
  }
}

}  // namespace

std::vector<ValueId> gradient_nodes(GraphState& graph, std::span<const GradientSeed> seeds,
                                    std::span<const ValueId> sources) {
  const auto locked = graph.lock();
  TapeRecord record;
  std::vector<Tensor> source_tensors;
  for (const ValueId& source : sources) {
    source_tensors.push_back(graph.tensor(source));
    record.add_slot(source_tensors.back().id());
  }
  std::vector<ValueId> targets;
  for (const GradientSeed& seed : seeds) targets.push_back(seed.target);
  const TraceWith here(&graph);
  replay(graph, ancestors(graph, targets), record);
  std::vector<BackwardSeed> backward;
  for (const GradientSeed& seed : seeds)
    backward.push_back(
        {graph.tensor(seed.target), seed.gradient.node == kNoNode ? Tensor() : graph.tensor(seed.gradient)});
  const CategoryGuard category(Category::kGradients);
  const std::vector<Tensor> gradients = run_backward(record, backward, source_tensors, false);
  std::vector<ValueId> result;
  for (const Tensor& gradient : gradients)
    result.push_back(gradient.is_empty_handle() ? ValueId{} : graph.resolve(gradient, "gradients", "a gradient"));
  return result;
}

std::vector<ValueId> gradient_nodes(GraphState& graph, ValueId target, std::span<const ValueId> sources) {
  const GradientSeed seed{target, {}};
  return gradient_nodes(graph, {&seed, 1}, sources);
}

std::vector<bool> depends_on(const GraphState& graph, ValueId target, std::span<const ValueId> sources) {
  std::vector<bool> result;
  const std::vector<bool> marked = ancestors(graph, {&target, 1});
  for (const ValueId& source : sources) {
    // By identity, because all reads of one variable are the same source.
    std::unordered_set<std::uint64_t> ids = {graph.output(source).id};
    for (std::uint32_t i = 0; i < marked.size(); ++i) {
      const Node& node = graph.node(i);
      const bool passes = node.kind == NodeKind::kGradients || (node.op && node.op->facts().has_gradient);
      if (!marked[i] || !passes) continue;
      bool depends = false;
      for (const ValueId& input : node.inputs)
        depends |= is_floating(graph.output(input).spec.dtype) && ids.count(graph.output(input).id) != 0;
      if (depends)
        for (const NodeOutput& output : node.outputs) ids.insert(output.id);
    }
    result.push_back(ids.count(graph.output(target).id) != 0);
  }
  return result;
}

}  // namespace plimsoll::internal
