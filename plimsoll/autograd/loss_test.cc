#include "plimsoll/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

using Loss = Tensor (*)(const Tensor&, const Tensor&, const LossOptions&);
using Row = double (*)(const double* y, const double* p, int n);

double mean_of(const double* y, const double* p, int n, double (*f)(double, double)) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += f(y[i], p[i]);
  return sum / n;
}

// Plainly, row by row, after Keras' own definitions. All take targets and predictions between 0.05 and 0.95.
struct Case {
  const char* name;
  Loss loss;
  bool from_logits;
  bool is_smooth;
  Row row;
};
const Case kCases[] = {
    {"mean_squared_error", mean_squared_error, false, true,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return (b - a) * (b - a); });
     }},
    {"mean_absolute_error", mean_absolute_error, false, false,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return std::abs(b - a); });
     }},
    {"huber", huber, false, false,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return 0.5 * (b - a) * (b - a); });
     }},
    {"log_cosh", log_cosh, false, true,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return std::log(std::cosh(b - a)); });
     }},
    {"mean_absolute_percentage_error", mean_absolute_percentage_error, false, false,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return 100 * std::abs(a - b) / std::max(std::abs(a), 1e-7); });
     }},
    {"mean_squared_logarithmic_error", mean_squared_logarithmic_error, false, true,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return std::pow(std::log1p(a) - std::log1p(b), 2); });
     }},
    {"poisson", poisson, false, true,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return b - a * std::log(b + 1e-7); });
     }},
    {"binary_cross_entropy", binary_cross_entropy, false, true,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n,
                      [](double a, double b) { return -(a * std::log(b + 1e-7) + (1 - a) * std::log(1 - b + 1e-7)); });
     }},
    {"binary_cross_entropy from logits", binary_cross_entropy, true, true,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) {
         const double s = 1 / (1 + std::exp(-b));
         return -(a * std::log(s) + (1 - a) * std::log(1 - s));
       });
     }},
    {"categorical_cross_entropy", categorical_cross_entropy, false, true,
     [](const double* y, const double* p, int n) {
       double sum = 0, loss = 0;
       for (int i = 0; i < n; ++i) sum += p[i];
       for (int i = 0; i < n; ++i) loss -= y[i] * std::log(std::min(p[i] / sum, 1 - 1e-7));
       return loss;
     }},
    {"categorical_cross_entropy from logits", categorical_cross_entropy, true, true,
     [](const double* y, const double* p, int n) {
       double sum = 0, loss = 0;
       for (int i = 0; i < n; ++i) sum += std::exp(p[i]);
       for (int i = 0; i < n; ++i) loss -= y[i] * std::log(std::exp(p[i]) / sum);
       return loss;
     }},
    {"kl_divergence", kl_divergence, false, true,
     [](const double* y, const double* p, int n) {
       double loss = 0;
       for (int i = 0; i < n; ++i) loss += y[i] * std::log(y[i] / p[i]);
       return loss;
     }},
    {"hinge", hinge, false, false,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return std::max(0.0, 1 - a * b); });
     }},
    {"squared_hinge", squared_hinge, false, false,
     [](const double* y, const double* p, int n) {
       return mean_of(y, p, n, [](double a, double b) { return std::pow(std::max(0.0, 1 - a * b), 2); });
     }},
    {"categorical_hinge", categorical_hinge, false, false,
     [](const double* y, const double* p, int n) {
       double right = 0, wrong = -1e300;
       for (int i = 0; i < n; ++i) right += y[i] * p[i], wrong = std::max(wrong, (1 - y[i]) * p[i]);
       return std::max(0.0, wrong - right + 1);
     }},
    {"cosine_similarity", cosine_similarity, false, true,
     [](const double* y, const double* p, int n) {
       double product = 0, yy = 0, pp = 0;
       for (int i = 0; i < n; ++i) product += y[i] * p[i], yy += y[i] * y[i], pp += p[i] * p[i];
       return -product / std::sqrt(yy * pp);
     }},
};

TEST(Loss, IsWhatKerasSays) {
  for (const Case& c : kCases)
    for (const Shape& shape : {Shape{1, 1}, Shape{1, 3}, Shape{7, 5}, Shape{2, 3, 4}, Shape{3, 600}}) {
      const int n = static_cast<int>(shape.back()), rows = static_cast<int>(shape.size()) / n;
      const Tensor y = varied(shape, 0.05, 0.95), p = varied(shape, 0.05, 0.95, 0.8);
      const auto targets = y.to_vector<double>(), predictions = p.to_vector<double>();
      const Tensor each = c.loss(y, p, {.reduction = Reduction::none, .from_logits = c.from_logits});
      ASSERT_EQ(each.rank(), shape.rank() - 1) << c.name;
      double sum = 0;
      for (int r = 0; r < rows; ++r) {
        const double wanted =
            c.row(&targets[static_cast<std::size_t>(r * n)], &predictions[static_cast<std::size_t>(r * n)], n);
        EXPECT_NEAR(each.to_vector<double>()[static_cast<std::size_t>(r)], wanted, 1e-9) << c.name << " row " << r;
        sum += wanted;
      }
      EXPECT_NEAR(c.loss(y, p, {.from_logits = c.from_logits}).item<double>(), sum / rows, 1e-9) << c.name;
      EXPECT_NEAR(c.loss(y, p, {.reduction = Reduction::sum, .from_logits = c.from_logits}).item<double>(), sum, 1e-8)
          << c.name;
    }
}

TEST(Loss, HasGradientsForPredictionsAndTargets) {
  const Tensors x = {varied({3, 4}, 0.05, 0.95), varied({3, 4}, 0.05, 0.95, 0.8)};
  for (const Case& c : kCases)
    for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
      SCOPED_TRACE(c.name);
      expect_gradients(
          [&](const Tensors& at) {
            return c.loss(at[0], at[1], {.reduction = reduction, .from_logits = c.from_logits});
          },
          x, c.is_smooth || c.loss == huber, 1e-5);
    }
}

TEST(Loss, SpreadsSmoothedLabels) {
  const Tensor y = constant({{0.0, 1.0}}), p = constant({{0.3, 0.9}});
  const Tensor soft = constant({{0.1, 0.9}});
  for (const bool logits : {false, true}) {
    EXPECT_NEAR(binary_cross_entropy(y, p, {.from_logits = logits, .label_smoothing = 0.2}).item<double>(),
                binary_cross_entropy(soft, p, {.from_logits = logits}).item<double>(), 1e-12);
    EXPECT_NEAR(categorical_cross_entropy(y, p, {.from_logits = logits, .label_smoothing = 0.2}).item<double>(),
                categorical_cross_entropy(soft, p, {.from_logits = logits}).item<double>(), 1e-12);
  }
  EXPECT_THROW(binary_cross_entropy(y, p, {.label_smoothing = 1.5}), InvalidArgument);
}

TEST(Loss, OfLabelsIsThatOfTheirOneHotRows) {
  const Tensor p = varied({4, 3}, 0.1, 0.9), labels = constant({2, 0, 1, 1});
  const Tensor rows = one_hot(labels, 3).cast(f64);
  for (const bool logits : {false, true}) {
    EXPECT_NEAR(sparse_categorical_cross_entropy(labels, p, {.from_logits = logits}).item<double>(),
                categorical_cross_entropy(rows, p, {.from_logits = logits}).item<double>(), 1e-6);
    expect_gradients(
        [&](const Tensors& x) { return sparse_categorical_cross_entropy(labels, x[0], {.from_logits = logits}); }, {p},
        false, 1e-5);
  }
  EXPECT_THROW(sparse_categorical_cross_entropy(constant({3, 0, 1, 1}), p, {}), InvalidArgument);
}

TEST(Loss, TakesLargeErrorsByTheirSize) {
  const Tensor y = constant({{0.0, 0.0}}), p = constant({{3.0, -0.5}});
  EXPECT_NEAR(huber(y, p, {.delta = 2}).item<double>(), (2 * 3 - 2 + 0.125) / 2, 1e-12);
  EXPECT_THROW(huber(y, p, {.delta = 0}), InvalidArgument);
}

TEST(Loss, OfHalvesIsComputedInSingles) {
  const Tensor y = varied({3, 4}, 0, 1).cast(f16), p = varied({3, 4}, 0, 1, 0.8).cast(f16);
  const Tensor loss = mean_squared_error(y, p);
  EXPECT_EQ(loss.dtype(), f16);
  EXPECT_EQ(loss.cast(f32).item<float>(),
            mean_squared_error(y.cast(f32), p.cast(f32)).cast(f16).cast(f32).item<float>());
}

TEST(Loss, RefusesWhatDoesNotGoTogether) {
  for (const Case& c : kCases) {
    EXPECT_THROW(c.loss(ones({2, 3}), ones({3, 2}), {.from_logits = c.from_logits}), InvalidArgument) << c.name;
    EXPECT_THROW(c.loss(ones({2, 3}), ones({2, 3}, f64), {.from_logits = c.from_logits}), InvalidArgument) << c.name;
    EXPECT_THROW(c.loss(ones({2}, i32), ones({2}, i32), {.from_logits = c.from_logits}), InvalidArgument) << c.name;
    EXPECT_THROW(c.loss(constant(1.f), constant(1.f), {.from_logits = c.from_logits}), InvalidArgument) << c.name;
    EXPECT_THROW(c.loss(Tensor(), ones({2}), {.from_logits = c.from_logits}), Error) << c.name;
  }
  try {
    mean_squared_error(ones({2, 3}), ones({3, 2}));
  } catch (const InvalidArgument& e) {
    EXPECT_STREQ(e.what(), "mean_squared_error: targets [2, 3] and predictions [3, 2] differ; give both one shape");
  }
}

}  // namespace
}  // namespace plimsoll
