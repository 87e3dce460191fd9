#include "plimsoll/kernels/batch_norm.h"

#include <gtest/gtest.h>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/convolution_testing.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll {
namespace {

const Shape kShapes[] = {{1, 1}, {5, 3},     {2, 4, 3, 33}, {7, 1}, {200, 70},       {3, 5, 7, 64}, {3000, 5},
                         {1, 8}, {4000, 33}, {64, 500},     {17},   {2, 2, 2, 2, 3}, {20000, 1}};

// All results of a training step.
struct Step {
  TestTensor x, gamma, beta, dy, y, mean, variance, rstd, dx, dgamma, dbeta;
  BatchNormSettings options;
  std::size_t allocations = 0;

  template <class T>
  static Step of(const Shape& shape, BatchNormSettings with = {}) {
    const Shape channels = {shape.back()};
    constexpr DType kType = kDTypeOf<T>;
    Step s = {scattered<T>(shape, 1),      scattered<T>(channels, 2),   scattered<T>(channels, 3),
              scattered<T>(shape, 4),      TestTensor(kType, shape),    TestTensor(kType, channels),
              TestTensor(kType, channels), TestTensor(kType, channels), TestTensor(kType, shape),
              TestTensor(kType, channels), TestTensor(kType, channels), with};
    for (std::size_t i = 0; i < s.x.size(); ++i) s.x.data<T>()[i] += T(3);
    return s;
  }

  void run() {
    TestScratch scratch(batch_norm_scratch_bytes(x.shape(), x.dtype()));
    const ConstTensorView gamma_view = gamma.view(), beta_view = beta.view();
    const std::size_t before = heap_allocations();
    batch_norm_training(x.view(), {&gamma_view, &beta_view}, y.view(), {mean.view(), variance.view(), rstd.view()},
                        options, scratch);
    batch_norm_gradient(x.view(), dy.view(), mean.view(), rstd.view(), {&gamma_view, &beta_view}, options.relu,
                        {dx.view(), dgamma.view(), dbeta.view()}, scratch);
    allocations = heap_allocations() - before;
    EXPECT_TRUE(scratch.is_kept());
  }
};

template <class T>
void expect_definition(const Shape& shape, double tolerance) {
  Step s = Step::of<T>(shape);
  s.run();
  const std::size_t channels = s.mean.size(), rows = s.x.size() / channels;
  const double n = static_cast<double>(rows);
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0, dbeta = 0, dgamma = 0;
    for (std::size_t r = 0; r < rows; ++r) mean += s.x.at(r * channels + c) / n;
    for (std::size_t r = 0; r < rows; ++r) variance += std::pow(s.x.at(r * channels + c) - mean, 2) / n;
    const double rstd = 1 / std::sqrt(variance + 1e-3);
    for (std::size_t r = 0; r < rows; ++r) {
      dbeta += s.dy.at(r * channels + c);
      dgamma += s.dy.at(r * channels + c) * (s.x.at(r * channels + c) - mean) * rstd;
    }
    ASSERT_NEAR(s.mean.at(c), mean, tolerance * 0.5);
    ASSERT_NEAR(s.variance.at(c), variance, tolerance);
    ASSERT_NEAR(s.rstd.at(c), rstd, tolerance * rstd * 10);
    ASSERT_NEAR(s.dbeta.at(c), dbeta, tolerance * std::sqrt(n) * 10);
    ASSERT_NEAR(s.dgamma.at(c), dgamma, tolerance * std::sqrt(n) * 10);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t i = r * channels + c;
      const double normal = (s.x.at(i) - mean) * rstd;
      ASSERT_NEAR(s.y.at(i), normal * s.gamma.at(c) + s.beta.at(c), tolerance * 40);
      ASSERT_NEAR(s.dx.at(i), s.gamma.at(c) * rstd * (s.dy.at(i) - dbeta / n - normal * dgamma / n), tolerance * 400);
    }
  }
}

TEST(BatchNorm, TrainingAndGradientFollowTheDefinition) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.to_string());
    expect_definition<float>(shape, 1e-6);
    expect_definition<double>(shape, 1e-13);
  }
}

// In f64, of the loss sum(y * dy).
TEST(BatchNorm, GradientsAreThoseOfSmallSteps) {
  for (const bool relu : {false, true}) {
    Step s = Step::of<double>({4, 3, 5}, {.epsilon = 1e-2, .relu = relu});
    s.run();
    const auto loss = [&] {
      Step again = s;
      again.run();
      double sum = 0;
      for (std::size_t i = 0; i < s.y.size(); ++i) sum += again.y.at(i) * s.dy.at(i);
      return sum;
    };
    const auto expect_slope = [&](TestTensor& of, const TestTensor& gradient) {
      for (std::size_t i = 0; i < of.size(); ++i) {
        double& value = of.data<double>()[i];
        const double before = value, step = 1e-5;
        value = before + step;
        const double above = loss();
        value = before - step;
        const double below = loss();
        value = before;
        ASSERT_NEAR(gradient.at(i), (above - below) / (2 * step), 1e-7) << i;
      }
    };
    expect_slope(s.x, s.dx);
    expect_slope(s.gamma, s.dgamma);
    expect_slope(s.beta, s.dbeta);
  }
}

TEST(BatchNorm, FusedReluIsThatOfTheElementwiseKernel) {
  Step plain = Step::of<float>({300, 37}), fused = Step::of<float>({300, 37}, {.relu = true});
  plain.run();
  fused.run();
  TestTensor masked(f32, plain.dy.shape());
  unary(UnaryOp::relu, plain.y.view(), plain.y.view());
  EXPECT_TRUE(same_bits(plain.y, fused.y));
  binary(BinaryOp::relu_grad, plain.y.view(), plain.dy.view(), masked.view());
  plain.dy = masked;
  plain.run();
  EXPECT_TRUE(same_bits(plain.dx, fused.dx));
  EXPECT_TRUE(same_bits(plain.dgamma, fused.dgamma));
  EXPECT_TRUE(same_bits(plain.dbeta, fused.dbeta));
}

TEST(BatchNorm, InferenceUsesTheGivenMoments) {
  const TestTensor x = scattered<float>({6, 5}, 1), mean = scattered<float>({5}, 2), beta = scattered<float>({5}, 3);
  const TestTensor variance = TestTensor::from<float>({5}, [](std::int64_t i) { return float(i) + 0.5f; });
  TestTensor y(f32, {6, 5});
  TestScratch scratch(batch_norm_scratch_bytes(x.shape(), f32));
  const ConstTensorView beta_view = beta.view();
  batch_norm_inference(x.view(), mean.view(), variance.view(), {nullptr, &beta_view}, y.view(), {.epsilon = 0.25},
                       scratch);
  for (std::size_t i = 0; i < 30; ++i)
    EXPECT_NEAR(y.at(i), (x.at(i) - mean.at(i % 5)) / std::sqrt(variance.at(i % 5) + 0.25) + beta.at(i % 5), 1e-5);
  EXPECT_TRUE(scratch.is_kept());
}

TEST(BatchNorm, VarianceOfLargeValuesDoesNotCancel) {
  Step s = Step::of<float>({5000, 2});
  for (std::size_t i = 0; i < s.x.size(); ++i) s.x.data<float>()[i] = 10000.f + (i / 2 % 2 == 0 ? 0.5f : -0.5f);
  s.run();
  EXPECT_NEAR(s.variance.at(0), 0.25, 1e-3);
  EXPECT_NEAR(s.mean.at(1), 10000, 1e-3);
}

TEST(BatchNorm, OfNothingHasMomentsOfZero) {
  Step s = Step::of<float>({0, 3});
  s.run();
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(s.mean.at(c), 0);
    EXPECT_EQ(s.variance.at(c), 0);
    EXPECT_EQ(s.dgamma.at(c), 0);
    EXPECT_EQ(s.dbeta.at(c), 0);
  }
}

TEST(BatchNorm, IsAppliedAgainToTheBit) {
  for (const bool relu : {false, true}) {
    Step s = Step::of<float>({700, 37}, {.relu = relu});
    s.run();
    TestTensor again(f32, s.x.shape());
    TestScratch scratch(batch_norm_scratch_bytes(s.x.shape(), f32));
    const ConstTensorView gamma = s.gamma.view(), beta = s.beta.view();
    batch_norm_apply(s.x.view(), s.mean.view(), s.rstd.view(), {&gamma, &beta}, relu, again.view(), scratch);
    EXPECT_TRUE(same_bits(again, s.y));
  }
}

TEST(BatchNorm, WorksInPlace) {
  Step apart = Step::of<float>({50, 9}), within = apart;
  apart.run();
  TestScratch scratch(batch_norm_scratch_bytes(apart.x.shape(), f32));
  const ConstTensorView gamma = within.gamma.view(), beta = within.beta.view();
  TestTensor y = within.x, dx = within.dy;
  batch_norm_training(y.view(), {&gamma, &beta}, y.view(),
                      {within.mean.view(), within.variance.view(), within.rstd.view()}, {}, scratch);
  batch_norm_gradient(within.x.view(), dx.view(), within.mean.view(), within.rstd.view(), {&gamma}, false,
                      {dx.view(), within.dgamma.view(), within.dbeta.view()}, scratch);
  EXPECT_TRUE(same_bits(y, apart.y));
  EXPECT_TRUE(same_bits(dx, apart.dx));
}

TEST(BatchNorm, AllocatesNothingAndDoesNotDependOnTheNumberOfThreads) {
  const int threads = num_threads();
  Step one = Step::of<float>({9000, 33}, {.relu = true}), many = one;
  set_num_threads(1);
  one.run();
  set_num_threads(2);
  many.run();
  many.run();
  set_num_threads(threads);
  EXPECT_EQ(many.allocations, 0u);
  EXPECT_TRUE(same_bits(one.y, many.y));
  EXPECT_TRUE(same_bits(one.variance, many.variance));
  EXPECT_TRUE(same_bits(one.dx, many.dx));
  EXPECT_TRUE(same_bits(one.dgamma, many.dgamma));
}

}  // namespace
}  // namespace plimsoll
