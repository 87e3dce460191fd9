// Steps that become one: elementwise operations that follow each other, each taking what only the one before gives; and
// a product with the bias that is added to it and the activation after that.
#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/chain_op.h"
#include "plimsoll/graph/program_builder.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/matmul.h"

namespace plimsoll {
namespace {

constexpr std::size_t kFewestBytes = 8192;  // Of a result; below, a pass over it is no cost.
constexpr std::size_t kMostLinks = 8;

std::unique_ptr<Op> copy_of(const Op& op) {
  void* const memory = ::operator new(op.object_bytes());
  std::memset(memory, 0, op.object_bytes());  // So that padding compares equal.
  return std::unique_ptr<Op>(op.copy_to(memory));
}

// The one op that `f` makes of operands with these specs; nullptr when it makes none or several.
template <class F>
std::unique_ptr<Op> op_made_by(F&& f, const std::vector<const TensorSpec*>& specs, Device& device) {
  const std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kTrace);
  const TraceWith tracing(graph.get());
  std::vector<Tensor> operands;
  for (const TensorSpec* spec : specs) operands.push_back(graph->add_placeholder(*spec, device, "operand"));
  f(operands);
  if (graph->nodes().size() != specs.size() + 1 || !graph->nodes().back().op) return nullptr;
  return copy_of(*graph->nodes().back().op);
}

std::optional<Activation> activation_named(const char* name) {
  try {
    return activation_of(name);
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

}  // namespace

// How many steps and fetches use each value, views of it included.
std::vector<std::uint32_t> ProgramBuilder::count_uses() {
  std::vector<std::uint32_t> uses(roots_.size(), 0);
  for (const BuildStep& step : steps_)
    for (const ValueId& input : step.in) ++uses[value(input).root];
  for (const ValueId& fetch : rewritten_.fetches)
    if (fetch.node != kNoNode) uses[value(fetch).root] += 2;
  return uses;
}

bool ProgramBuilder::may_be_link(const BuildStep& step) const {
  const Node& node = graph_.node(step.node);
  if (node.kind != NodeKind::kOp || step.op != node.op || step.out.size() != 1 || step.scratch_bytes > 0) return false;
  const TensorSpec& made = spec(step.out[0]);
  if (made.bytes() < kFewestBytes) return false;
  std::vector<const TensorSpec*> in;
  for (const ValueId& input : step.in) in.push_back(&spec(input));
  return ChainOp::takes(*step.op, in, made);
}

// Whether the step can take what `before` gives as the value that goes along the chain.
bool ProgramBuilder::continues(const BuildStep& before, const BuildStep& step, const std::vector<std::uint32_t>& uses) {
  const std::uint32_t given = value(before.out[0]).root;
  std::uint32_t here = 0;
  for (std::size_t i = 0; i < step.in.size(); ++i) {
    if (value(step.in[i]).root != given) continue;
    // In place: the kernel may write where it reads.
    if (step.in[i] != before.out[0] || (step.op->facts().overwrites & slot(i)) == 0) return false;
    ++here;
  }
  return here > 0 && uses[given] == here && roots_[given].place == Place::kPlanned && step.device == before.device &&
         spec(step.out[0]).bytes() == spec(before.out[0]).bytes();
}

ProgramBuilder::BuildStep ProgramBuilder::joined(std::size_t begin, std::size_t end) {
  BuildStep chain;
  std::vector<ChainOp::Link> links;
  for (std::size_t i = begin; i < end; ++i) {
    const BuildStep& step = steps_[i];
    ChainOp::Link link{.op = step.op, .num_in = static_cast<std::uint8_t>(step.in.size())};
    for (std::size_t k = 0; k < step.in.size(); ++k) {
      if (i > begin && step.in[k] == steps_[i - 1].out[0]) {
        link.in[k] = ChainOp::kBefore;
        continue;
      }
      auto known = std::find(chain.in.begin(), chain.in.end(), step.in[k]);
      if (known == chain.in.end()) known = chain.in.insert(chain.in.end(), step.in[k]);
      link.in[k] = static_cast<std::uint8_t>(known - chain.in.begin());
    }
    links.push_back(link);
    if (i + 1 < end) forget(step.out[0]);
  }
  chain.node = steps_[end - 1].node;
  chain.out = steps_[end - 1].out;
  chain.device = steps_[end - 1].device;
  program_.own_ops_.push_back(std::make_unique<ChainOp>(std::move(links)));
  chain.op = program_.own_ops_.back().get();
  return chain;
}

// x w, as dense() does it: no side transposed, w a matrix.
bool ProgramBuilder::is_plain_product(const BuildStep& step) const {
  if (std::string_view(step.op->name()) != "matmul" || step.in.size() != 2 || step.out.size() != 1) return false;
  const Shape &x = spec(step.in[0]).shape, &w = spec(step.in[1]).shape;
  if (w.rank() != 2 || x.rank() < 2 || x.back() != w[0]) return false;
  const std::unique_ptr<Op> plain = op_made_by([](const std::vector<Tensor>& in) { return matmul(in[0], in[1]); },
                                               {&spec(step.in[0]), &spec(step.in[1])}, *step.device);
  return plain && plain->object_bytes() == step.op->object_bytes() &&
         std::memcmp(static_cast<const void*>(plain.get()), static_cast<const void*>(step.op), plain->object_bytes()) ==
             0;
}

// The steps from `begin` on that dense() does in one, with the op for them; none when there is nothing to gain.
ProgramBuilder::Fusion ProgramBuilder::dense_from(std::size_t begin, const std::vector<std::uint32_t>& uses) {
  const BuildStep& product = steps_[begin];
  if (begin + 1 >= steps_.size() || !is_plain_product(product)) return {};
  const BuildStep& sum = steps_[begin + 1];
  const TensorSpec& made = spec(product.out[0]);
  if (std::string_view(sum.op->name()) != "add" || sum.in.size() != 2 || sum.device != product.device) return {};
  const std::size_t side = sum.in[0] == product.out[0] ? 0 : 1;
  if (sum.in[side] != product.out[0] || sum.in[1 - side] == product.out[0]) return {};
  const ValueId bias = sum.in[1 - side];
  if (!(spec(bias).shape == Shape({made.shape.back()})) || !(spec(sum.out[0]).shape == made.shape)) return {};
  if (uses[value(product.out[0]).root] != 1 || roots_[value(product.out[0]).root].place != Place::kPlanned) return {};
  const auto dense_with = [&](Activation activation) {
    return op_made_by([&](const std::vector<Tensor>& in) { return dense(in[0], in[1], in[2], activation); },
                      {&spec(product.in[0]), &spec(product.in[1]), &spec(bias)}, *product.device);
  };
  Fusion fusion{.op = dense_with(Activation::linear), .end = begin + 2, .in = {product.in[0], product.in[1], bias}};
  if (!fusion.op) return {};
  if (begin + 2 < steps_.size()) {
    const BuildStep& last = steps_[begin + 2];
    const std::optional<Activation> activation = activation_named(last.op->name());
    const bool follows = last.in.size() == 1 && last.in[0] == sum.out[0] && last.device == sum.device &&
                         uses[value(sum.out[0]).root] == 1 && roots_[value(sum.out[0]).root].place == Place::kPlanned;
    if (activation && follows)
      if (std::unique_ptr<Op> op = dense_with(*activation)) {
        fusion.op = std::move(op);
        fusion.end = begin + 3;
      }
  }
  return fusion;
}

void ProgramBuilder::fuse_dense() {
  const std::vector<std::uint32_t> uses = count_uses();
  std::vector<BuildStep> fused;
  for (std::size_t i = 0; i < steps_.size();) {
    Fusion fusion = dense_from(i, uses);
    if (!fusion.op) {
      fused.push_back(std::move(steps_[i++]));
      continue;
    }
    BuildStep step;
    step.node = steps_[fusion.end - 1].node;
    step.in = fusion.in;
    step.out = steps_[fusion.end - 1].out;
    step.device = steps_[i].device;
    std::vector<SpecRef> refs;
    for (const ValueId& input : step.in) refs.push_back({&spec(input).shape, spec(input).dtype});
    SpecList specs;
    specs.add(spec(step.out[0]).shape, spec(step.out[0]).dtype);
    step.scratch_bytes = fusion.op->workspace_bytes(Specs(refs), specs);
    for (std::size_t k = i; k + 1 < fusion.end; ++k) forget(steps_[k].out[0]);
    program_.own_ops_.push_back(std::move(fusion.op));
    step.op = program_.own_ops_.back().get();
    fused.push_back(std::move(step));
    i = fusion.end;
  }
  steps_ = std::move(fused);
}

// Nobody sees the value any more.
void ProgramBuilder::forget(ValueId id) {
  roots_[value(id).root].place = Place::kNothing;
  roots_[value(id).root].bytes = 0;
}

void ProgramBuilder::fuse_chains() {
  const std::vector<std::uint32_t> uses = count_uses();
  std::vector<BuildStep> fused;
  for (std::size_t i = 0; i < steps_.size();) {
    std::size_t end = i + 1;
    if (may_be_link(steps_[i]))
      while (end < steps_.size() && end - i < kMostLinks && may_be_link(steps_[end]) &&
             continues(steps_[end - 1], steps_[end], uses))
        ++end;
    if (end - i > 1)
      fused.push_back(joined(i, end));
    else
      fused.push_back(std::move(steps_[i]));
    i = end;
  }
  steps_ = std::move(fused);
}

}  // namespace plimsoll
