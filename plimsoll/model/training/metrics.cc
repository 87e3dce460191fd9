#include "plimsoll/model/training/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/model/training/losses.h"
#include "plimsoll/model/training/targets.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {

class MetricBase {
 public:
  explicit MetricBase(std::string name) : name_(std::move(name)) {}
  virtual ~MetricBase() = default;
  virtual Metric::Parts parts(const Tensor& targets, const Tensor& predictions, const Tensor& weights) const = 0;
  virtual std::size_t num_sums() const noexcept = 0;
  // Fills in num_sums() zeros.
  virtual void sum(std::span<const ConstTensorView> parts, double count, std::span<double> to) const noexcept = 0;
  virtual double result(const Metric::Sums& sums) const noexcept = 0;
  virtual std::shared_ptr<MetricBase> clone() const = 0;
  const std::string& name() const noexcept { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  Metric::Sums sums;  // num_sums() of them, once there is a Metric.

 private:
  std::string name_;
};

namespace {

class MeanMetric : public MetricBase {
 public:
  MeanMetric(std::string name, Metric::Function per_example, bool root = false)
      : MetricBase(std::move(name)), per_example_(std::move(per_example)), root_(root) {}
  Metric::Parts parts(const Tensor& targets, const Tensor& predictions, const Tensor& weights) const override {
    const Tensor each = per_example_(targets, predictions).cast(f32);
    if (weights.is_empty_handle()) return {.tensors = {each.sum()}, .count = static_cast<double>(each.size())};
    const Tensor scale = broadcast_to(fit_weights(weights, each.shape(), name()), each.shape());
    return {.tensors = {(each * scale).sum(), scale.sum()}};
  }
  std::size_t num_sums() const noexcept override { return 2; }
  void sum(std::span<const ConstTensorView> parts, double count, std::span<double> to) const noexcept override {
    to[0] = *parts[0].data<float>();
    to[1] = parts.size() > 1 ? *parts[1].data<float>() : count;
  }
  std::shared_ptr<MetricBase> clone() const override { return std::make_shared<MeanMetric>(*this); }
  double result(const Metric::Sums& sums) const noexcept override {
    const double mean = sums[1] > 0 ? sums[0] / sums[1] : 0;
    return root_ ? std::sqrt(mean) : mean;
  }

 private:
  const Metric::Function per_example_;
  const bool root_;
};

Tensor binary_matches(const Tensor& targets, const Tensor& predictions, double threshold) {
  const Tensor right =
      fit_targets(targets, predictions, "binary_accuracy") == (predictions > threshold).cast(predictions.dtype());
  return right.cast(f32).mean({-1});
}
Tensor label_matches(const Tensor& targets, const Tensor& predictions) {
  return fit_labels(targets, predictions, "sparse_categorical_accuracy").cast(i64) == predictions.argmax(-1);
}
Tensor row_matches(const Tensor& targets, const Tensor& predictions) {
  return fit_targets(targets, predictions, "categorical_accuracy").argmax(-1) == predictions.argmax(-1);
}

bool are_labels(const Tensor& targets, const Tensor& predictions) {
  if (targets.rank() < predictions.rank()) return true;
  return targets.rank() > 0 && targets.shape().back() == 1 && predictions.shape().back() > 1;
}

// Keras' rule for "accuracy".
Tensor matches(const Tensor& targets, const Tensor& predictions) {
  if (predictions.rank() == 0 || predictions.shape().back() == 1) return binary_matches(targets, predictions, 0.5);
  return are_labels(targets, predictions) ? label_matches(targets, predictions) : row_matches(targets, predictions);
}

Tensor among_largest(const Tensor& targets, const Tensor& predictions, std::int64_t k) {
  const Tensor labels = are_labels(targets, predictions)
                            ? fit_labels(targets, predictions, "top_k_categorical_accuracy").cast(i64)
                            : fit_targets(targets, predictions, "top_k_categorical_accuracy").argmax(-1);
  const Tensor best = top_k(predictions, std::min(k, predictions.shape().back())).indices;
  return (best == labels.expand_dims(-1)).any({-1});
}

// Counts the positives and negatives predicted above thresholds: sums are [true positives, false positives] for each
// threshold, then all positives and all negatives. Thresholds are sorted.
class ThresholdMetric : public MetricBase {
 public:
  ThresholdMetric(std::string name, std::vector<double> thresholds)
      : MetricBase(std::move(name)), thresholds_(std::move(thresholds)) {}
  Metric::Parts parts(const Tensor& targets, const Tensor& predictions, const Tensor& weights) const override {
    const Tensor p = predictions.dtype() == f32 ? predictions : predictions.cast(f32);
    Metric::Parts parts{.tensors = {fit_targets(targets, p, name()), p}};
    if (!weights.is_empty_handle())
      parts.tensors.push_back(broadcast_to(fit_weights(weights, p.shape(), name()), p.shape()));
    return parts;
  }
  std::size_t num_sums() const noexcept override { return 2 * thresholds_.size() + 2; }
  void sum(std::span<const ConstTensorView> parts, double, std::span<double> to) const noexcept override {
    const auto elements = [&](std::size_t part) -> std::span<const float> {
      if (part >= parts.size()) return {};
      return {parts[part].data<float>(), parts[part].size()};
    };
    count(elements(0), elements(1), elements(2), to);
  }

 protected:
  std::size_t num_thresholds() const noexcept { return thresholds_.size(); }

 private:
  // A prediction belongs to the last threshold below it; then sums from the end.
  void count(std::span<const float> targets, std::span<const float> predictions, std::span<const float> weights,
             std::span<double> sums) const noexcept {
    const std::size_t n = thresholds_.size();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const double weight = weights.empty() ? 1 : weights[i];
      const bool positive = targets[i] > 0.5f;
      sums[2 * n + !positive] += weight;
      const auto above = std::lower_bound(thresholds_.begin(), thresholds_.end(), predictions[i]);
      if (above == thresholds_.begin()) continue;
      sums[2 * static_cast<std::size_t>(above - thresholds_.begin() - 1) + !positive] += weight;
    }
    for (std::size_t i = n - 1; i-- > 0;)
      for (const std::size_t kind : {0, 1}) sums[2 * i + kind] += sums[2 * (i + 1) + kind];
  }

  const std::vector<double> thresholds_;
};

class PrecisionMetric final : public ThresholdMetric {
 public:
  PrecisionMetric(std::string name, double threshold, bool recall)
      : ThresholdMetric(std::move(name), {threshold}), recall_(recall) {}
  std::shared_ptr<MetricBase> clone() const override { return std::make_shared<PrecisionMetric>(*this); }
  double result(const Metric::Sums& sums) const noexcept override {
    const double of = recall_ ? sums[2] : sums[0] + sums[1];
    return of > 0 ? sums[0] / of : 0;
  }

 private:
  const bool recall_;
};

std::vector<double> spread_thresholds(int count) {
  std::vector<double> result = {-1e-7};
  for (int i = 1; i + 1 < count; ++i) result.push_back(static_cast<double>(i) / (count - 1));
  result.push_back(1 + 1e-7);
  return result;
}

class AUCMetric final : public ThresholdMetric {
 public:
  AUCMetric(std::string name, int count) : ThresholdMetric(std::move(name), spread_thresholds(count)) {}
  std::shared_ptr<MetricBase> clone() const override { return std::make_shared<AUCMetric>(*this); }
  double result(const Metric::Sums& sums) const noexcept override {
    const std::size_t n = num_thresholds();
    const double positives = sums[2 * n], negatives = sums[2 * n + 1];
    const auto share = [](double part, double all) { return all > 0 ? part / all : 0; };
    double area = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const double width = share(sums[2 * i + 1], negatives) - share(sums[2 * i + 3], negatives);
      area += width * (share(sums[2 * i], positives) + share(sums[2 * i + 2], positives)) / 2;
    }
    return area;
  }
};

std::shared_ptr<MetricBase> mean_of(std::string name, Metric::Function f) {
  return std::make_shared<MeanMetric>(std::move(name), std::move(f));
}

std::shared_ptr<MetricBase> of_name(std::string_view name) {
  const std::string text(name);
  if (name == "accuracy" || name == "acc") return mean_of(text, matches);
  if (name == "binary_accuracy")
    return mean_of(text, [](const Tensor& t, const Tensor& p) { return binary_matches(t, p, 0.5); });
  if (name == "categorical_accuracy") return mean_of(text, row_matches);
  if (name == "sparse_categorical_accuracy") return mean_of(text, label_matches);
  if (name == "top_k_categorical_accuracy" || name == "sparse_top_k_categorical_accuracy")
    return mean_of(text, [](const Tensor& t, const Tensor& p) { return among_largest(t, p, 5); });
  if (name == "auc" || name == "AUC") return std::make_shared<AUCMetric>("auc", 200);
  if (name == "precision") return std::make_shared<PrecisionMetric>(text, 0.5, false);
  if (name == "recall") return std::make_shared<PrecisionMetric>(text, 0.5, true);
  try {
    return mean_of(text, [loss = Loss(name)](const Tensor& t, const Tensor& p) { return loss.per_example(t, p); });
  } catch (const InvalidArgument&) {
    throw InvalidArgument(
        fmt::format("metric: \"{}\" is none; use \"accuracy\", \"auc\", \"mae\" or another of Keras' names", name));
  }
}

}  // namespace

Metric::Metric(std::shared_ptr<MetricBase> base) : base_(std::move(base)) { base_->sums = zero_sums(); }
Metric::Metric(std::string_view name) : Metric(of_name(name)) {}
Metric::Metric(std::string name, Function per_example) : Metric(mean_of(std::move(name), std::move(per_example))) {}

const std::string& Metric::name() const noexcept { return base_->name(); }
Metric::Sums Metric::measure(const Tensor& targets, const Tensor& predictions, const Tensor& weights) const {
  return tidy([&] {
    const Parts made = parts(targets, predictions, weights);
    std::vector<ConstTensorView> views;
    std::vector<HostBytes> here(made.tensors.size());
    for (const Tensor& tensor : made.tensors) views.push_back(tensor.host_view(here[views.size()]));
    Sums result = zero_sums();
    sum(views, made.count, result);
    return result;
  });
}
Metric::Parts Metric::parts(const Tensor& targets, const Tensor& predictions, const Tensor& weights) const {
  return base_->parts(targets, predictions, weights);
}
Metric::Sums Metric::zero_sums() const { return Sums(base_->num_sums()); }
void Metric::sum(std::span<const ConstTensorView> parts, double count, std::span<double> to) const noexcept {
  base_->sum(parts, count, to);
}
void Metric::add(const Sums& sums) const noexcept {
  for (std::size_t i = 0; i < sums.size(); ++i) base_->sums[i] += sums[i];
}
double Metric::result() const noexcept { return base_->result(base_->sums); }
void Metric::reset() const noexcept { std::fill(base_->sums.begin(), base_->sums.end(), 0.0); }

Metric Metric::clone(std::string name) const {
  std::shared_ptr<MetricBase> copy = base_->clone();
  copy->set_name(std::move(name));
  return Metric(std::move(copy));
}

namespace metrics {

namespace {
std::string named(const std::string& given, const char* otherwise) { return given.empty() ? otherwise : given; }
}  // namespace

Metric Accuracy(const std::string& name) { return Metric(mean_of(name, matches)); }
Metric BinaryAccuracy(const ThresholdOptions& options) {
  const double threshold = options.threshold;
  return Metric(mean_of(named(options.name, "binary_accuracy"),
                        [threshold](const Tensor& t, const Tensor& p) { return binary_matches(t, p, threshold); }));
}
Metric Precision(const ThresholdOptions& options) {
  return Metric(std::make_shared<PrecisionMetric>(named(options.name, "precision"), options.threshold, false));
}
Metric Recall(const ThresholdOptions& options) {
  return Metric(std::make_shared<PrecisionMetric>(named(options.name, "recall"), options.threshold, true));
}
Metric AUC(const AUCOptions& options) {
  if (options.num_thresholds < 2)
    throw InvalidArgument(fmt::format("AUC: {} thresholds; give 2 or more", options.num_thresholds));
  return Metric(std::make_shared<AUCMetric>(named(options.name, "auc"), options.num_thresholds));
}
Metric TopK(std::int64_t k, const std::string& name) {
  if (k < 1) throw InvalidArgument(fmt::format("TopK: k is {}; give 1 or more", k));
  return Metric(mean_of(named(name, "top_k_categorical_accuracy"),
                        [k](const Tensor& t, const Tensor& p) { return among_largest(t, p, k); }));
}
Metric MeanAbsoluteError() { return "mean_absolute_error"; }
Metric MeanSquaredError() { return "mean_squared_error"; }
Metric RootMeanSquaredError() {
  return Metric(std::make_shared<MeanMetric>(
      "root_mean_squared_error", [](const Tensor& t, const Tensor& p) { return Loss("mse").per_example(t, p); }, true));
}

}  // namespace metrics
}  // namespace plimsoll
