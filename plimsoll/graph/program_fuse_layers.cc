// Steps of one layer become one: a product or convolution with the bias that is added to it and the activation after
// that; a batch norm inside of the convolution before it; attention written out as products and a softmax.
#include <new>
#include <optional>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/program_builder.h"
#include "plimsoll/ops/fused_ops.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

constexpr std::size_t kNotTaken = SIZE_MAX;

std::unique_ptr<Op> copy_of(const Op& op) { return std::unique_ptr<Op>(op.copy_to(::operator new(op.object_bytes()))); }

// The one op that `f` makes of operands with these specs; nullptr when it makes none or several.
template <class F>
std::unique_ptr<Op> op_made_by(F&& f, const std::vector<const TensorSpec*>& specs, Device& device) {
  const std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kPlan);  // Not asked for any device.
  const TraceWith tracing(graph.get());
  std::vector<Tensor> operands;
  for (const TensorSpec* spec : specs) operands.push_back(graph->add_placeholder(*spec, device, "operand"));
  f(operands);
  if (graph->nodes().size() != specs.size() + 1 || !graph->nodes().back().op) return nullptr;
  return copy_of(*graph->nodes().back().op);
}

bool are_same(const Op* a, const Op& b) { return a && a->same_as(b); }

std::optional<Activation> activation_named(const char* name) {
  try {
    return activation_of(name);
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

bool is_named(const Op& op, std::string_view name) { return name == op.name(); }

// What an elementwise op of one operand makes of a number.
double value_at(const Op& op, DType dtype, double x) {
  const Shape one = Shape::scalar();
  if (dtype == f64) {
    double y = 0;
    const ConstTensorView in(&x, 0, dtype, one);
    const TensorView out(&y, 0, dtype, one);
    op.run({{&in, 1}, {&out, 1}, {}});
    return y;
  }
  const auto narrow = static_cast<float>(x);
  float y = 0;
  const ConstTensorView in(&narrow, 0, dtype, one);
  const TensorView out(&y, 0, dtype, one);
  op.run({{&in, 1}, {&out, 1}, {}});
  return static_cast<double>(y);
}

// The number that the op multiplies its operand by, if it does that.
std::optional<double> factor_of(const Op& op, DType dtype) {
  if (!is_named(op, "multiply") && !is_named(op, "divide")) return std::nullopt;
  const double factor = value_at(op, dtype, 1);
  if (factor == 0 || value_at(op, dtype, 2) != 2 * factor) return std::nullopt;
  return factor;
}

// Whether a mask of this shape is added to scores of that one as attention adds it.
bool masks(const TensorSpec& mask, const TensorSpec& scores) {
  if (mask.dtype != scores.dtype || mask.shape.rank() != 4 || mask.shape[3] != scores.shape[3]) return false;
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (mask.shape[axis] != 1 && mask.shape[axis] != scores.shape[axis]) return false;
  return true;
}

}  // namespace

bool ProgramBuilder::is_product(const BuildStep& step, MatmulOptions options) const {
  if (!is_named(*step.op, "matmul") || step.in.size() != 2 || step.out.size() != 1) return false;
  const auto product = [&](const std::vector<Tensor>& in) { return matmul(in[0], in[1], options); };
  const TensorSpec *a = &spec(step.in[0]), *b = &spec(step.in[1]);
  if (a->shape.rank() < 2 || b->shape.rank() < 2) return false;
  const std::size_t last = a->shape.rank() - 1, rows = b->shape.rank() - 2;
  if (a->shape[options.transpose_a ? last - 1 : last] != b->shape[options.transpose_b ? rows + 1 : rows]) return false;
  return are_same(op_made_by(product, {a, b}, *step.device).get(), *step.op);
}

// Which operand of the step is what the step before it gives, if nobody else uses that; else kNotTaken.
std::size_t ProgramBuilder::taken_by(std::size_t step, const Uses& uses) {
  if (step == 0 || step >= steps_.size() || steps_[step - 1].out.size() != 1) return kNotTaken;
  const BuildStep &before = steps_[step - 1], &here = steps_[step];
  const std::uint32_t given = value(before.out[0]).root;
  if (uses[given] != 1 || roots_[given].place != Place::kPlanned || here.device != before.device) return kNotTaken;
  for (std::size_t i = 0; i < here.in.size(); ++i)
    if (here.in[i] == before.out[0]) return i;
  return kNotTaken;
}

// The step at `begin`, a bias added to what it gives, and an activation: with the op that `make` has for them.
ProgramBuilder::Fusion ProgramBuilder::biased_from(std::size_t begin, const Uses& uses, MakeBiased make) {
  const std::size_t side = taken_by(begin + 1, uses);
  if (side == kNotTaken) return {};
  const BuildStep &first = steps_[begin], &sum = steps_[begin + 1];
  if (!is_named(*sum.op, "add") || sum.in.size() != 2 || first.in.size() != 2) return {};
  const ValueId bias = sum.in[1 - side];
  const TensorSpec& made = spec(first.out[0]);
  if (made.shape.rank() == 0 || !(spec(bias).shape == Shape({made.shape.back()})) ||
      !(spec(sum.out[0]).shape == made.shape))
    return {};
  if (spec(bias).dtype != made.dtype) return {};
  Fusion fusion{.op = make(Activation::linear, spec(bias)), .end = begin + 2, .in = {first.in[0], first.in[1], bias}};
  if (!fusion.op || taken_by(begin + 2, uses) != 0 || steps_[begin + 2].in.size() != 1) return fusion;
  const std::optional<Activation> activation = activation_named(steps_[begin + 2].op->name());
  if (!activation) return fusion;
  if (std::unique_ptr<Op> op = make(*activation, spec(bias))) {
    fusion.op = std::move(op);
    fusion.end = begin + 3;
  }
  return fusion;
}

ProgramBuilder::Fusion ProgramBuilder::dense_from(std::size_t begin, const Uses& uses) {
  const BuildStep& product = steps_[begin];
  if (!is_named(*product.op, "matmul") || taken_by(begin + 1, uses) == kNotTaken) return {};
  if (spec(product.in[1]).shape.rank() != 2 || !is_product(product, {})) return {};
  return biased_from(begin, uses, [&](Activation activation, const TensorSpec& bias) {
    return op_made_by([&](const std::vector<Tensor>& in) { return dense(in[0], in[1], in[2], activation); },
                      {&spec(product.in[0]), &spec(product.in[1]), &bias}, *product.device);
  });
}

ProgramBuilder::Fusion ProgramBuilder::convolution_from(std::size_t begin, const Uses& uses) {
  const BuildStep& convolution = steps_[begin];
  if (convolution.in.size() != 2 || taken_by(begin + 1, uses) == kNotTaken) return {};
  if (passes_.fuse_convolution) {
    Fusion fusion = biased_from(begin, uses, [&](Activation activation, const TensorSpec&) {
      return convolution_with_bias(*convolution.op, activation);
    });
    if (fusion.op) return fusion;
  }
  if (!passes_.fold_norm || taken_by(begin + 1, uses) != 0) return {};
  const BuildStep& norm = steps_[begin + 1];
  Fusion fusion{.op = convolution_with_norm(*convolution.op, *norm.op), .end = begin + 2, .in = convolution.in};
  fusion.in.insert(fusion.in.end(), norm.in.begin() + 1, norm.in.end());
  return fusion;
}

ProgramBuilder::Fusion ProgramBuilder::attention_from(std::size_t begin, const Uses& uses) {
  const BuildStep& scores = steps_[begin];
  if (!is_named(*scores.op, "matmul") || taken_by(begin + 1, uses) == kNotTaken) return {};
  const TensorSpec &q = spec(scores.in[0]), &k = spec(scores.in[1]), made = spec(scores.out[0]);
  if (q.shape.rank() != 4 || k.shape.rank() != 4 || (q.dtype != f32 && q.dtype != f64) || q.shape[3] == 0) return {};
  if (q.shape[0] != k.shape[0] || q.shape[1] != k.shape[1] || !is_product(scores, {.transpose_b = true})) return {};
  std::size_t at = begin + 1;
  double scale = 1;
  if (taken_by(at, uses) == 0 && steps_[at].in.size() == 1)
    if (const std::optional<double> factor = factor_of(*steps_[at].op, q.dtype)) {
      scale = *factor;
      ++at;
    }
  Fusion fusion{.in = {scores.in[0], scores.in[1]}};
  std::optional<ValueId> mask;
  const std::size_t side = taken_by(at, uses);
  if (side != kNotTaken && is_named(*steps_[at].op, "add") && steps_[at].in.size() == 2 &&
      masks(spec(steps_[at].in[1 - side]), made))
    mask = steps_[at++].in[1 - side];
  if (taken_by(at, uses) != 0 || steps_[at].in.size() != 1) return {};
  const auto plain = [](const std::vector<Tensor>& in) { return softmax(in[0]); };
  if (!are_same(op_made_by(plain, {&made}, *scores.device).get(), *steps_[at].op)) return {};
  if (taken_by(++at, uses) != 0 || steps_[at].in.size() != 2) return {};
  const TensorSpec& v = spec(steps_[at].in[1]);
  if (v.shape.rank() != 4 || v.shape[0] != q.shape[0] || v.shape[1] != q.shape[1] || !is_product(steps_[at], {}))
    return {};
  fusion.in.push_back(steps_[at].in[1]);
  if (mask) fusion.in.push_back(*mask);
  fusion.op = attention_of(scale, mask.has_value());
  fusion.end = at + 1;
  return fusion;
}

// The steps from `begin` on that one op can do, with that op; none when there is nothing to gain.
ProgramBuilder::Fusion ProgramBuilder::fusion_from(std::size_t begin, const Uses& uses) {
  Fusion fusion;
  if (passes_.fuse_attention) fusion = attention_from(begin, uses);
  if (!fusion.op && passes_.fuse_dense) fusion = dense_from(begin, uses);
  if (!fusion.op && (passes_.fuse_convolution || passes_.fold_norm)) fusion = convolution_from(begin, uses);
  return fusion;
}

void ProgramBuilder::fuse_layers() {
  const Uses uses = count_uses();
  std::vector<BuildStep> fused;
  for (std::size_t i = 0; i < steps_.size();) {
    Fusion fusion = fusion_from(i, uses);
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

}  // namespace plimsoll
