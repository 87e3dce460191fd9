#include <gtest/gtest.h>

#include <bit>

#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/internal/loops.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

using Reference = double (*)(double);

struct Case {
  UnaryOp op;
  Reference exact;
  double max_ulps;
  double low = -200, high = 200;  // Arguments, and every 2^14-th bit pattern between them.
};

constexpr double kSqrtHalf = 0.70710678118654752440;

double gelu(double x) { return x == -HUGE_VAL ? 0 : 0.5 * x * std::erfc(-x * kSqrtHalf); }
double sigmoid(double x) { return (x < 0 ? std::exp(x) : 1) / (1 + std::exp(-std::fabs(x))); }
double gelu_tanh(double x) { return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

const Case kCases[] = {
    {UnaryOp::exp, std::exp, 1.0},
    {UnaryOp::expm1, std::expm1, 2.0},
    {UnaryOp::log, std::log, 1.0, -1, 1e38},
    {UnaryOp::log1p, std::log1p, 2.0, -2, 1e38},
    {UnaryOp::sin, std::sin, 2.0, -3, 3},
    {UnaryOp::cos, std::cos, 2.0, -1.5, 1.5},
    {UnaryOp::tanh, std::tanh, 5.0},
    {UnaryOp::erf, std::erf, 8.0},
    {UnaryOp::sigmoid, sigmoid, 4.0, -87, 200},
    {UnaryOp::softplus, softplus, 4.0, -87, 200},
    {UnaryOp::elu, [](double x) { return x < 0 ? std::expm1(x) : x; }, 2.0},
    {UnaryOp::selu, [](double x) { return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x); },
     4.0},
    {UnaryOp::gelu, gelu, 8.0, -12.8, 200},  // Below, the result is subnormal.
    {UnaryOp::sqrt, std::sqrt, 0.51, 0, 3e38},
    {UnaryOp::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5, 0, 3e38},
    {UnaryOp::reciprocal, [](double x) { return 1 / x; }, 0.51},
    {UnaryOp::floor, std::floor, 0},
    {UnaryOp::ceil, std::ceil, 0},
    {UnaryOp::round, std::nearbyint, 0},
    {UnaryOp::tan, std::tan, 1.0, -1.5, 1.5},
    {UnaryOp::atan, std::atan, 1.0},
    {UnaryOp::asin, std::asin, 1.0, -2, 2},
    {UnaryOp::acos, std::acos, 1.0, -2, 2},
    {UnaryOp::sinh, std::sinh, 2.0, -80, 80},
    {UnaryOp::cosh, std::cosh, 2.0, -80, 80},
    {UnaryOp::asinh, std::asinh, 2.0},
    {UnaryOp::acosh, std::acosh, 2.0, 0, 1e38},
    {UnaryOp::atanh, std::atanh, 2.0, -2, 2},
    {UnaryOp::negative, [](double x) { return -x; }, 0},
    {UnaryOp::abs, std::fabs, 0},
    {UnaryOp::relu, [](double x) { return x < 0 ? 0 : x; }, 0},
    {UnaryOp::relu6, [](double x) { return x < 0   ? 0
                                           : x > 6 ? 6
                                                   : x; }, 0},
    {UnaryOp::square, [](double x) { return x * x; }, 0.51},
    {UnaryOp::softsign, [](double x) { return x / (1 + std::fabs(x)); }, 1.6},
    {UnaryOp::swish, [](double x) { return x * sigmoid(x); }, 5.0, -80, 200},
};

std::vector<float> arguments(double low, double high) {
  std::vector<float> x;
  for (int i = 0; i <= 60000; ++i) {
    const double t = i / 60000.0;
    const double narrow = std::min(high, 20.0), start = std::max(low, -20.0);
    x.push_back(static_cast<float>(start + (narrow - start) * t));
  }
  for (std::uint32_t bits = 0; bits < 0xffff0000u; bits += 1u << 14) {
    const float value = std::bit_cast<float>(bits);
    if (value >= low && value <= high) x.push_back(value);
  }
  if (high < 100) return x;
  for (float value : {0.f, -0.f, INFINITY, -INFINITY, NAN, 88.7f, 88.73f, -87.4f, -103.9f, -104.1f, 1e-40f})
    if (!(std::isfinite(value) && value < low)) x.push_back(value);
  return x;
}

TEST(ElementwiseMath, FloatErrorsStayWithinTheStatedUlps) {
  for (const Case& c : kCases) {
    const std::vector<float> x = arguments(c.low, c.high);
    std::vector<float> y(x.size());
    const Shape shape = {x.size()};
    unary(c.op, {x.data(), 0, f32, shape}, {y.data(), 0, f32, shape});
    double worst = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const double ulps = float_ulps(y[i], c.exact(x[i])); ulps > worst) worst = ulps, where = i;
    EXPECT_LE(worst, c.max_ulps) << op_name(c.op) << "(" << x[where] << ") is " << y[where] << ", not "
                                 << c.exact(x[where]);
  }
}

TEST(ElementwiseMath, GeluKeepsItsDigitsInTheTail) {
  const float x[] = {-5.76f, -9.f, -12.f, -20.f, -INFINITY, INFINITY, NAN};
  float y[7];
  unary(UnaryOp::gelu, {x, 0, f32, {7}}, {y, 0, f32, {7}});
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(y[i] / gelu(x[i]), 1, 1e-6) << x[i];
  EXPECT_EQ(y[3], 0.f);
  EXPECT_EQ(y[4], 0.f);
  EXPECT_EQ(y[5], INFINITY);
  EXPECT_TRUE(std::isnan(y[6]));
  const double wide[] = {-5.76, -9, -30, -HUGE_VAL, HUGE_VAL};
  double z[5];
  unary(UnaryOp::gelu, {wide, 0, f64, {5}}, {z, 0, f64, {5}});
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(z[i] / gelu(wide[i]), 1, 1e-13) << wide[i];
  EXPECT_EQ(z[3], 0);
  EXPECT_EQ(z[4], HUGE_VAL);
}

// Relative to the larger of its two terms, which cancel near -0.75.
TEST(ElementwiseMath, GeluSlopesKeepTheirDigitsInTheTail) {
  const std::vector<float> x = arguments(-12.8, 20), one = {1};
  std::vector<float> y(x.size());
  binary(BinaryOp::gelu_grad, {x.data(), 0, f32, {x.size()}}, {one.data(), 0, f32, Shape::scalar()},
         {y.data(), 0, f32, {x.size()}});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double below = 0.5 * std::erfc(-x[i] * kSqrtHalf);
    const double rise = x[i] * std::exp(-0.5 * double(x[i]) * x[i]) * 0.39894228040143268;
    ASSERT_NEAR(y[i], below + rise, 1e-6 * std::max(below, std::fabs(rise))) << x[i];
  }
}

TEST(ElementwiseMath, GeluByTanhIsAsGoodAsItsSigmoid) {
  const std::vector<float> x = arguments(-10, 20);
  std::vector<float> y(x.size());
  unary(UnaryOp::gelu_tanh, {x.data(), 0, f32, {x.size()}}, {y.data(), 0, f32, {x.size()}});
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], gelu_tanh(x[i]), 4e-7 * (1 + std::fabs(x[i]))) << x[i];
  const TestTensor wide = awkward<double>({100}, false);
  TestTensor z(f64, {100});
  unary(UnaryOp::gelu_tanh, wide.view(), z.view());
  for (std::size_t i = 0; i < z.size(); ++i) ASSERT_NEAR(z.at(i), gelu_tanh(wide.at(i)), 1e-14) << wide.at(i);
}

TEST(ElementwiseMath, SineAndCosineOfLargeArgumentsAreRight) {
  std::vector<float> x;
  for (int i = 0; i < 10000; ++i) x.push_back(static_cast<float>(i * 1.37 - 5000) * (i % 7 == 0 ? 1e4f : 1.f));
  x.push_back(INFINITY);
  std::vector<float> y(x.size());
  for (const UnaryOp op : {UnaryOp::sin, UnaryOp::cos}) {
    unary(op, {x.data(), 0, f32, {x.size()}}, {y.data(), 0, f32, {x.size()}});
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      const double exact = op == UnaryOp::sin ? std::sin(double(x[i])) : std::cos(double(x[i]));
      ASSERT_NEAR(y[i], exact, 2e-7) << x[i];
    }
    EXPECT_TRUE(std::isnan(y.back()));
  }
}

TEST(ElementwiseMath, VectorisedDoublesAreRightOverTheirWholeRange) {
  std::vector<double> x;
  for (int i = -3000; i <= 3000; ++i) x.push_back(i * 0.25), x.push_back(i * 1.1e-3);
  for (int i = -1070; i < 1024; ++i) x.push_back(std::ldexp(1.37, i)), x.push_back(-std::ldexp(1.37, i));
  for (const double value : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 709.78, 709.79, -745.13, -745.14, 5e-324})
    x.push_back(value);
  std::vector<double> y(x.size());
  for (const UnaryOp op : {UnaryOp::exp, UnaryOp::log, UnaryOp::tanh, UnaryOp::sigmoid}) {
    unary(op, {x.data(), 0, f64, {x.size()}}, {y.data(), 0, f64, {x.size()}});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = op == UnaryOp::exp    ? std::exp(x[i])
                           : op == UnaryOp::log  ? std::log(x[i])
                           : op == UnaryOp::tanh ? std::tanh(x[i])
                                                 : sigmoid(x[i]);
      const double smallest = op == UnaryOp::sigmoid ? 2.3e-308 : 5e-324;  // A sigmoid is not subnormal, but 0.
      ASSERT_TRUE(same(y[i], exact) || std::fabs(y[i] - exact) <= std::fabs(exact) * 7e-16 + smallest)
          << op_name(op) << " of " << x[i] << " is " << y[i] << ", not " << exact;
      ASSERT_TRUE(op != UnaryOp::tanh || x[i] != 0 || std::signbit(y[i]) == std::signbit(x[i]));
    }
  }
}

TEST(ElementwiseMath, DoublesAreWithinTwoUlpsOfTheLibrary) {
  const TestTensor x = awkward<double>({1000});
  for (const Case& c : kCases) {
    TestTensor y(f64, {1000});
    unary(c.op, x.view(), y.view());
    for (std::size_t i = 0; i < 1000; ++i) {
      const double exact = c.exact(x.at(i));
      if (c.op == UnaryOp::swish && std::isnan(exact)) continue;
      ASSERT_TRUE(same(y.at(i), exact) || std::fabs(y.at(i) - exact) <= std::fabs(exact) * 1e-15)
          << op_name(c.op) << " of " << x.at(i) << " is " << y.at(i) << ", not " << exact;
    }
  }
}

TEST(ElementwiseMath, TestsAndSignsKnowNaN) {
  const float x[] = {NAN, INFINITY, -INFINITY, 0.f, -2.f, 3.f};
  const auto run = [&](UnaryOp op) {
    std::vector<float> out(6);
    TestTensor y(result_dtype(op, f32), {6});
    unary(op, {x, 0, f32, {6}}, y.view());
    for (std::size_t i = 0; i < 6; ++i) out[i] = static_cast<float>(y.at(i));
    return out;
  };
  EXPECT_EQ(run(UnaryOp::is_nan), (std::vector<float>{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(UnaryOp::is_inf), (std::vector<float>{0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(run(UnaryOp::is_finite), (std::vector<float>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(run(UnaryOp::logical_not), (std::vector<float>{0, 0, 0, 1, 0, 0}));
  const std::vector<float> signs = run(UnaryOp::sign);
  EXPECT_TRUE(std::isnan(signs[0]));
  EXPECT_EQ(std::vector<float>(signs.begin() + 1, signs.end()), (std::vector<float>{1, -1, 0, -1, 1}));
}

TEST(ElementwiseMath, EveryInstructionSetIsWithinTheStatedUlps) {
  for (const Loops* table : every_loops())
    for (const Case& c : kCases) {
      const std::vector<float> x = arguments(c.low, c.high);
      std::vector<float> y(x.size());
      const void* in = x.data();
      table->unary[static_cast<std::size_t>(c.op)][kNativeF32][0](&in, y.data(), static_cast<std::int64_t>(x.size()));
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, float_ulps(y[i], c.exact(x[i])));
      EXPECT_LE(worst, c.max_ulps + 1) << op_name(c.op) << " " << table->name;
    }
}

}  // namespace
}  // namespace plimsoll
