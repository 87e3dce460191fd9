#include "plimsoll/ops/batch_norm.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/batch_norm.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/batch_norm_ops.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr const char* kName = "batch_norm";

bool is_relu(const BatchNormOptions& options) {
  require_epsilon(options.epsilon, kName);
  if (options.activation == "relu") return true;
  if (options.activation.empty() || options.activation == "linear") return false;
  throw InvalidArgument(fmt::format("{}: the activation is \"{}\"; give \"linear\" or \"relu\", or apply another to y",
                                    kName, options.activation));
}

void require_input(const Op& op, const Specs& in) {
  require_same_dtype(op, in);
  require_floating(op, in.dtype(0));
  require_rank_at_least(op, in.shape(0), 1);
}

bool is_half_tensor(const Tensor& x) { return !x.is_empty_handle() && is_half(x.dtype()); }

// Checks that the average can be updated, before anything is computed.
void require_average(const Variable& average, const Tensor& x, const char* what) {
  if (average.is_disposed()) refuse_disposed(average.value(), kName, what);
  const bool fits = average.dtype() == x.dtype() || (is_half(x.dtype()) && average.dtype() == f32);
  if (x.rank() == 0 || !(average.shape() == Shape{x.shape().back()}) || !fits)
    throw InvalidArgument(fmt::format("{}: {} is {} {}, x {} {}; give one of each channel, of x's dtype", kName, what,
                                      dtype_name(average.dtype()), average.shape().to_string(), dtype_name(x.dtype()),
                                      x.shape().to_string()));
  if (average.device() != x.device())
    throw InvalidArgument(
        fmt::format("{}: {} is on {}, x on {}; move one with .to()", kName, what, average.device(), x.device()));
}

Tensor moved(const Variable& average, const Tensor& to, double momentum) {
  const Tensor target = to.dtype() == average.dtype() ? to : to.cast(average.dtype());
  return average.value() * momentum + target * (1 - momentum);
}

Tensor normalize_and_move(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Variable& mean,
                          const Variable& variance, const BatchNormOptions& options) {
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw InvalidArgument(fmt::format("{}: the momentum is {}; give 0 to 1", kName, options.momentum));
  if (x.is_empty_handle() || x.is_disposed()) refuse_disposed(x, kName, "x");
  require_average(mean, x, "moving_mean");
  require_average(variance, x, "moving_variance");
  BatchNormResult result = batch_norm_training(x, gamma, beta, options);
  if (x.shape().is_known() && x.size() == 0) return result.y;
  const InterceptWith unseen(nullptr);
  const Tensor new_mean = moved(mean, result.mean, options.momentum);
  const Tensor new_variance = moved(variance, result.variance, options.momentum);
  mean.assign(new_mean);  // From here on nothing can fail.
  variance.assign(new_variance);
  return result.y;
}

}  // namespace

void BatchNormTrain::infer(const Specs& in, SpecList& out) const {
  require_input(*this, in);
  const Shape row = {in.shape(0).back()};
  require_parameters(*this, in, inputs_, row);
  out.add(in.shape(0), in.dtype(0));
  for (int moment = 0; moment < 3; ++moment) out.add(row, in.dtype(0));
}

std::size_t BatchNormTrain::workspace_bytes(const Specs& in, const SpecList&) const {
  return batch_norm_scratch_bytes(in.shape(0), in.dtype(0));
}

void BatchNormTrain::run(const OpRun& run) const noexcept {
  internal::batch_norm_training(run.in[0], parameters_of(run, inputs_), run.out[0],
                                {run.out[1], run.out[2], run.out[3]}, {epsilon_, relu_}, run.scratch);
}

SavedSlots BatchNormTrain::saved(SlotMask) const {
  return {.inputs =
              slot(0) | (inputs_.has_gamma ? slot(inputs_.gamma()) : 0) | (inputs_.has_beta ? slot(inputs_.beta()) : 0),
          .outputs = slot(1) | slot(3)};
}

std::size_t RepeatedBatchNorm::workspace_bytes(const Specs& in, const SpecList&) const {
  return batch_norm_scratch_bytes(in.shape(0), in.dtype(0));
}

void RepeatedBatchNorm::run(const OpRun& run) const noexcept {
  batch_norm_apply(run.in[0], run.in[1], run.in[2], parameters_of(run, inputs_), relu_, run.out[0], run.scratch);
}

std::string BatchNormInfer::input_name(std::size_t input) const {
  return input == 0 ? "x" : input == 1 ? "mean" : input == 2 ? "variance" : inputs_.name(input);
}

void BatchNormInfer::infer(const Specs& in, SpecList& out) const {
  require_input(*this, in);
  require_parameters(*this, in, {false, false, 1}, {in.shape(0).back()});  // Also checks the moments.
  out.add(in.shape(0), in.dtype(0));
}

std::size_t BatchNormInfer::workspace_bytes(const Specs& in, const SpecList&) const {
  return batch_norm_scratch_bytes(in.shape(0), in.dtype(0));
}

void BatchNormInfer::run(const OpRun& run) const noexcept {
  internal::batch_norm_inference(run.in[0], run.in[1], run.in[2], parameters_of(run, inputs_), run.out[0],
                                 {epsilon_, relu_}, run.scratch);
}

BatchNormResult batch_norm_training(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    const BatchNormOptions& options) {
  if (is_half_tensor(x)) {
    const BatchNormResult wide = batch_norm_training(x.cast(f32), widened(gamma), widened(beta), options);
    return {wide.y.cast(x.dtype()), wide.mean, wide.variance};
  }
  const BatchNormTrain op(options.epsilon, is_relu(options), {!gamma.is_empty_handle(), !beta.is_empty_handle()});
  NormList operands = {&x};
  operands.add_if_any(gamma);
  operands.add_if_any(beta);
  std::vector<Tensor> outputs = execute_all(op, operands.span());
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& mean,
                            const Tensor& variance, const BatchNormOptions& options) {
  if (is_half_tensor(x))
    return batch_norm_inference(x.cast(f32), widened(gamma), widened(beta), widened(mean), widened(variance), options)
        .cast(x.dtype());
  const BatchNormInfer op(options.epsilon, is_relu(options), {!gamma.is_empty_handle(), !beta.is_empty_handle(), 3});
  NormList operands = {&x, &mean, &variance};
  operands.add_if_any(gamma);
  operands.add_if_any(beta);
  return execute_on(op, operands.span());
}

Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Variable& moving_mean,
                  const Variable& moving_variance, const BatchNormOptions& options) {
  if (options.training) return normalize_and_move(x, gamma, beta, moving_mean, moving_variance, options);
  return batch_norm_inference(x, gamma, beta, moving_mean.value(), moving_variance.value(), options);
}

}  // namespace plimsoll
