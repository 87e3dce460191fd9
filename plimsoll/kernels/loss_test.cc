#include "plimsoll/kernels/loss.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

using Loss = std::function<void(const ConstTensorView& x, const ConstTensorView& y, const LossOutputs& out)>;
using Reference = std::function<double(const double* x, const double* y, std::int64_t n)>;

struct Case {
  const char* name;
  Loss loss;
  Reference reference;
};

double mean_of(const double* x, const double* y, std::int64_t n, double (*f)(double x, double y)) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += f(x[i], y[i]);
  return sum / double(n);
}

const Case kCases[] = {
    {"softmax", softmax_cross_entropy,
     [](const double* x, const double* y, std::int64_t n) {
       double sum = 0, loss = 0;
       for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i]);
       for (std::int64_t i = 0; i < n; ++i) loss -= y[i] * (x[i] - std::log(sum));
       return loss;
     }},
    {"sigmoid", sigmoid_cross_entropy,
     [](const double* x, const double* y, std::int64_t n) {
       return mean_of(x, y, n, [](double a, double b) {
         const double p = 1 / (1 + std::exp(-a));
         return -(b * std::log(p) + (1 - b) * std::log(1 - p));
       });
     }},
    {"squared", squared_error,
     [](const double* x, const double* y, std::int64_t n) {
       return mean_of(x, y, n, [](double a, double b) { return (a - b) * (a - b); });
     }},
    {"absolute", absolute_error,
     [](const double* x, const double* y, std::int64_t n) {
       return mean_of(x, y, n, [](double a, double b) { return std::fabs(a - b); });
     }},
    {"huber", [](const ConstTensorView& x, const ConstTensorView& y, const LossOutputs& out) { huber(x, y, 0.7, out); },
     [](const double* x, const double* y, std::int64_t n) {
       return mean_of(x, y, n, [](double a, double b) {
         const double e = std::fabs(a - b);
         return e <= 0.7 ? 0.5 * e * e : 0.7 * e - 0.5 * 0.7 * 0.7;
       });
     }},
};

double value_of(std::int64_t i) { return 2 * std::sin(double(i) * 1.7 + 0.3); }
double target_of(std::int64_t i) { return 0.5 + 0.5 * std::cos(double(i) * 0.9); }
double weight_of(std::int64_t i) { return 0.5 + double(i % 3); }

template <class T>
void expect_loss(const Case& c, std::int64_t rows, std::int64_t columns, bool weighted, double tolerance) {
  const TestTensor x = TestTensor::from<T>({rows, columns}, value_of), y = TestTensor::from<T>(x.shape(), target_of);
  const TestTensor upstream = TestTensor::from<T>({rows}, weight_of);
  TestTensor loss(kDTypeOf<T>, {rows}), only_loss = loss, gradient(kDTypeOf<T>, x.shape()), only_gradient = gradient;
  const ConstTensorView weights = weighted ? upstream.view() : ConstTensorView();
  c.loss(x.view(), y.view(), {loss.view(), gradient.view(), weights, 0.25});
  c.loss(x.view(), y.view(), {.loss = only_loss.view()});
  c.loss(x.view(), y.view(), {.gradient = only_gradient.view(), .upstream = weights, .scale = 0.25});
  std::vector<double> a(static_cast<std::size_t>(columns)), b = a;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < columns; ++i) {
      a[static_cast<std::size_t>(i)] = x.at(static_cast<std::size_t>(r * columns + i));
      b[static_cast<std::size_t>(i)] = y.at(static_cast<std::size_t>(r * columns + i));
    }
    const auto row = static_cast<std::size_t>(r);
    const double expected = c.reference(a.data(), b.data(), columns);
    ASSERT_NEAR(loss.at(row), expected, tolerance * (1 + std::fabs(expected))) << c.name << rows << "x" << columns;
    ASSERT_EQ(only_loss.at(row), loss.at(row)) << c.name;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double at = a[i], h = 1e-5;
      a[i] = at + h;
      const double above = c.reference(a.data(), b.data(), columns);
      a[i] = at - h;
      const double slope = (above - c.reference(a.data(), b.data(), columns)) / (2 * h);
      a[i] = at;
      const double weight = weighted ? 0.25 * upstream.at(row) : 0.25;
      const std::size_t place = row * a.size() + i;
      ASSERT_NEAR(gradient.at(place), slope * weight, 1e-6 + tolerance) << c.name << rows << "x" << columns;
      ASSERT_EQ(only_gradient.at(place), gradient.at(place)) << c.name;
    }
  }
}

TEST(Loss, ValuesAndGradientsMatchTheDefinitions) {
  for (const Case& c : kCases)
    for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 1}, {700, 1}, {5, 3}, {2, 8}, {9, 33}, {2, 600}})
      for (const bool weighted : {false, true}) {
        expect_loss<double>(c, rows, columns, weighted, 1e-12);
        expect_loss<float>(c, rows, columns, weighted, 1e-5);
      }
}

template <class T, class Label>
void expect_sparse(std::int64_t rows, std::int64_t classes) {
  const auto label_of = [&](std::int64_t r) { return static_cast<Label>(r * 7 % classes); };
  const TestTensor x = TestTensor::from<T>({rows, classes}, value_of);
  const TestTensor labels = TestTensor::from<Label>({rows}, label_of);
  const TestTensor one_hot = TestTensor::from<T>(
      x.shape(), [&](std::int64_t i) { return i % classes == std::int64_t(label_of(i / classes)) ? 1 : 0; });
  TestTensor loss(kDTypeOf<T>, {rows}), expected_loss = loss, gradient(kDTypeOf<T>, x.shape()), expected = gradient;
  sparse_softmax_cross_entropy(x.view(), labels.view(), {loss.view(), gradient.view(), {}, 0.5});
  softmax_cross_entropy(x.view(), one_hot.view(), {expected_loss.view(), expected.view(), {}, 0.5});
  for (std::size_t i = 0; i < loss.size(); ++i) ASSERT_NEAR(loss.at(i), expected_loss.at(i), 1e-6);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(gradient.at(i), expected.at(i), 1e-7);
}

TEST(Loss, IntegerLabelsAreOneHotTargets) {
  for (const auto& [rows, classes] : {std::pair{1, 1}, {4, 3}, {300, 10}, {3, 1100}}) {
    expect_sparse<float, std::int32_t>(rows, classes);
    expect_sparse<double, std::int64_t>(rows, classes);
  }
}

TEST(Loss, ALabelOutsideMakesItsRowNaN) {
  const TestTensor x = TestTensor::from<float>({3, 2}, value_of);
  const TestTensor labels = TestTensor::from<std::int32_t>({3}, [](std::int64_t i) { return i == 1 ? 2 : i - 1; });
  TestTensor loss(f32, {3}), gradient(f32, {3, 2});
  sparse_softmax_cross_entropy(x.view(), labels.view(), {loss.view(), gradient.view()});
  EXPECT_TRUE(std::isnan(loss.at(0)) && std::isnan(loss.at(1)) && !std::isnan(loss.at(2)));
  EXPECT_TRUE(std::isnan(gradient.at(0)) && std::isnan(gradient.at(3)) && !std::isnan(gradient.at(4)));
}

TEST(Loss, LargeLogitsDoNotOverflow) {
  const TestTensor x = TestTensor::from<float>({1, 3}, [](std::int64_t i) { return i == 0 ? 1e4f : -INFINITY; });
  const TestTensor y = TestTensor::from<float>({1, 3}, [](std::int64_t i) { return i == 0 ? 1.f : 0.f; });
  TestTensor loss(f32, {1}), gradient(f32, {1, 3});
  softmax_cross_entropy(x.view(), y.view(), {loss.view(), gradient.view()});
  EXPECT_EQ(loss.at(0), 0);
  EXPECT_EQ(gradient.at(1), 0);
  const TestTensor z = TestTensor::from<float>({2, 1}, [](std::int64_t i) { return i == 0 ? 1e4f : -1e4f; });
  const TestTensor one = TestTensor::from<float>({2, 1}, [](std::int64_t) { return 1.f; });
  TestTensor losses(f32, {2});
  sigmoid_cross_entropy(z.view(), one.view(), {.loss = losses.view()});
  EXPECT_EQ(losses.at(0), 0);
  EXPECT_EQ(losses.at(1), 1e4);
}

TEST(Loss, TheDerivativeOfAnAbsoluteErrorOfZeroIsZero) {
  const TestTensor x = TestTensor::from<float>({1, 2}, [](std::int64_t) { return 3.f; });
  TestTensor gradient(f32, {1, 2});
  absolute_error(x.view(), x.view(), {.gradient = gradient.view()});
  EXPECT_EQ(gradient.at(0), 0);
}

TEST(Loss, TheGradientMayReplaceThePredictionsAndNothingIsAllocated) {
  const TestTensor y = TestTensor::from<float>({2000, 10}, target_of);
  for (const Case& c : kCases) {
    TestTensor x = TestTensor::from<float>({2000, 10}, value_of), apart(f32, x.shape()), loss(f32, {2000});
    c.loss(x.view(), y.view(), {loss.view(), apart.view()});
    const std::size_t before = heap_allocations();
    c.loss(x.view(), y.view(), {loss.view(), x.view()});
    EXPECT_EQ(heap_allocations(), before);
    EXPECT_EQ(std::memcmp(x.data<float>(), apart.data<float>(), x.size() * 4), 0) << c.name;
  }
}

TEST(Loss, ResultsDoNotDependOnTheNumberOfThreads) {
  const TestTensor x = TestTensor::from<float>({5001, 11}, value_of),
                   y = TestTensor::from<float>({5001, 11}, target_of);
  const int threads = num_threads();
  for (const Case& c : kCases) {
    TestTensor loss(f32, {5001}), gradient(f32, x.shape()), loss2 = loss, gradient2 = gradient;
    set_num_threads(1);
    c.loss(x.view(), y.view(), {loss.view(), gradient.view()});
    set_num_threads(2);
    c.loss(x.view(), y.view(), {loss2.view(), gradient2.view()});
    EXPECT_EQ(std::memcmp(loss.data<float>(), loss2.data<float>(), loss.size() * 4), 0) << c.name;
    EXPECT_EQ(std::memcmp(gradient.data<float>(), gradient2.data<float>(), x.size() * 4), 0) << c.name;
  }
  set_num_threads(threads);
}

}  // namespace
}  // namespace plimsoll
