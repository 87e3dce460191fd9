// where, cast, broadcast_to, clip: choosing and converting elements.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

class Where final : public OpOf<Where> {
 public:
  const char* name() const noexcept override { return "where"; }
  void infer(const Specs& in, SpecList& out) const override {
    if (in.dtype(0) != boolean)
      throw InvalidArgument(fmt::format("where: the condition is {}; give a boolean", dtype_name(in.dtype(0))));
    require_same_dtype(*this, in, 1);
    out.add(broadcast_shapes(in.shape(0), broadcast_shapes(in.shape(1), in.shape(2), "where"), "where"), in.dtype(1));
  }
  void run(const OpRun& run) const noexcept override { select(run.in[0], run.in[1], run.in[2], run.out[0]); }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_select(queue, run.in[0], run.in[1], run.in[2], run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    const Tensor zero = zeros_like(c.grad());
    if (c.wants(1)) c.give(1, sum_to(where(c.input(0), c.grad(), zero), c.input_shape(1)));
    if (c.wants(2)) c.give(2, sum_to(where(c.input(0), zero, c.grad()), c.input_shape(2)));
  }
  OpFacts facts() const noexcept override { return {.overwrites = slot(1) | slot(2)}; }
  std::string input_name(std::size_t input) const override {
    constexpr const char* kNames[] = {"condition", "x", "y"};
    return kNames[input];
  }
};

class Cast final : public OpOf<Cast> {
 public:
  explicit Cast(DType dtype) noexcept : dtype_(dtype) {}
  const char* name() const noexcept override { return "cast"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), dtype_); }
  void run(const OpRun& run) const noexcept override { copy(run.in[0], run.out[0]); }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_cast(queue, run.in[0], run.out[0]);
  }
  void gradient(GradientContext& c) const override { c.give(0, c.grad().cast(c.input_dtype(0))); }
  bool operator==(const Cast&) const = default;

 private:
  DType dtype_;
};

class BroadcastTo final : public OpOf<BroadcastTo> {
 public:
  explicit BroadcastTo(const Shape& shape) : shape_(shape) {}
  const char* name() const noexcept override { return "broadcast_to"; }
  void infer(const Specs& in, SpecList& out) const override {
    if (!(broadcast_shapes(in.shape(0), shape_, "broadcast_to") == shape_))
      throw InvalidArgument(
          fmt::format("broadcast_to: shape {} cannot become {}", in.shape(0).to_string(), shape_.to_string()));
    out.add(shape_, in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override { copy(run.in[0], run.out[0]); }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_broadcast(queue, run.in[0], run.out[0]);
  }
  void gradient(GradientContext& c) const override { c.give(0, sum_to(c.grad(), c.input_shape(0))); }
  bool operator==(const BroadcastTo&) const = default;

 private:
  Shape shape_;
};

// A number as a kernel's operand.
class ScalarOperand {
 public:
  ScalarOperand(const Number& number, DType dtype) noexcept : bytes_(number.to(dtype)), dtype_(dtype) {}
  ConstTensorView view() const noexcept { return ConstTensorView(&bytes_, 0, dtype_, Shape::scalar()); }

 private:
  std::uint64_t bytes_;
  DType dtype_;
};

// Whether x lies in [low, high], where the slope of clip() is 1.
class IsWithin final : public OpOf<IsWithin> {
 public:
  IsWithin(const Number& low, const Number& high) noexcept : low_(low), high_(high) {}
  const char* name() const noexcept override { return op_name(TernaryOp::is_within); }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), boolean); }
  void run(const OpRun& run) const noexcept override {
    const ScalarOperand low(low_, run.in[0].dtype()), high(high_, run.in[0].dtype());
    ternary(TernaryOp::is_within, run.in[0], low.view(), high.view(), run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_between(queue, "is_within", run.in[0], low_.as_double(), high_.as_double(), run.out[0]);
  }
  void gradient(GradientContext&) const override {}
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }
  bool operator==(const IsWithin&) const = default;

 private:
  Number low_, high_;
};

class Clip final : public OpOf<Clip> {
 public:
  Clip(const Number& low, const Number& high) noexcept : low_(low), high_(high) {}
  const char* name() const noexcept override { return op_name(TernaryOp::clip); }
  void infer(const Specs& in, SpecList& out) const override {
    if (!is_supported(TernaryOp::clip, in.dtype(0))) refuse_dtype(*this, in.dtype(0));
    out.add(in.shape(0), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const ScalarOperand low(low_, run.in[0].dtype()), high(high_, run.in[0].dtype());
    ternary(TernaryOp::clip, run.in[0], low.view(), high.view(), run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_between(queue, "clip", run.in[0], low_.as_double(), high_.as_double(), run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    const Tensor& g = c.grad();
    c.give(0, where(execute(IsWithin(low_, high_), c.input(0)), g, zeros_like(g)));
  }
  OpFacts facts() const noexcept override { return {.overwrites = slot(0)}; }
  bool operator==(const Clip&) const = default;

 private:
  Number low_, high_;
};

void require_fit(const char* where, const Number& number, DType dtype) {
  if (!is_floating(dtype) && !number.fits(dtype))
    throw InvalidArgument(fmt::format("{}: {} is not a value of {}; cast the operand first, or give a number that is",
                                      where, number.as_double(), dtype_name(dtype)));
}

// The number as a scalar of x's dtype.
Tensor scalar_beside(const Tensor& x, const Number& number) {
  require_tensor(x, "where", "the operand");
  require_fit("where", number, x.dtype());
  return full(Shape::scalar(), number, x.dtype());
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) { return execute(Where(), condition, x, y); }
Tensor where(const Tensor& condition, const Tensor& x, const Number& y) {
  return where(condition, x, scalar_beside(x, y));
}
Tensor where(const Tensor& condition, const Number& x, const Tensor& y) {
  return where(condition, scalar_beside(y, x), y);
}
Tensor cast(const Tensor& x, DType dtype) {
  if (x.is_empty_handle() || x.is_disposed()) refuse_disposed(x, "cast", "x");
  return x.dtype() == dtype ? x : execute(Cast(dtype), x);
}
Tensor Tensor::cast(DType dtype) const { return plimsoll::cast(*this, dtype); }
Tensor broadcast_to(const Tensor& x, const Shape& shape) { return execute(BroadcastTo(shape), x); }

Tensor clip(const Tensor& x, const Number& low, const Number& high) {
  if (!(low.as_double() <= high.as_double()))
    throw InvalidArgument(
        fmt::format("clip: from {} to {}; the first must not be above the second", low.as_double(), high.as_double()));
  require_tensor(x, "clip", "x");
  require_fit("clip", low, x.dtype());
  require_fit("clip", high, x.dtype());
  return execute(Clip(low, high), x);
}

Tensor leaky_relu(const Tensor& x, double alpha) {
  return execute(BinaryWithNumber(BinaryOp::leaky_relu, alpha, false), x);
}

void LeakyReluGradient::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  out.add(in.shape(1), in.dtype(1));
}

void LeakyReluGradient::run(const OpRun& run) const noexcept {
  const ScalarOperand slope(slope_, run.in[0].dtype());
  ternary(TernaryOp::leaky_relu_grad, run.in[0], run.in[1], slope.view(), run.out[0]);
}

SavedSlots LeakyReluGradient::saved(SlotMask wanted) const { return {.inputs = wanted & slot(1) ? slot(0) : 0}; }

void LeakyReluGradient::gradient(GradientContext& c) const {
  if (c.wants(1)) c.give(1, execute(*this, c.input(0), c.grad()));
}

}  // namespace plimsoll
