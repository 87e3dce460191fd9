#include "plimsoll/graph/program_match.h"

#include <new>
#include <string_view>

namespace plimsoll::internal {

std::unique_ptr<Op> op_made_by(FunctionRef<Tensor(const std::vector<Tensor>&)> function,
                               const std::vector<const TensorSpec*>& specs, Device& device) {
  const std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kPlan);  // Not asked for any device.
  const TraceWith tracing(graph.get());
  std::vector<Tensor> operands;
  for (const TensorSpec* spec : specs) operands.push_back(graph->add_placeholder(*spec, device, "operand"));
  function(operands);
  if (graph->nodes().size() != specs.size() + 1 || !graph->nodes().back().op) return nullptr;
  const Op& made = *graph->nodes().back().op;
  return std::unique_ptr<Op>(made.copy_to(::operator new(made.object_bytes())));
}

bool is_product(const StepList& list, const StepList::Step& step, MatmulOptions options) {
  if (std::string_view(step.op->name()) != "matmul" || step.in.size() != 2 || step.out.size() != 1) return false;
  const auto product = [&](const std::vector<Tensor>& in) { return matmul(in[0], in[1], options); };
  const TensorSpec *a = &list.spec(step.in[0]), *b = &list.spec(step.in[1]);
  if (a->shape.rank() < 2 || b->shape.rank() < 2) return false;
  const std::size_t last = a->shape.rank() - 1, rows = b->shape.rank() - 2;
  if (a->shape[options.transpose_a ? last - 1 : last] != b->shape[options.transpose_b ? rows + 1 : rows]) return false;
  return are_same(op_made_by(product, {a, b}, *step.device).get(), *step.op);
}

}  // namespace plimsoll::internal
