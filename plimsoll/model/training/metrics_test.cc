#include "plimsoll/model/training/metrics.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/training/losses.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

double value_of(const Metric& metric, const Tensor& targets, const Tensor& predictions, const Tensor& weights = {}) {
  metric.reset();
  metric.update(targets, predictions, weights);
  return metric.result();
}

TEST(Metric, AccuracyIsResolvedAsInKeras) {
  const Tensor column = constant({{0.2f}, {0.6f}, {0.5f}});
  EXPECT_NEAR(value_of("accuracy", constant({{0.f}, {1.f}, {1.f}}), column), 2.0 / 3, 1e-7);
  EXPECT_NEAR(value_of("acc", constant({0, 1, 0}), column), 1, 1e-7);
  const Tensor rows = constant({{0.1f, 0.9f}, {0.8f, 0.2f}, {0.3f, 0.7f}});
  EXPECT_NEAR(value_of("accuracy", constant({1, 1, 1}), rows), 2.0 / 3, 1e-7);
  EXPECT_NEAR(value_of("accuracy", constant({{1}, {0}, {0}}), rows), 2.0 / 3, 1e-7);
  EXPECT_NEAR(value_of("accuracy", constant({{0.f, 1.f}, {1.f, 0.f}, {0.f, 1.f}}), rows), 1, 1e-7);
  EXPECT_EQ(Metric("acc").name(), "acc");
}

TEST(Metric, WeighsExamples) {
  const Tensor p = constant({{1.f}, {3.f}}), t = constant({{0.f}, {0.f}});
  EXPECT_NEAR(value_of("mae", t, p, constant({1.f, 3.f})), (1 + 9) / 4.0, 1e-6);
}

TEST(Metric, AddsUpOverBatches) {
  const Metric metric = "mse";
  metric.update(constant({{0.f}}), constant({{2.f}}));
  metric.update(constant({{0.f}, {0.f}}), constant({{0.f}, {1.f}}));
  EXPECT_NEAR(metric.result(), 5.0 / 3, 1e-6);
  metric.reset();
  EXPECT_EQ(metric.result(), 0);
  EXPECT_NEAR(value_of(metrics::RootMeanSquaredError(), constant({{0.f}}), constant({{3.f}})), 3, 1e-6);
}

TEST(Metric, CountsAtThresholds) {
  const Tensor t = constant({{1.f}, {0.f}, {1.f}, {1.f}}), p = constant({{0.9f}, {0.8f}, {0.4f}, {0.6f}});
  EXPECT_NEAR(value_of("precision", t, p), 2.0 / 3, 1e-7);
  EXPECT_NEAR(value_of("recall", t, p), 2.0 / 3, 1e-7);
  EXPECT_NEAR(value_of(metrics::Recall({.threshold = 0.3}), t, p), 1, 1e-7);
  EXPECT_NEAR(value_of(metrics::Precision({.threshold = 0.95}), t, p), 0, 1e-7);
}

// One pair of four is in the wrong order.
TEST(Metric, AreaUnderTheCurveIsTheShareOfPairsInOrder) {
  const Tensor t = constant({{0.f}, {0.f}, {1.f}, {1.f}}), p = constant({{0.1f}, {0.4f}, {0.35f}, {0.8f}});
  EXPECT_NEAR(value_of("auc", t, p), 0.75, 1e-6);
  EXPECT_NEAR(value_of("auc", t, constant({{0.1f}, {0.2f}, {0.6f}, {0.8f}})), 1, 1e-6);
  EXPECT_NEAR(value_of("auc", t, constant({{0.5f}, {0.5f}, {0.5f}, {0.5f}})), 0.5, 1e-6);
}

TEST(Metric, TopKTakesLabelsAndRows) {
  const Tensor p = constant({{0.5f, 0.3f, 0.2f}, {0.1f, 0.2f, 0.7f}});
  EXPECT_NEAR(value_of(metrics::TopK(2), constant({1, 0}), p), 0.5, 1e-7);
  EXPECT_NEAR(value_of(metrics::TopK(2), constant({{0.f, 1.f, 0.f}, {0.f, 1.f, 0.f}}), p), 1, 1e-7);
  EXPECT_THROW(metrics::TopK(0), InvalidArgument);
}

TEST(Metric, RefusesNamesAndShapes) {
  EXPECT_THROW(Metric("accurate"), InvalidArgument);
  EXPECT_THROW(Loss("accurate"), InvalidArgument);
  EXPECT_THROW(value_of("mse", zeros({3, 2}), zeros({3, 4})), InvalidArgument);
  EXPECT_THROW(value_of("sparse_categorical_accuracy", zeros({3, 2}), zeros({3, 4})), InvalidArgument);
  EXPECT_THROW(value_of("mse", zeros({3, 1}), zeros({3, 1}), ones({2})), InvalidArgument);
  EXPECT_THROW(metrics::AUC({.num_thresholds = 1}), InvalidArgument);
}

TEST(Loss, TakesTargetsInKerasForms) {
  const Tensor p = constant({{0.25f}, {0.5f}});
  EXPECT_NEAR(Loss("mse")(constant({0, 1}), p).item<float>(), (0.0625 + 0.25) / 2, 1e-6);
  const Tensor rows = constant({{0.1f, 0.9f}, {0.8f, 0.2f}});
  const float sparse = Loss("sparse_categorical_crossentropy")(constant({{1.f}, {0.f}}), rows).item<float>();
  const float dense = losses::CategoricalCrossentropy()(constant({{0, 1}, {1, 0}}), rows).item<float>();
  EXPECT_NEAR(sparse, -(std::log(0.9) + std::log(0.8)) / 2, 1e-6);
  EXPECT_NEAR(sparse, dense, 1e-6);
}

TEST(Loss, CanBeYourOwn) {
  const Loss mine("cubes", [](const Tensor& t, const Tensor& p) { return ((p - t) * (p - t) * (p - t)).sum({-1}); });
  EXPECT_NEAR(mine(constant({{1.f}, {1.f}}), constant({{2.f}, {3.f}})).item<float>(), 4.5, 1e-6);
  EXPECT_THROW(Loss("none", Loss::Function()), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
