#include "plimsoll/ops/dense.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/convolution_mask.h"
#include "plimsoll/kernels/matmul.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/fused_ops.h"
#include "plimsoll/ops/internal/convolution_ops.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/internal/elementwise_ops.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll {
namespace {

struct Named {
  const char* name;
  UnaryOp op;
};

constexpr Named kActivations[] = {
    {"linear", UnaryOp::kCount},   {"relu", UnaryOp::relu},         {"relu6", UnaryOp::relu6},
    {"tanh", UnaryOp::tanh},       {"sigmoid", UnaryOp::sigmoid},   {"hard_sigmoid", UnaryOp::hard_sigmoid},
    {"elu", UnaryOp::elu},         {"selu", UnaryOp::selu},         {"gelu", UnaryOp::gelu},
    {"swish", UnaryOp::swish},     {"softplus", UnaryOp::softplus}, {"softsign", UnaryOp::softsign},
    {"exponential", UnaryOp::exp},
};

UnaryOp unary_of(Activation activation) noexcept { return kActivations[static_cast<std::size_t>(activation)].op; }

// Whether the gradient can be computed from the result alone, so that the activation may be part of the product.
bool fuses(Activation activation) noexcept {
  return activation == Activation::linear || Unary(unary_of(activation)).saved(slot(0)).outputs != 0;
}

// The gradient of an activation's input, from its result and the gradient of that, by the activation's own rule.
class ThroughActivation final : public GradientContext {
 public:
  ThroughActivation(const Tensor& y, Tensor g) noexcept : y_(y), g_(std::move(g)) {}
  Tensor of(Activation activation) {
    Unary(unary_of(activation)).gradient(*this);
    return std::move(result_);
  }

  std::size_t num_inputs() const noexcept override { return 1; }
  bool wants(std::size_t) const noexcept override { return true; }
  const Shape& input_shape(std::size_t) const override { return y_.shape(); }
  DType input_dtype(std::size_t) const override { return y_.dtype(); }
  const Tensor& input(std::size_t) override { return y_; }  // Never read by those that fuse.
  const Tensor& output(std::size_t) override { return y_; }
  const Tensor& grad(std::size_t) override { return g_; }
  Tensor take_grad() override { return std::move(g_); }
  bool has_grad(std::size_t) const noexcept override { return true; }
  void give(std::size_t, Tensor gradient) override { result_ = std::move(gradient); }

 private:
  const Tensor& y_;
  Tensor g_, result_;
};

// All but the last axis as one.
Shape as_matrix(const Shape& shape) {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < shape.rank(); ++axis) rows *= shape[axis];
  return {rows, shape.back()};
}

Tensor matrix(const Tensor& x) { return x.rank() == 2 ? x : x.reshape(as_matrix(x.shape())); }

// With a mask, output 1 holds one bit per element that says where a relu's result is above zero. The gradient reads it
// instead of the result, which others may then free.
class Dense final : public OpOf<Dense> {
 public:
  explicit Dense(Activation activation, bool with_mask = false) noexcept
      : activation_(activation), with_mask_(with_mask) {}
  const char* name() const noexcept override { return "dense"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override {
    if (out[0].shape.size() == 0) return 0;
    const Shape &x = in.shape(0), &w = in.shape(1);
    return matmul_scratch_bytes(x.rank() == 2 ? x : as_matrix(x), w, in.dtype(0), {});
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    return Op::cost(in, out) +
           multiplication_cost(out[0].shape.size() * static_cast<std::uint64_t>(in.shape(0).back()));
  }
  void run(const OpRun& run) const noexcept override {
    MatmulEpilogue epilogue;
    if (run.in.size() > 2) epilogue.bias = &run.in[2];
    if (activation_ != Activation::linear) epilogue.activation = unary_of(activation_);
    const ConstTensorView& x = run.in[0];
    const TensorView& out = run.out[0];
    if (x.rank() == 2)
      internal::matmul(x, run.in[1], out, {}, run.scratch, epilogue);
    else if (out.size() > 0)
      internal::matmul(x.reshaped(as_matrix(x.shape())), run.in[1], out.reshaped(as_matrix(out.shape())), {},
                       run.scratch, epilogue);
    if (with_mask_) relu_mask(out, run.out[1].bytes());
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    const ConstTensorView& w = run.in[1];
    const std::int64_t inner = w.shape()[0], n = w.shape()[1];
    const std::int64_t m = n == 0 ? 0 : static_cast<std::int64_t>(run.out[0].size()) / n;
    MatmulLaunch options;
    if (run.in.size() > 2) options.bias = &run.in[2];
    if (activation_ != Activation::linear) options.activation = op_name(unary_of(activation_));
    if (!launch_matmul(queue, run.in[0], w, run.out[0], m, n, inner, options)) return false;
    return !with_mask_ || launch_relu_mask(queue, run.out[0], run.out[1]);
  }
  SavedSlots saved(SlotMask wanted) const override {
    return {.inputs = (wanted & slot(0) ? slot(1) : 0) | (wanted & slot(1) ? slot(0) : 0),
            .outputs = with_mask_                          ? slot(1)
                       : activation_ == Activation::linear ? 0
                                                           : slot(0),
            .remade = slot(0)};
  }
  void gradient(GradientContext& c) const override {
    Tensor g = c.take_grad();
    if (with_mask_) {
      const Tensor* const operands[] = {&g, &c.output(1)};
      g = execute_over(MaskSlope(), std::move(g), operands);
    } else if (activation_ != Activation::linear) {
      g = ThroughActivation(c.output(0), std::move(g)).of(activation_);
    }
    if (c.num_inputs() > 2 && c.wants(2)) c.give(2, matrix(g).sum({0}));
    if (c.wants(1)) c.give(1, matmul(matrix(c.input(0)), matrix(g), {.transpose_a = true}));
    c.done_with(0);
    if (c.wants(0)) c.give(0, matmul(g, c.input(1), {.transpose_b = true}));
  }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : input == 1 ? "w" : "bias"; }
  std::size_t make_lean() noexcept override { return std::exchange(with_mask_, false) ? 1 : 0; }
  bool operator==(const Dense&) const = default;

 private:
  void add_output(const Shape& y, DType dtype, SpecList& out) const {
    out.add(y, dtype);
    if (with_mask_) out.add({y.is_known() ? static_cast<std::int64_t>(relu_mask_bytes(y.size())) : kUnknownSize}, u8);
  }

  Activation activation_;
  bool with_mask_;
};

void Dense::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  require_floating(*this, in.dtype(0));
  const Shape &x = in.shape(0), &w = in.shape(1);
  if (x.rank() == 0 || w.rank() != 2 || (x.back() != w[0] && x.back() != kUnknownSize && w[0] != kUnknownSize))
    throw InvalidArgument(
        fmt::format("dense: x {} and w {} do not match; give x [.., n] and w [n, m]", x.to_string(), w.to_string()));
  if (in.size() > 2) {
    const Shape& bias = in.shape(2);
    if (bias.rank() != 1 || (bias[0] != w[1] && bias[0] != kUnknownSize && w[1] != kUnknownSize))
      throw InvalidArgument(fmt::format("dense: bias {} does not match w {}; give one number for each column",
                                        bias.to_string(), w.to_string()));
  }
  if (x.rank() == 2) return add_output({x[0], w[1]}, in.dtype(0), out);
  std::int64_t sizes[kMaxRank];
  std::copy(x.begin(), x.end(), sizes);
  sizes[x.rank() - 1] = w[1];
  add_output(Shape(std::span<const std::int64_t>(sizes, x.rank())), in.dtype(0), out);
}

// Whether a bit mask is worth its pass over the result: a gradient will be computed, and what it would read is large.
bool wants_mask(const Tensor& x, const Tensor& w, Activation activation) {
  constexpr std::size_t kLarge = 256 << 10;
  if (activation != Activation::relu || !is_recorded(x) || x.rank() == 0 || w.rank() != 2) return false;
  if (!x.shape().is_known() || !w.shape().is_known() || (x.dtype() != f32 && x.dtype() != f64)) return false;
  const std::size_t rows = x.shape().back() == 0 ? 0 : x.size() / static_cast<std::size_t>(x.shape().back());
  return rows * static_cast<std::size_t>(w.shape()[1]) * size_of(x.dtype()) >= kLarge;
}

}  // namespace

std::unique_ptr<Op> internal::dense_with(Activation activation) { return std::make_unique<Dense>(activation); }

Activation activation_of(std::string_view name) {
  if (name.empty()) return Activation::linear;
  if (name == "silu") return Activation::swish;
  std::string known;
  for (std::size_t i = 0; i < std::size(kActivations); ++i) {
    if (name == kActivations[i].name) return static_cast<Activation>(i);
    known += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", kActivations[i].name);
  }
  throw InvalidArgument(fmt::format("activation: \"{}\" is not known; give one of {}", name, known));
}

const char* activation_name(Activation activation) noexcept {
  return kActivations[static_cast<std::size_t>(activation)].name;
}

Tensor activate(const Tensor& x, Activation activation) {
  return activation == Activation::linear ? x : execute(Unary(unary_of(activation)), x);
}

Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation) {
  const bool is_fused = fuses(activation);
  if (is_fused && wants_mask(x, w, activation)) {
    const Tensor* const inputs[] = {&x, &w, &bias};
    const std::span<const Tensor* const> given(inputs, bias.is_empty_handle() ? 2 : 3);
    return std::move(execute_all(Dense(activation, true), given)[0]);
  }
  const Dense op(is_fused ? activation : Activation::linear);
  const Tensor y = bias.is_empty_handle() ? execute(op, x, w) : execute(op, x, w, bias);
  return is_fused ? y : activate(y, activation);
}

}  // namespace plimsoll
