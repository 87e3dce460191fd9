#include "plimsoll/model/training/losses.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/training/targets.h"

namespace plimsoll {
namespace {

struct Row {
  const char* name;
  Loss::Standard function;
  bool takes_labels = false;
};

constexpr Row kLosses[] = {
    {"binary_crossentropy", binary_cross_entropy},
    {"categorical_crossentropy", categorical_cross_entropy},
    {"sparse_categorical_crossentropy", sparse_categorical_cross_entropy, true},
    {"mean_squared_error", mean_squared_error},
    {"mse", mean_squared_error},
    {"mean_absolute_error", mean_absolute_error},
    {"mae", mean_absolute_error},
    {"mean_absolute_percentage_error", mean_absolute_percentage_error},
    {"mape", mean_absolute_percentage_error},
    {"mean_squared_logarithmic_error", mean_squared_logarithmic_error},
    {"msle", mean_squared_logarithmic_error},
    {"huber", huber},
    {"huber_loss", huber},
    {"log_cosh", log_cosh},
    {"logcosh", log_cosh},
    {"poisson", poisson},
    {"kl_divergence", kl_divergence},
    {"kullback_leibler_divergence", kl_divergence},
    {"hinge", hinge},
    {"squared_hinge", squared_hinge},
    {"categorical_hinge", categorical_hinge},
    {"cosine_similarity", cosine_similarity},
};

LossOptions with(const losses::CrossentropyOptions& options) {
  return {.from_logits = options.from_logits, .label_smoothing = options.label_smoothing};
}

}  // namespace

Loss::Loss(std::string_view name) : name_(name) {
  for (const Row& row : kLosses) {
    if (name != row.name) continue;
    standard_ = row.function;
    takes_labels_ = row.takes_labels;
    return;
  }
  throw InvalidArgument(fmt::format(
      "loss: \"{}\" is none; use \"mean_squared_error\", \"binary_crossentropy\" or another of Keras' names", name));
}

Loss::Loss(std::string name, Function per_example) : name_(std::move(name)), function_(std::move(per_example)) {
  if (!function_) throw InvalidArgument(fmt::format("loss \"{}\": the function is empty; give one", name_));
}

Loss::Loss(const char* name, Standard function, const LossOptions& options, bool takes_labels)
    : name_(name), standard_(function), options_(options), takes_labels_(takes_labels) {}

Tensor Loss::fitted(const Tensor& targets, const Tensor& predictions) const {
  if (takes_labels_) return fit_labels(targets, predictions, name_);
  return fit_targets(targets, predictions, name_);
}

Loss Loss::with(const LossOptions& options) const {
  Loss result = *this;
  result.options_ = options;
  return result;
}

Tensor Loss::per_example(const Tensor& targets, const Tensor& predictions) const {
  if (function_) return function_(targets, predictions);
  LossOptions options = options_;
  options.reduction = Reduction::none;
  return standard_(fitted(targets, predictions), predictions, options);
}

Tensor Loss::operator()(const Tensor& targets, const Tensor& predictions, const Tensor& weights) const {
  if (weights.is_empty_handle()) {
    if (function_) return function_(targets, predictions).mean();
    return standard_(fitted(targets, predictions), predictions, options_);
  }
  const Tensor each = per_example(targets, predictions);
  return (each * fit_weights(weights, each.shape(), name_)).mean();
}

namespace losses {

Loss BinaryCrossentropy(const CrossentropyOptions& options) {
  return {"binary_crossentropy", binary_cross_entropy, with(options)};
}
Loss CategoricalCrossentropy(const CrossentropyOptions& options) {
  return {"categorical_crossentropy", categorical_cross_entropy, with(options)};
}
Loss SparseCategoricalCrossentropy(const CrossentropyOptions& options) {
  return {"sparse_categorical_crossentropy", sparse_categorical_cross_entropy, with(options), true};
}
Loss MeanSquaredError() { return "mean_squared_error"; }
Loss MeanAbsoluteError() { return "mean_absolute_error"; }
Loss MeanAbsolutePercentageError() { return "mean_absolute_percentage_error"; }
Loss MeanSquaredLogarithmicError() { return "mean_squared_logarithmic_error"; }
Loss Huber(double delta) { return {"huber", huber, {.delta = delta}}; }
Loss LogCosh() { return "log_cosh"; }
Loss Poisson() { return "poisson"; }
Loss KLDivergence() { return "kl_divergence"; }
Loss Hinge() { return "hinge"; }
Loss SquaredHinge() { return "squared_hinge"; }
Loss CategoricalHinge() { return "categorical_hinge"; }
Loss CosineSimilarity() { return "cosine_similarity"; }

}  // namespace losses
}  // namespace plimsoll
