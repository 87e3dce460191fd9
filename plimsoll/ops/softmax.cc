#include "plimsoll/ops/softmax.h"

#include <cmath>

#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/reduce.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/axis_split.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/reduced_shape.h"
#include "plimsoll/ops/scratch.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

// The gradients of both along the last axis, from the result y and its gradient dy.
class SoftmaxGradient final : public OpOf<SoftmaxGradient> {
 public:
  explicit SoftmaxGradient(bool log) noexcept : log_(log) {}
  const char* name() const noexcept override { return log_ ? "log_softmax_grad" : "softmax_grad"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(1), in.dtype(1)); }
  void run(const OpRun& run) const noexcept override {
    (log_ ? log_softmax_grad : softmax_grad)(run.in[0], run.in[1], run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    const std::int64_t columns = run.out[0].shape().back();
    const std::int64_t rows = columns == 0 ? 0 : static_cast<std::int64_t>(run.out[0].size()) / columns;
    KernelCall call("softmax_grad");
    call.out(run.out[0].bytes()).in(run.in[0].bytes()).in(run.in[1].bytes());
    call.integer(rows).integer(columns).integer(log_).items(static_cast<std::size_t>(rows));
    return run.out[0].dtype() == f32 && queue.run(call);
  }
  SavedSlots saved(SlotMask wanted) const override {
    return {.inputs = wanted & slot(0) ? slot(0) | slot(1) : slot(0)};
  }
  void gradient(GradientContext& c) const override {
    const Tensor &y = c.input(0), &g = c.grad();
    const auto sum = [](const Tensor& x) { return x.sum(-1, {.keep_dims = true}); };
    if (c.wants(0)) {
      const Tensor& dy = c.input(1);
      c.give(0, log_ ? -(g * exp(y) * sum(dy)) : g * (dy - sum(dy * y)) - dy * sum(g * y));
    }
    if (c.wants(1)) c.give(1, log_ ? g - sum(g * exp(y)) : execute(*this, y, g));
  }
  OpFacts facts() const noexcept override { return {.overwrites = slot(1)}; }
  bool operator==(const SoftmaxGradient&) const = default;

 private:
  bool log_;
};

class Softmax final : public OpOf<Softmax> {
 public:
  Softmax(std::size_t axis, bool log) noexcept : axis_(axis), log_(log) {}
  const char* name() const noexcept override { return log_ ? "log_softmax" : "softmax"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_floating(*this, in.dtype(0));
    out.add(in.shape(0), in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return AxisSplit(in.shape(0), axis_).is_last() ? 0 : scratch_bytes(in.dtype(0), in.shape(0).size());
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView& x = run.in[0];
    if (x.size() == 0) return;
    const AxisSplit split(x.shape(), axis_);
    const auto kernel = [&](const ConstTensorView& from, const TensorView& to) {
      log_ ? internal::log_softmax(from, to) : internal::softmax(from, to);
    };
    if (split.is_last()) return kernel(x.reshaped(split.moved()), run.out[0].reshaped(split.moved()));
    const TensorView lanes = ScratchViews(run.scratch).take(x.dtype(), split.moved());
    split.move_last(x, lanes);
    kernel(lanes, lanes);
    split.move_back(lanes, run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    if (run.out[0].dtype() != f32 || axis_ + 1 != run.out[0].rank()) return false;
    const std::int64_t columns = run.out[0].shape().back();
    const std::int64_t rows = columns == 0 ? 0 : static_cast<std::int64_t>(run.out[0].size()) / columns;
    KernelCall call("softmax");
    call.out(run.out[0].bytes()).in(run.in[0].bytes()).integer(rows).integer(columns).integer(log_);
    return queue.run(call.items(static_cast<std::size_t>(rows)));
  }
  SavedSlots saved(SlotMask) const override { return {.outputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    const Tensor& y = c.output(0);
    Tensor g = c.take_grad();
    if (axis_ + 1 == y.rank()) {
      const Tensor* const inputs[] = {&y, &g};
      return c.give(0, execute_over(SoftmaxGradient(log_), std::move(g), inputs));
    }
    const Axes axis(static_cast<int>(axis_));
    if (log_)
      c.give(0, g - exp(y) * g.sum(axis, {.keep_dims = true}));
    else
      c.give(0, (g - (g * y).sum(axis, {.keep_dims = true})) * y);
  }
  OpFacts facts() const noexcept override { return {.overwrites = slot(0)}; }
  bool operator==(const Softmax&) const = default;

 private:
  std::size_t axis_;
  bool log_;
};

// So that infinity is not subtracted from itself.
void clear_infinite(const TensorView& x) noexcept {
  const auto clear = [](auto elements) {
    for (auto& element : elements)
      if (std::isinf(element)) element = 0;
  };
  if (x.dtype() == f64)
    clear(x.span<double>());
  else
    clear(x.span<float>());
}

class LogSumExp final : public OpOf<LogSumExp> {
 public:
  LogSumExp(AxesMask axes, bool keep_dims) noexcept : axes_(axes), keep_dims_(keep_dims) {}
  const char* name() const noexcept override { return "log_sum_exp"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_floating(*this, in.dtype(0));
    out.add(shape_without(in.shape(0), axes_, keep_dims_), in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override {
    const DType dtype = compute_dtype(in.dtype(0));
    return scratch_bytes(dtype, in.shape(0).size()) + 2 * scratch_bytes(dtype, out[0].shape.size());
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].size() == 0) return;
    const DType dtype = compute_dtype(run.in[0].dtype());
    ScratchViews scratch(run.scratch);
    const Shape kept = shape_without(run.in[0].shape(), axes_, true);
    const TensorView wide = scratch.take(dtype, run.in[0].shape()), largest = scratch.take(dtype, kept),
                     sum = scratch.take(dtype, kept);
    copy(run.in[0], wide);
    reduce(ReduceOp::max, wide, axes_, largest);
    clear_infinite(largest);
    binary(BinaryOp::subtract, wide, largest, wide);
    unary(UnaryOp::exp, wide, wide);
    reduce(ReduceOp::sum, wide, axes_, sum);
    unary(UnaryOp::log, sum, sum);
    binary(BinaryOp::add, sum, largest, sum);
    copy(sum.reshaped(run.out[0].shape()), run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0), .outputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    const Shape kept = shape_without(c.input_shape(0), axes_, true);
    c.give(0, c.grad().reshape(kept) * exp(c.input(0) - c.output(0).reshape(kept)));
  }
  bool operator==(const LogSumExp&) const = default;

 private:
  AxesMask axes_;
  bool keep_dims_;
};

Tensor softmax_along(const Tensor& x, std::int64_t axis, bool log) {
  const char* where = log ? "log_softmax" : "softmax";
  if (x.is_empty_handle()) refuse_disposed(x, where, "x");
  return execute(Softmax(resolve_axis(axis, x.rank(), where), log), x);
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t axis) { return softmax_along(x, axis, false); }
Tensor log_softmax(const Tensor& x, std::int64_t axis) { return softmax_along(x, axis, true); }

Tensor log_sum_exp(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return execute(LogSumExp(axes.mask(x.rank(), "log_sum_exp"), options.keep_dims), x);
}

}  // namespace plimsoll
