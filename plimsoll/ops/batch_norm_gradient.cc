// Gradients of batch normalization.
#include "plimsoll/kernels/batch_norm.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/batch_norm_ops.h"
#include "plimsoll/ops/internal/elementwise_ops.h"

namespace plimsoll::internal {
namespace {

NormGrid grid_of(const Shape& x) {
  const std::int64_t rows = rows_of(x, x.rank() - 1), channels = x.back();
  return {{rows, channels}, {1, channels}, {channels}, Axes(0), Axes(0)};
}

Tensor upstream(GradientContext& c, std::size_t output) { return c.has_grad(output) ? c.grad(output) : Tensor(); }

Tensor through_relu(const Tensor& y, const Tensor& g) { return execute(Binary(BinaryOp::relu_grad), y, g); }

}  // namespace

Tensor BatchNormTrain::remake(GradientContext& c) const {
  NormInputs inputs = inputs_;
  inputs.first = 3;
  NormList operands = {&c.input(0), &c.output(1), &c.output(3)};
  if (inputs_.has_gamma) operands.add_if_any(c.input(inputs_.gamma()));
  if (inputs_.has_beta) operands.add_if_any(c.input(inputs_.beta()));
  return execute_on(RepeatedBatchNorm(relu_, inputs), operands.span());
}

void BatchNormTrain::gradient(GradientContext& c) const {
  if (c.has_grad(0)) {
    Tensor dy = c.take_grad();
    NormList operands = {&c.input(0), &dy, &c.output(1), &c.output(3)};
    const NormInputs read = {inputs_.has_gamma, relu_ && inputs_.has_beta};
    if (read.has_gamma) operands.add_if_any(c.input(inputs_.gamma()));
    if (read.has_beta) operands.add_if_any(c.input(inputs_.beta()));
    std::vector<Tensor> gradients = execute_all_over(BatchNormBack(relu_, read), std::move(dy), operands.span());
    c.give(0, std::move(gradients[0]));
    if (inputs_.has_gamma) c.give(inputs_.gamma(), std::move(gradients[1]));
    if (inputs_.has_beta) c.give(inputs_.beta(), std::move(gradients[2]));
  }
  const Shape& x = c.input_shape(0);
  if (!c.wants(0) || !(c.has_grad(1) || c.has_grad(2) || c.has_grad(3)) || (x.is_known() && x.size() == 0)) return;
  const Tensor &mean = c.output(1), &rstd = c.output(3);
  Tensor drstd = upstream(c, 3);
  if (c.has_grad(2)) {  // The variance is rstd to the -2, less epsilon.
    const Tensor through = c.grad(2) / (rstd * rstd * rstd) * -2;
    drstd = drstd.is_empty_handle() ? through : drstd + through;
  }
  c.give(0, moments_gradient(grid_of(x), c.input(0), mean, rstd, upstream(c, 1), drstd));
}

void BatchNormBack::infer(const Specs& in, SpecList& out) const {
  const Shape row = {in.shape(0).back()};
  out.add(in.shape(0), in.dtype(0));
  out.add(row, in.dtype(0));
  out.add(row, in.dtype(0));
}

std::size_t BatchNormBack::workspace_bytes(const Specs& in, const SpecList&) const {
  return batch_norm_scratch_bytes(in.shape(0), in.dtype(0));
}

void BatchNormBack::run(const OpRun& run) const noexcept {
  batch_norm_gradient(run.in[0], run.in[1], run.in[2], run.in[3], parameters_of(run, inputs_), relu_,
                      {run.out[0], run.out[1], run.out[2]}, run.scratch);
}

void BatchNormBack::gradient(GradientContext& c) const {
  const Tensor gamma = inputs_.has_gamma ? c.input(inputs_.gamma()) : Tensor();
  Tensor dy = c.input(1), y;
  if (relu_) {
    NormInputs inputs = inputs_;
    inputs.first = 3;
    NormList operands = {&c.input(0), &c.input(2), &c.input(3)};
    operands.add_if_any(gamma);
    if (inputs_.has_beta) operands.add_if_any(c.input(inputs_.beta()));
    y = execute_on(RepeatedBatchNorm(true, inputs), operands.span());
    dy = through_relu(y, dy);
  }
  const NormSecondOrder result =
      norm_second_order(grid_of(c.input_shape(0)), {c.input(0), dy, c.input(2), c.input(3), gamma},
                        {upstream(c, 0), upstream(c, 1), upstream(c, 2)});
  if (!result.x.is_empty_handle()) c.give(0, result.x);
  if (!result.dy.is_empty_handle()) c.give(1, relu_ ? through_relu(y, result.dy) : result.dy);
  if (!result.gamma.is_empty_handle()) c.give(inputs_.gamma(), result.gamma);
}

SavedSlots RepeatedBatchNorm::saved(SlotMask) const {
  return {.inputs = slot(0) | slot(1) | slot(2) | (inputs_.has_gamma ? slot(inputs_.gamma()) : 0),
          .outputs = relu_ ? slot(0) : 0};
}

void RepeatedBatchNorm::gradient(GradientContext& c) const {
  const Shape& x = c.input_shape(0);
  const std::int64_t rows = rows_of(x, x.rank() - 1);
  const Tensor dy = (relu_ ? through_relu(c.output(0), c.grad()) : c.grad()).reshape({rows, x.back()});
  const Tensor& rstd = c.input(2);
  const Tensor scale = inputs_.has_gamma ? rstd * c.input(inputs_.gamma()) : rstd;
  if (c.wants(0)) c.give(0, (dy * scale).reshape(x));
  const Tensor sum = dy.sum(Axes(0));
  if (c.wants(1)) c.give(1, -(sum * scale));
  if (inputs_.has_beta) c.give(inputs_.beta(), sum);
  const Tensor product = (dy * (c.input(0).reshape({rows, x.back()}) - c.input(1))).sum(Axes(0));
  if (inputs_.has_gamma) c.give(inputs_.gamma(), product * rstd);
  if (c.wants(2)) c.give(2, inputs_.has_gamma ? product * c.input(inputs_.gamma()) : product);
}

SavedSlots BatchNormInfer::saved(SlotMask wanted) const {
  const SlotMask gamma = inputs_.has_gamma ? slot(inputs_.gamma()) : 0;
  const bool reads_x = wanted & (slot(2) | gamma);
  return {.inputs = slot(2) | gamma | (reads_x ? slot(0) | slot(1) : 0), .outputs = relu_ ? slot(0) : 0};
}

void BatchNormInfer::gradient(GradientContext& c) const {
  const Shape& x = c.input_shape(0);
  const std::int64_t rows = rows_of(x, x.rank() - 1);
  const Tensor dy = (relu_ ? through_relu(c.output(0), c.grad()) : c.grad()).reshape({rows, x.back()});
  const Tensor rstd = rsqrt(c.input(2) + epsilon_);
  const Tensor scale = inputs_.has_gamma ? rstd * c.input(inputs_.gamma()) : rstd;
  if (c.wants(0)) c.give(0, (dy * scale).reshape(x));
  const Tensor sum = dy.sum(Axes(0));
  if (c.wants(1)) c.give(1, -(sum * scale));
  if (inputs_.has_beta) c.give(inputs_.beta(), sum);
  const bool wants_gamma = inputs_.has_gamma && c.wants(inputs_.gamma());
  if (!wants_gamma && !c.wants(2)) return;
  const Tensor product = (dy * (c.input(0).reshape({rows, x.back()}) - c.input(1))).sum(Axes(0));
  if (wants_gamma) c.give(inputs_.gamma(), product * rstd);
  if (c.wants(2)) c.give(2, product * scale * rstd * rstd * -0.5);
}

}  // namespace plimsoll::internal
