#include "plimsoll/ops/internal/loss_ops.h"

#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/loss.h"
#include "plimsoll/kernels/reduce.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/scratch.h"

namespace plimsoll::internal {
namespace {

std::int64_t rows_of(const Shape& shape) noexcept {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < shape.rank(); ++axis) rows *= shape[axis];
  return rows;
}

void run_kernel(const RowLossRule& rule, const ConstTensorView& x, const ConstTensorView& y,
                const LossOutputs& out) noexcept {
  switch (rule.kind) {
    case RowLossKind::squared:
      return squared_error(x, y, out);
    case RowLossKind::absolute:
      return absolute_error(x, y, out);
    case RowLossKind::huber:
      return internal::huber(x, y, rule.delta, out);
    case RowLossKind::sigmoid:
      return sigmoid_cross_entropy(x, y, out);
  }
}

const char* kernel_of(RowLossKind kind, bool is_gradient) noexcept {
  constexpr const char* kNames[][2] = {{"row_loss.squared", "row_loss_grad.squared"},
                                       {"row_loss.absolute", "row_loss_grad.absolute"},
                                       {"row_loss.huber", "row_loss_grad.huber"},
                                       {"row_loss.sigmoid", "row_loss_grad.sigmoid"}};
  return kNames[static_cast<std::size_t>(kind)][is_gradient];
}

double number(const ConstTensorView& x) noexcept {
  return x.dtype() == f32 ? double(*x.data<float>()) : *x.data<double>();
}

// The factor of each element's derivative: the losses' gradient, divided by the means over rows and over a row.
Tensor upstream_of(const RowLossRule& rule, const Tensor& upstream, const Shape& predictions) {
  const auto columns = static_cast<double>(predictions.back());
  if (rule.reduction == Reduction::none) return upstream.expand_dims(-1) * (1 / columns);
  const double rows = rule.reduction == Reduction::mean ? static_cast<double>(rows_of(predictions)) : 1;
  return upstream * (1 / (rows * columns));
}

}  // namespace

void RowLoss::infer(const Specs& in, SpecList& out) const {
  const Shape &targets = in.shape(0), &predictions = in.shape(1);
  if (in.dtype(1) != f32 && in.dtype(1) != f64) refuse_dtype(*this, in.dtype(1));
  require_same_dtype(*this, in);
  require_rank_at_least(*this, predictions, 1);
  if (targets.rank() != predictions.rank() ||
      (targets.is_known() && predictions.is_known() && !(targets == predictions)))
    throw InvalidArgument(fmt::format("{}: targets {} and predictions {} differ; give both one shape", name(),
                                      targets.to_string(), predictions.to_string()));
  out.add(
      rule_.reduction == Reduction::none ? Shape(predictions.sizes().first(predictions.rank() - 1)) : Shape::scalar(),
      in.dtype(1));
}

std::size_t RowLoss::workspace_bytes(const Specs& in, const SpecList&) const {
  if (rule_.reduction == Reduction::none) return 0;
  return scratch_bytes(in.dtype(1), static_cast<std::size_t>(rows_of(in.shape(1))));
}

void RowLoss::run(const OpRun& run) const noexcept {
  const ConstTensorView &targets = run.in[0], &predictions = run.in[1];
  const std::int64_t rows = rows_of(predictions.shape());
  const bool is_reduced = rule_.reduction != Reduction::none;
  const TensorView losses =
      is_reduced ? ScratchViews(run.scratch).take(predictions.dtype(), {rows}) : run.out[0].reshaped({rows});
  if (predictions.size() > 0)
    run_kernel(rule_, predictions, targets, {.loss = losses});
  else if (losses.size() > 0)
    std::memset(losses.bytes(), 0, losses.nbytes());  // Rows without elements.
  if (is_reduced)
    reduce(rule_.reduction == Reduction::mean ? ReduceOp::mean : ReduceOp::sum, losses, axes_mask({0}), run.out[0]);
}

bool RowLoss::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView &targets = run.in[0], &predictions = run.in[1];
  if (predictions.dtype() != f32 || predictions.size() == 0) return false;
  const std::int64_t rows = rows_of(predictions.shape());
  const bool is_reduced = rule_.reduction != Reduction::none;
  const TensorView losses = is_reduced ? ScratchViews(run.scratch).take(f32, {rows}) : run.out[0].reshaped({rows});
  KernelCall call(kernel_of(rule_.kind, false));
  call.out(losses.bytes()).in(targets.bytes()).in(predictions.bytes()).integer(rows);
  call.integer(predictions.shape().back()).number(rule_.delta).items(static_cast<std::size_t>(rows));
  if (!queue.run(call)) return false;
  if (!is_reduced) return true;
  return launch_reduce(queue, rule_.reduction == Reduction::mean ? "reduce.mean.f32" : "reduce.sum.f32", losses,
                       axes_mask({0}), run.out[0]);
}

bool RowLossGradient::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView &targets = run.in[0], &predictions = run.in[1];
  if (predictions.dtype() != f32 || predictions.size() == 0) return false;
  const auto columns = static_cast<double>(predictions.shape().back());
  const double rows = rule_.reduction == Reduction::mean ? static_cast<double>(rows_of(predictions.shape())) : 1;
  KernelCall call(kernel_of(rule_.kind, true));
  call.out(run.out[0].bytes()).in(targets.bytes()).in(predictions.bytes()).in(run.in[2].bytes());
  call.integer(static_cast<std::int64_t>(predictions.size())).integer(predictions.shape().back());
  call.integer(rule_.reduction == Reduction::none ? 1 : 0).number(1 / (rows * columns)).number(rule_.delta);
  return queue.run(call.items(predictions.size()));
}

void RowLoss::gradient(GradientContext& c) const {
  const bool is_symmetric = rule_.kind != RowLossKind::sigmoid;
  Tensor gradient;
  if (c.wants(1) || is_symmetric) gradient = execute(RowLossGradient(rule_), c.input(0), c.input(1), c.grad());
  if (c.wants(0)) c.give(0, is_symmetric ? -gradient : -(upstream_of(rule_, c.grad(), c.input_shape(1)) * c.input(1)));
  if (c.wants(1)) c.give(1, gradient);
}

void RowLossGradient::run(const OpRun& run) const noexcept {
  if (run.out[0].size() == 0) return;
  LossOutputs out = {.gradient = run.out[0]};
  const std::int64_t rows = rows_of(run.in[1].shape());
  if (rule_.reduction == Reduction::none)
    out.upstream = run.in[2].reshaped({rows});
  else
    out.scale = number(run.in[2]) / (rule_.reduction == Reduction::mean ? static_cast<double>(rows) : 1);
  run_kernel(rule_, run.in[1], run.in[0], out);
}

// For y = u f(x, z), where f is the derivative of an element's loss and u the result of upstream_of().
void RowLossGradient::gradient(GradientContext& c) const {
  const Tensor &z = c.input(0), &x = c.input(1), &upstream = c.grad();
  const Tensor u = upstream_of(rule_, c.input(2), x.shape()), e = x - z;
  Tensor first, second, by_target;  // f, and its derivatives.
  switch (rule_.kind) {
    case RowLossKind::squared:
      first = e * 2, second = full_like(e, 2), by_target = full_like(e, -2);
      break;
    case RowLossKind::absolute:
      first = sign(e), second = zeros_like(e), by_target = second;
      break;
    case RowLossKind::huber:
      first = clip(e, -rule_.delta, rule_.delta), second = (abs(e) <= rule_.delta).cast(e.dtype()), by_target = -second;
      break;
    case RowLossKind::sigmoid: {
      const Tensor s = sigmoid(x);
      first = s - z, second = s * (1 - s), by_target = full_like(e, -1);
      break;
    }
  }
  if (c.wants(0)) c.give(0, upstream * u * by_target);
  if (c.wants(1)) c.give(1, upstream * u * second);
  if (!c.wants(2)) return;
  const Tensor unit = upstream_of(rule_, ones_like(c.input(2)), x.shape());
  c.give(2, sum_to(upstream * first * unit,
                   rule_.reduction == Reduction::none ? c.input(2).expand_dims(-1).shape() : Shape::scalar())
                .reshape(c.input_shape(2)));
}

}  // namespace plimsoll::internal
