// Metric: a figure about a model's predictions reported with the loss: Keras' metrics, or your own.
//
//   model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae", metrics::TopK(3)}});
//   Metric mine("distance", [](const Tensor& targets, const Tensor& predictions) { return ...; });   // [batch, ..]
//
// "accuracy" is resolved as in Keras: predictions of one column are compared with 1/2, otherwise the largest column
// counts; targets may be labels or rows. A metric accumulates over batches: the mean of per-example values (weighted by
// sample weights), or counts at thresholds. A handle: copies share their sums. Thread safety: one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

class MetricBase;

class PLIMSOLL_API Metric {
 public:
  using Function = std::function<Tensor(const Tensor& targets, const Tensor& predictions)>;
  // What a batch adds to a metric's sums.
  using Sums = std::vector<double>;

  // "accuracy" ("acc"), "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy",
  // "top_k_categorical_accuracy", "sparse_top_k_categorical_accuracy", "auc", "precision", "recall", and the names of
  // losses. Throws InvalidArgument for others.
  Metric(std::string_view name);
  Metric(const char* name) : Metric(std::string_view(name)) {}
  Metric(const std::string& name) : Metric(std::string_view(name)) {}
  Metric(std::string name, Function per_example);
  explicit Metric(std::shared_ptr<MetricBase> base);

  const std::string& name() const noexcept;
  // For one batch; changes nothing.
  Sums measure(const Tensor& targets, const Tensor& predictions, const Tensor& weights = {}) const;
  // The same in two halves, for planned steps: the tensors that sums are computed from, and their sums.
  struct Parts {
    std::vector<Tensor> tensors;
    double count = 0;  // Of examples, when none is weighted.
  };
  Parts parts(const Tensor& targets, const Tensor& predictions, const Tensor& weights = {}) const;
  Sums zero_sums() const;  // As many zeros as there are sums,
  void sum(std::span<const ConstTensorView> parts, double count, std::span<double> to) const noexcept;  // to fill in.
  void add(const Sums& sums) const noexcept;  // From a metric of the same kind.
  void update(const Tensor& targets, const Tensor& predictions, const Tensor& weights = {}) const {
    add(measure(targets, predictions, weights));
  }
  double result() const noexcept;  // Since reset(); 0 when there was nothing.
  void reset() const noexcept;
  Metric clone(std::string name) const;  // Another one of the same kind, with its own sums.

 private:
  std::shared_ptr<MetricBase> base_;
};

namespace metrics {
struct ThresholdOptions {
  double threshold = 0.5;
  std::string name = {};
};
struct AUCOptions {
  int num_thresholds = 200;
  std::string name = {};
};
PLIMSOLL_API Metric Accuracy(const std::string& name = "accuracy");
PLIMSOLL_API Metric BinaryAccuracy(const ThresholdOptions& options = {});
PLIMSOLL_API Metric Precision(const ThresholdOptions& options = {});
PLIMSOLL_API Metric Recall(const ThresholdOptions& options = {});
PLIMSOLL_API Metric AUC(const AUCOptions& options = {});                     // Under the ROC curve, by trapezoids.
PLIMSOLL_API Metric TopK(std::int64_t k = 5, const std::string& name = {});  // Of rows or labels.
PLIMSOLL_API Metric MeanAbsoluteError();
PLIMSOLL_API Metric MeanSquaredError();
PLIMSOLL_API Metric RootMeanSquaredError();
}  // namespace metrics

}  // namespace plimsoll
