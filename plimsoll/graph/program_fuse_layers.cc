// Turns the steps of one layer into one: a product or convolution with the bias added to it and the following
// activation; a batch norm inside the preceding convolution; attention written out as products and a softmax.
#include <optional>

#include "plimsoll/base/error.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/program_match.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/fused_ops.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kNotTaken = SIZE_MAX;

std::optional<Activation> activation_named(const char* name) {
  try {
    return activation_of(name);
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

bool is_named(const Op& op, std::string_view name) { return name == op.name(); }

// The result of an elementwise op of one operand for a number.
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

struct Fusion {
  std::unique_ptr<Op> op;
  std::size_t end = 0;  // After the last step it replaces.
  std::vector<std::uint32_t> in;
};

// Finds steps that one op can do.
class LayerFinder {
 public:
  LayerFinder(const StepList& list, const Passes& passes) : list_(list), passes_(passes), uses_(count_uses(list)) {}

  // The steps from `begin` on that one op can do, with that op; empty when there is nothing to gain.
  Fusion fusion_from(std::size_t begin) const {
    Fusion fusion;
    if (passes_.fuse_attention) fusion = attention_from(begin);
    if (!fusion.op && passes_.fuse_dense) fusion = dense_from(begin);
    if (!fusion.op && (passes_.fuse_convolution || passes_.fold_norm)) fusion = convolution_from(begin);
    return fusion;
  }

 private:
  using MakeFinished = FunctionRef<std::unique_ptr<Op>(Activation activation, const TensorSpec* bias)>;

  // Which operand of the step is the previous step's result, if nothing else uses that; else kNotTaken.
  std::size_t taken_by(std::size_t step) const {
    if (step == 0 || step >= list_.steps.size() || list_.steps[step - 1].out.size() != 1) return kNotTaken;
    const StepList::Step &before = list_.steps[step - 1], &here = list_.steps[step];
    const std::uint32_t given = list_.values[before.out[0]].root;
    if (uses_[given] != 1 || list_.roots[given].place != StepList::Place::kPlanned || here.device != before.device)
      return kNotTaken;
    for (std::size_t i = 0; i < here.in.size(); ++i)
      if (here.in[i] == before.out[0]) return i;
    return kNotTaken;
  }

  // The step at `begin`, a bias added to its result, and an activation; at least one of these two. `make` returns the
  // op for them, with nullptr for a bias that there is not.
  Fusion finished_from(std::size_t begin, MakeFinished make) const {
    const StepList::Step& first = list_.steps[begin];
    if (first.in.size() != 2) return {};
    Fusion fusion{.end = begin + 1, .in = {first.in[0], first.in[1]}};
    const TensorSpec* bias = nullptr;
    if (const std::optional<std::uint32_t> added = bias_after(begin)) {
      bias = &list_.spec(*added);
      fusion.in.push_back(*added);
      fusion.op = make(Activation::linear, bias);
      if (!fusion.op) return {};
      ++fusion.end;
    }
    if (taken_by(fusion.end) != 0 || list_.steps[fusion.end].in.size() != 1) return fusion;
    const std::optional<Activation> activation = activation_named(list_.steps[fusion.end].op->name());
    if (!activation || *activation == Activation::linear) return fusion;
    if (std::unique_ptr<Op> op = make(*activation, bias)) {
      fusion.op = std::move(op);
      ++fusion.end;
    }
    return fusion;
  }

  // What the next step adds to the result of this one, if it is a bias: one number for each channel.
  std::optional<std::uint32_t> bias_after(std::size_t begin) const {
    const std::size_t side = taken_by(begin + 1);
    if (side == kNotTaken) return std::nullopt;
    const StepList::Step& sum = list_.steps[begin + 1];
    if (!is_named(*sum.op, "add") || sum.in.size() != 2) return std::nullopt;
    const TensorSpec &made = list_.spec(list_.steps[begin].out[0]), &bias = list_.spec(sum.in[1 - side]);
    if (made.shape.rank() == 0 || !(bias.shape == Shape({made.shape.back()})) || bias.dtype != made.dtype ||
        !(list_.spec(sum.out[0]).shape == made.shape))
      return std::nullopt;
    return sum.in[1 - side];
  }

  Fusion dense_from(std::size_t begin) const {
    const StepList::Step& product = list_.steps[begin];
    if (!is_named(*product.op, "matmul") || taken_by(begin + 1) == kNotTaken) return {};
    if (list_.spec(product.in[1]).shape.rank() != 2 || !is_product(list_, product, {})) return {};
    if (!is_floating(list_.spec(product.out[0]).dtype)) return {};
    return finished_from(begin, [](Activation activation, const TensorSpec*) { return dense_with(activation); });
  }

  Fusion convolution_from(std::size_t begin) const {
    const StepList::Step& convolution = list_.steps[begin];
    if (convolution.in.size() != 2 || taken_by(begin + 1) == kNotTaken) return {};
    if (passes_.fuse_convolution) {
      Fusion fusion = finished_from(begin, [&](Activation activation, const TensorSpec* bias) {
        return convolution_with(*convolution.op, bias != nullptr, activation);
      });
      if (fusion.op) return fusion;
    }
    if (!passes_.fold_norm || taken_by(begin + 1) != 0) return {};
    const StepList::Step& norm = list_.steps[begin + 1];
    Fusion fusion{.op = convolution_with_norm(*convolution.op, *norm.op), .end = begin + 2, .in = convolution.in};
    fusion.in.insert(fusion.in.end(), norm.in.begin() + 1, norm.in.end());
    return fusion;
  }

  Fusion attention_from(std::size_t begin) const {
    const StepList::Step& scores = list_.steps[begin];
    if (!is_named(*scores.op, "matmul") || taken_by(begin + 1) == kNotTaken) return {};
    const TensorSpec &q = list_.spec(scores.in[0]), &k = list_.spec(scores.in[1]), made = list_.spec(scores.out[0]);
    if (q.shape.rank() != 4 || k.shape.rank() != 4 || (q.dtype != f32 && q.dtype != f64) || q.shape[3] == 0) return {};
    if (q.shape[0] != k.shape[0] || q.shape[1] != k.shape[1] || !is_product(list_, scores, {.transpose_b = true}))
      return {};
    std::size_t at = begin + 1;
    double scale = 1;
    if (taken_by(at) == 0 && list_.steps[at].in.size() == 1)
      if (const std::optional<double> factor = factor_of(*list_.steps[at].op, q.dtype)) {
        scale = *factor;
        ++at;
      }
    Fusion fusion{.in = {scores.in[0], scores.in[1]}};
    std::optional<std::uint32_t> mask;
    const std::size_t side = taken_by(at);
    if (side != kNotTaken && is_named(*list_.steps[at].op, "add") && list_.steps[at].in.size() == 2 &&
        masks(list_.spec(list_.steps[at].in[1 - side]), made))
      mask = list_.steps[at++].in[1 - side];
    if (taken_by(at) != 0 || list_.steps[at].in.size() != 1) return {};
    const auto plain = [](const std::vector<Tensor>& in) { return softmax(in[0]); };
    if (!are_same(op_made_by(plain, {&made}, *scores.device).get(), *list_.steps[at].op)) return {};
    if (taken_by(++at) != 0 || list_.steps[at].in.size() != 2) return {};
    const TensorSpec& v = list_.spec(list_.steps[at].in[1]);
    if (v.shape.rank() != 4 || v.shape[0] != q.shape[0] || v.shape[1] != q.shape[1] ||
        !is_product(list_, list_.steps[at], {}))
      return {};
    fusion.in.push_back(list_.steps[at].in[1]);
    if (mask) fusion.in.push_back(*mask);
    fusion.op = attention_of(scale, mask.has_value());
    fusion.end = at + 1;
    return fusion;
  }

  const StepList& list_;
  const Passes& passes_;
  const Uses uses_;
};

}  // namespace

void fuse_layers(StepList& list, const Passes& passes) {
  const LayerFinder finder(list, passes);
  std::vector<StepList::Step> fused;
  for (std::size_t i = 0; i < list.steps.size();) {
    Fusion fusion = finder.fusion_from(i);
    if (!fusion.op) {
      fused.push_back(std::move(list.steps[i++]));
      continue;
    }
    StepList::Step step;
    step.node = list.steps[fusion.end - 1].node;
    step.in = fusion.in;
    step.out = list.steps[fusion.end - 1].out;
    step.device = list.steps[i].device;
    step.scratch_bytes = list.scratch_of(*fusion.op, step.in, {step.out[0]});
    step.checks = fusion.op->facts().checks;
    for (std::size_t k = i; k + 1 < fusion.end; ++k) forget_value(list, list.steps[k].out[0]);
    step.op = fusion.op.get();
    list.ops.push_back(std::move(fusion.op));
    fused.push_back(std::move(step));
    i = fusion.end;
  }
  list.steps = std::move(fused);
}

}  // namespace plimsoll::internal
