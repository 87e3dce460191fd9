#include "plimsoll/kernels/reduce.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Shape kept_shape(const Shape& shape, AxesMask axes) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (!(axes >> i & 1)) sizes.push_back(shape[i]);
  return Shape(sizes).or_scalar();
}

// For each output the input's elements, in order.
std::vector<std::vector<double>> groups(const TestTensor& x, AxesMask axes) {
  std::vector<std::vector<double>> result(kept_shape(x.shape(), axes).size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t rest = i, index = 0, stride = 1;
    for (std::size_t axis = x.shape().rank(); axis-- > 0;) {
      const auto size = static_cast<std::size_t>(x.shape()[axis]);
      if (!(axes >> axis & 1)) index += rest % size * stride, stride *= size;
      rest /= size;
    }
    result[index].push_back(x.at(i));
  }
  return result;
}

double lowest(DType dtype) {
  return visit_dtype(dtype, []<class T>(TypeTag<T>) { return static_cast<double>(std::numeric_limits<T>::lowest()); });
}
double highest(DType dtype) {
  return visit_dtype(dtype, []<class T>(TypeTag<T>) { return static_cast<double>(std::numeric_limits<T>::max()); });
}

double reference(ReduceOp op, const std::vector<double>& values, DType dtype) {
  const bool floating = is_floating(dtype);
  double sum = 0, product = 1, largest = floating ? -kInfinity : lowest(dtype);
  double smallest = floating ? kInfinity : highest(dtype);
  for (const double v : values) {
    sum += v, product *= v;
    if (v > largest || std::isnan(v)) largest = v;
    if (v < smallest || std::isnan(v)) smallest = v;
  }
  switch (op) {
    case ReduceOp::sum:
      return sum;
    case ReduceOp::mean:
      if (!floating) return values.empty() ? 0 : std::trunc(sum / static_cast<double>(values.size()));
      return sum / static_cast<double>(values.size());
    case ReduceOp::product:
      return product;
    case ReduceOp::max:
    case ReduceOp::any:
      return largest;
    case ReduceOp::min:
    case ReduceOp::all:
      return smallest;
  }
  return 0;
}

void expect_reduced(ReduceOp op, const TestTensor& x, AxesMask axes) {
  TestTensor out(x.dtype(), kept_shape(x.shape(), axes));
  reduce(op, x.view(), axes, out.view());
  const auto expected = groups(x, axes);
  for (std::size_t i = 0; i < out.size(); ++i) {
    double value = reference(op, expected[i], x.dtype());
    value = visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) -> double {
      if constexpr (std::is_integral_v<T>)
        return sizeof(T) == 8 || std::is_same_v<T, bool> ? value : static_cast<T>(static_cast<std::int64_t>(value));
      else
        return static_cast<T>(value);
    });
    const double tolerance = (is_half(x.dtype()) ? 1e-2 : 1e-5) * (1 + std::fabs(value));
    ASSERT_TRUE(same(out.at(i), value) || (is_floating(x.dtype()) && std::fabs(out.at(i) - value) <= tolerance))
        << "op " << int(op) << " " << x.dtype() << x.shape() << " axes " << axes << " at " << i << ": " << out.at(i)
        << ", not " << value;
  }
}

TEST(Reduce, MatchesTheDefinitionForEveryDtypeAndSetOfAxes) {
  const Shape shapes[] = {{3, 4, 5},  {2, 3, 2, 3}, {7},    {2, 600},  {600, 2},
                          {3, 1, 70}, {0, 3},       {3, 0}, {2, 0, 3}, {1, 1}};
  for (const Shape& shape : shapes)
    for (std::size_t d = 0; d < kNumDTypes; ++d)
      visit_dtype(static_cast<DType>(d), [&]<class T>(TypeTag<T>) {
        for (int special = 0; special < 2; ++special) {
          const TestTensor x = awkward<T>(shape, special == 1);
          for (AxesMask axes = 0; axes < (1u << shape.rank()); ++axes)
            for (int op = 0; op < 7; ++op) {
              const auto reduction = static_cast<ReduceOp>(op);
              const bool product_of_integers = reduction == ReduceOp::product && !is_floating(x.dtype());
              if (is_supported(reduction, x.dtype()) && !(product_of_integers && x.size() > 40))
                expect_reduced(reduction, x, axes);
            }
        }
      });
}

TEST(Reduce, ScalarsReduceToThemselves) {
  const TestTensor x = TestTensor::from<float>(Shape::scalar(), [](std::int64_t) { return 3.f; });
  expect_reduced(ReduceOp::sum, x, kAllAxes);
}

TEST(Reduce, LargeReductionsAreAccurateInEveryDirection) {
  const TestTensor x = TestTensor::from<float>({3000, 70}, [](std::int64_t i) { return 0.1f + float(i % 7); });
  for (const AxesMask axes : {AxesMask{1}, AxesMask{2}, AxesMask{3}}) {
    TestTensor out(f32, kept_shape(x.shape(), axes));
    reduce(ReduceOp::sum, x.view(), axes, out.view());
    const auto expected = groups(x, axes);
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_LE(float_ulps(static_cast<float>(out.at(i)), reference(ReduceOp::sum, expected[i], f32)), 6) << axes;
  }
}

TEST(Reduce, ResultsDoNotDependOnTheNumberOfThreads) {
  const TestTensor x = TestTensor::from<float>({200, 3, 1000}, [](std::int64_t i) { return 1.f / float(i + 1); });
  const int threads = num_threads();
  for (AxesMask axes = 1; axes < 8; ++axes) {
    TestTensor one(f32, kept_shape(x.shape(), axes)), many = one;
    set_num_threads(1);
    reduce(ReduceOp::sum, x.view(), axes, one.view());
    set_num_threads(3);
    reduce(ReduceOp::sum, x.view(), axes, many.view());
    EXPECT_EQ(std::memcmp(one.data<float>(), many.data<float>(), one.size() * 4), 0) << axes;
  }
  set_num_threads(threads);
}

TEST(Reduce, IntegersAreSummedIn64Bits) {
  const TestTensor x = TestTensor::from<std::int32_t>({4}, [](std::int64_t) { return INT32_MAX; });
  TestTensor out(i32, Shape::scalar());
  reduce(ReduceOp::mean, x.view(), kAllAxes, out.view());
  EXPECT_EQ(out.at(0), INT32_MAX);
}

TEST(Argmax, FindsTheFirstExtremeAndPrefersNaN) {
  const Shape shape = {5, 300, 4};
  for (std::size_t d = 0; d < kNumDTypes; ++d)
    visit_dtype(static_cast<DType>(d), [&]<class T>(TypeTag<T>) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const TestTensor x = awkward<T>(shape, axis != 1);
        TestTensor largest(i64, kept_shape(shape, 1u << axis)), smallest = largest;
        argmax(x.view(), axis, largest.view());
        argmin(x.view(), axis, smallest.view());
        const auto expected = groups(x, 1u << axis);
        for (std::size_t i = 0; i < largest.size(); ++i) {
          std::size_t max = 0, min = 0;
          for (std::size_t k = 1; k < expected[i].size(); ++k) {
            const double v = expected[i][k], a = expected[i][max], b = expected[i][min];
            if (v > a || (std::isnan(v) && !std::isnan(a))) max = k;
            if (v < b || (std::isnan(v) && !std::isnan(b))) min = k;
          }
          ASSERT_EQ(largest.at(i), static_cast<double>(max)) << x.dtype() << " " << axis;
          ASSERT_EQ(smallest.at(i), static_cast<double>(min)) << x.dtype() << " " << axis;
        }
      }
    });
}

TEST(Softmax, MatchesTheDefinitionAlongTheLastAxis) {
  for (const DType dtype : {f16, bf16, f32, f64})
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      for (const Shape& shape : {Shape{4, 7}, Shape{3, 1300}, Shape{50}, Shape{2, 3, 1}, Shape{0, 5}, Shape{5, 0}}) {
        const TestTensor x = awkward<T>(shape, false);
        TestTensor y(x.dtype(), shape), log_y = x;
        softmax(x.view(), y.view());
        log_softmax(log_y.view(), log_y.view());
        const double tolerance = is_half(x.dtype()) ? 1e-2 : x.dtype() == f32 ? 1e-6 : 1e-14;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const auto n = static_cast<std::size_t>(shape.back());
          double largest = -kInfinity, sum = 0;
          for (std::size_t k = i / n * n; k < i / n * n + n; ++k) largest = std::max(largest, x.at(k));
          for (std::size_t k = i / n * n; k < i / n * n + n; ++k) sum += std::exp(x.at(k) - largest);
          const double value = std::exp(x.at(i) - largest) / sum, log = x.at(i) - largest - std::log(sum);
          ASSERT_NEAR(y.at(i), value, tolerance * std::fabs(value) + 1e-7 * is_half(x.dtype())) << x.dtype() << shape;
          ASSERT_NEAR(log_y.at(i), log, tolerance * (1 + std::fabs(log))) << x.dtype() << shape;
        }
      }
    });
}

TEST(Softmax, LargeValuesDoNotOverflowAndNaNSpoilsItsRowOnly) {
  const float x[] = {1000.f, 1001.f, -INFINITY, NAN, 1.f, 2.f};
  float y[6];
  softmax({x, 0, f32, {2, 3}}, {y, 0, f32, {2, 3}});
  EXPECT_NEAR(y[0], 0.26894142, 1e-6);
  EXPECT_NEAR(y[1], 0.73105858, 1e-6);
  EXPECT_EQ(y[2], 0.f);
  for (int i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(y[i]));
}

TEST(Softmax, GradientsMatchTheirDefinition) {
  for (const DType dtype : {f16, bf16, f32, f64})
    for (const Shape& shape : {Shape{3, 700}, Shape{5}, Shape{2, 3, 33}, Shape{40, 1}, Shape{0, 4}, Shape{2, 5000}}) {
      const TestTensor x = visit_dtype(dtype, [&]<class T>(TypeTag<T>) { return awkward<T>(shape, false); });
      const TestTensor dy = visit_dtype(dtype, [&]<class T>(TypeTag<T>) { return awkward<T>(shape, false, 11); });
      const std::size_t n = static_cast<std::size_t>(shape.back());
      for (const bool log : {false, true}) {
        TestTensor y(dtype, shape), out(dtype, shape);
        (log ? log_softmax : softmax)(x.view(), y.view());
        (log ? log_softmax_grad : softmax_grad)(y.view(), dy.view(), out.view());
        const double tolerance = dtype == f64 ? 1e-12 : is_half(dtype) ? 0.3 : 3e-4;
        for (std::size_t row = 0; row < out.size(); row += n) {
          double sum = 0;
          for (std::size_t i = row; i < row + n; ++i) sum += dy.at(i) * (log ? 1 : y.at(i));
          for (std::size_t i = row; i < row + n; ++i)
            ASSERT_NEAR(out.at(i), log ? dy.at(i) - std::exp(y.at(i)) * sum : y.at(i) * (dy.at(i) - sum), tolerance)
                << dtype << " " << shape << " " << i;
        }
        TestTensor in_place = dy;
        (log ? log_softmax_grad : softmax_grad)(y.view(), in_place.view(), in_place.view());
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(in_place.at(i), out.at(i));
      }
    }
}

TEST(Softmax, MaskedElementsAreExactlyZeroAndNaNSpreadsOverItsRowOnly) {
  std::vector<float> x = {1, -HUGE_VALF, 2, -1000, NAN, 1, 2, 3}, y(8);
  softmax({x.data(), 0, f32, {2, 4}}, {y.data(), 0, f32, {2, 4}});
  EXPECT_EQ(y[1], 0.f);
  EXPECT_EQ(y[3], 0.f);
  EXPECT_NEAR(y[0] + y[2], 1, 1e-6);
  for (int i = 4; i < 8; ++i) EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(i)]));
}

}  // namespace
}  // namespace plimsoll
