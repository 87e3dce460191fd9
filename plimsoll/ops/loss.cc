#include "plimsoll/ops/loss.h"

#include <fmt/format.h>

#include <numbers>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/cross_entropy.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/loss_ops.h"
#include "plimsoll/ops/norm.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr double kSmall = 1e-7;  // Keras' epsilon.

// Checks the operands of losses that are composed of other operations.
void require_alike(const char* where, const Tensor& targets, const Tensor& predictions) {
  if (targets.is_empty_handle() || targets.is_disposed()) refuse_disposed(targets, where, "targets");
  if (predictions.is_empty_handle() || predictions.is_disposed()) refuse_disposed(predictions, where, "predictions");
  if (!is_floating(predictions.dtype()))
    throw InvalidArgument(fmt::format("{}: is not defined for {}; cast the operand to another dtype first", where,
                                      dtype_name(predictions.dtype())));
  if (targets.dtype() != predictions.dtype())
    throw InvalidArgument(fmt::format("{}: targets are {}, predictions {}; cast one of them", where,
                                      dtype_name(targets.dtype()), dtype_name(predictions.dtype())));
  if (!(targets.shape() == predictions.shape()) || predictions.rank() == 0)
    throw InvalidArgument(fmt::format("{}: targets {} and predictions {} differ; give both one shape, [.., n]", where,
                                      targets.shape().to_string(), predictions.shape().to_string()));
}

Tensor reduced(const Tensor& rows, Reduction reduction) {
  if (reduction == Reduction::none) return rows;
  return reduction == Reduction::mean ? rows.mean() : rows.sum();
}

Tensor row_loss(RowLossKind kind, const char* name, const Tensor& targets, const Tensor& predictions,
                const LossOptions& options) {
  const RowLossRule rule = {kind, options.reduction, options.delta, name};
  if (is_half(predictions.dtype()) && targets.dtype() == predictions.dtype())
    return execute(RowLoss(rule), targets.cast(f32), predictions.cast(f32)).cast(predictions.dtype());
  return execute(RowLoss(rule), targets, predictions);
}

// y (1 - s) + s / classes.
Tensor smoothed(const char* where, const Tensor& targets, double smoothing, double classes) {
  if (!(smoothing >= 0 && smoothing <= 1))
    throw InvalidArgument(fmt::format("{}: label_smoothing is {}; give 0 ... 1", where, smoothing));
  return smoothing == 0 ? targets : targets * (1 - smoothing) + smoothing / classes;
}

}  // namespace

Tensor mean_squared_error(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  return row_loss(RowLossKind::squared, "mean_squared_error", targets, predictions, options);
}

Tensor mean_absolute_error(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  return row_loss(RowLossKind::absolute, "mean_absolute_error", targets, predictions, options);
}

Tensor huber(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  if (!(options.delta > 0)) throw InvalidArgument(fmt::format("huber: delta is {}; give more than 0", options.delta));
  return row_loss(RowLossKind::huber, "huber", targets, predictions, options);
}

// log(cosh(e)) = e + softplus(-2 e) - log 2.
Tensor log_cosh(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("log_cosh", targets, predictions);
  const Tensor e = predictions - targets;
  return reduced((e + softplus(e * -2) - std::numbers::ln2).mean({-1}), options.reduction);
}

Tensor mean_absolute_percentage_error(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("mean_absolute_percentage_error", targets, predictions);
  const Tensor share = abs((targets - predictions) / maximum(abs(targets), kSmall));
  return reduced(share.mean({-1}) * 100, options.reduction);
}

Tensor mean_squared_logarithmic_error(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("mean_squared_logarithmic_error", targets, predictions);
  const auto logarithm = [](const Tensor& x) { return log(maximum(x, kSmall) + 1); };
  return reduced(squared_difference(logarithm(predictions), logarithm(targets)).mean({-1}), options.reduction);
}

Tensor poisson(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("poisson", targets, predictions);
  return reduced((predictions - targets * log(predictions + kSmall)).mean({-1}), options.reduction);
}

Tensor binary_cross_entropy(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  const char* where = "binary_cross_entropy";
  if (!options.from_logits || options.label_smoothing != 0) require_alike(where, targets, predictions);
  const Tensor y = smoothed(where, targets, options.label_smoothing, 2);
  if (options.from_logits) return row_loss(RowLossKind::sigmoid, where, y, predictions, options);
  const Tensor p = clip(predictions, kSmall, 1 - kSmall);
  const Tensor losses = y * log(p + kSmall) + (1 - y) * log(1 - p + kSmall);
  return reduced(-losses.mean({-1}), options.reduction);
}

Tensor categorical_cross_entropy(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  const char* where = "categorical_cross_entropy";
  require_alike(where, targets, predictions);
  const Tensor y = smoothed(where, targets, options.label_smoothing, static_cast<double>(predictions.shape().back()));
  if (options.from_logits) return reduced(softmax_cross_entropy_with_logits(y, predictions), options.reduction);
  const Tensor p = clip(predictions / predictions.sum({-1}, {.keep_dims = true}), kSmall, 1 - kSmall);
  return reduced(-(y * log(p)).sum({-1}), options.reduction);
}

Tensor sparse_categorical_cross_entropy(const Tensor& labels, const Tensor& predictions, const LossOptions& options) {
  const Tensor logits = options.from_logits ? predictions : log(clip(predictions, kSmall, 1 - kSmall));
  return reduced(sparse_softmax_cross_entropy_with_logits(labels, logits), options.reduction);
}

Tensor kl_divergence(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("kl_divergence", targets, predictions);
  const Tensor y = clip(targets, kSmall, 1), p = clip(predictions, kSmall, 1);
  return reduced((y * log(y / p)).sum({-1}), options.reduction);
}

Tensor hinge(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("hinge", targets, predictions);
  return reduced(relu(1 - targets * predictions).mean({-1}), options.reduction);
}

Tensor squared_hinge(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("squared_hinge", targets, predictions);
  return reduced(square(relu(1 - targets * predictions)).mean({-1}), options.reduction);
}

Tensor categorical_hinge(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("categorical_hinge", targets, predictions);
  const Tensor right = (targets * predictions).sum({-1}), wrong = ((1 - targets) * predictions).max({-1});
  return reduced(relu(wrong - right + 1), options.reduction);
}

Tensor cosine_similarity(const Tensor& targets, const Tensor& predictions, const LossOptions& options) {
  require_alike("cosine_similarity", targets, predictions);
  return reduced(-(l2_normalize(targets) * l2_normalize(predictions)).sum({-1}), options.reduction);
}

}  // namespace plimsoll
