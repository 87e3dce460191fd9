#include "plimsoll/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/loops.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The operand's element for the output's element `i`, by the definition of broadcasting.
std::size_t source_index(const Shape& operand, const Shape& out, std::size_t i) {
  std::size_t index = 0, stride = 1;
  for (std::size_t back = 1; back <= out.rank(); ++back) {
    const auto size = static_cast<std::size_t>(out[out.rank() - back]);
    if (back <= operand.rank()) {
      const auto mine = static_cast<std::size_t>(operand[operand.rank() - back]);
      if (mine != 1) index += i % size * stride;
      stride *= mine;
    }
    i /= size;
  }
  return index;
}

// The derivative, by differences: good to some nine digits. Far out it is 0 or 1 for the functions below.
double slope(double (*f)(double), double x) {
  if (std::isinf(x)) return x > 0 ? 1 : 0;
  constexpr double kStep = 1e-4;
  const double near = (f(x + kStep) - f(x - kStep)) / (2 * kStep);
  const double far = (f(x + 2 * kStep) - f(x - 2 * kStep)) / (4 * kStep);
  return (4 * near - far) / 3;
}

double modulo(double a, double b, bool integer) {
  if (b == 0) return integer ? 0 : std::nan("");
  if (std::isinf(b) && std::isfinite(a)) return a == 0 || (a < 0) == (b < 0) ? a : b;
  return a - std::floor(a / b) * b;
}

// In doubles: exact for the small values of the tests in every dtype up to one rounding.
struct Reference {
  BinaryOp op;
  double (*value)(double a, double b, bool integer);
};
const Reference kReferences[] = {
    {BinaryOp::add, [](double a, double b, bool) -> double { return a + b; }},
    {BinaryOp::subtract, [](double a, double b, bool) -> double { return a - b; }},
    {BinaryOp::multiply, [](double a, double b, bool) -> double { return a * b; }},
    {BinaryOp::divide,
     [](double a, double b, bool integer) -> double { return integer ? (b == 0 ? 0 : std::floor(a / b)) : a / b; }},
    {BinaryOp::floor_divide,
     [](double a, double b, bool integer) -> double { return integer && b == 0 ? 0 : std::floor(a / b); }},
    {BinaryOp::modulo, [](double a, double b, bool integer) -> double { return modulo(a, b, integer); }},
    {BinaryOp::power,
     [](double a, double b, bool integer) -> double {
       return integer && b < 0 ? (a == 0 ? 0 : std::trunc(std::pow(a, b))) : std::pow(a, b);
     }},
    {BinaryOp::minimum,
     [](double a, double b, bool) -> double { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b); }},
    {BinaryOp::maximum,
     [](double a, double b, bool) -> double { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }},
    {BinaryOp::squared_difference, [](double a, double b, bool) -> double { return (a - b) * (a - b); }},
    {BinaryOp::divide_no_nan, [](double a, double b, bool) -> double { return b == 0 ? 0 : a / b; }},
    {BinaryOp::xdivy, [](double a, double b, bool) -> double { return a == 0 ? 0 : a / b; }},
    {BinaryOp::xlogy, [](double a, double b, bool) -> double { return a == 0 ? 0 : a * std::log(b); }},
    {BinaryOp::atan2, [](double a, double b, bool) -> double { return std::atan2(a, b); }},
    {BinaryOp::equal, [](double a, double b, bool) -> double { return a == b; }},
    {BinaryOp::not_equal, [](double a, double b, bool) -> double { return a != b; }},
    {BinaryOp::less, [](double a, double b, bool) -> double { return a < b; }},
    {BinaryOp::less_equal, [](double a, double b, bool) -> double { return a <= b; }},
    {BinaryOp::greater, [](double a, double b, bool) -> double { return a > b; }},
    {BinaryOp::greater_equal, [](double a, double b, bool) -> double { return a >= b; }},
    {BinaryOp::logical_and, [](double a, double b, bool) -> double { return a != 0 && b != 0; }},
    {BinaryOp::logical_or, [](double a, double b, bool) -> double { return a != 0 || b != 0; }},
    {BinaryOp::logical_xor, [](double a, double b, bool) -> double { return (a != 0) != (b != 0); }},
    {BinaryOp::leaky_relu, [](double a, double b, bool) -> double { return a > 0 ? a : a * b; }},
    {BinaryOp::relu_grad, [](double a, double b, bool) -> double { return a > 0 ? b : 0; }},
    {BinaryOp::relu6_grad, [](double a, double b, bool) -> double { return a > 0 && a < 6 ? b : 0; }},
    {BinaryOp::tanh_grad, [](double a, double b, bool) -> double { return b * (1 - a * a); }},
    {BinaryOp::sigmoid_grad, [](double a, double b, bool) -> double { return b * (a * (1 - a)); }},
    {BinaryOp::hard_sigmoid_grad, [](double a, double b, bool) -> double { return a > 0 && a < 1 ? 0.2 * b : 0; }},
    {BinaryOp::elu_grad, [](double a, double b, bool) -> double { return a < 0 ? b * (a + 1) : b; }},
    {BinaryOp::selu_grad,
     [](double a, double b, bool) -> double {
       return a < 0 ? b * (a + 1.0507009873554805 * 1.6732632423543772) : b * 1.0507009873554805;
     }},
    {BinaryOp::softsign_grad,
     [](double a, double b, bool) -> double { return b / ((1 + std::fabs(a)) * (1 + std::fabs(a))); }},
    {BinaryOp::softplus_grad, [](double a, double b, bool) -> double { return b / (1 + std::exp(-a)); }},
    {BinaryOp::swish_grad,
     [](double a, double b, bool) -> double { return b * slope([](double x) { return x / (1 + std::exp(-x)); }, a); }},
    {BinaryOp::gelu_grad,
     [](double a, double b, bool) -> double {
       return b * slope([](double x) { return x / 2 * (1 + std::erf(x * std::sqrt(0.5))); }, a);
     }},
    {BinaryOp::gelu_tanh_grad,
     [](double a, double b, bool) -> double {
       return b *
              slope([](double x) { return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); },
                    a);
     }},
};

// What `dtype` makes of an exact value.
double rounded(double value, DType dtype) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<double>(static_cast<T>(static_cast<std::int64_t>(value)));
    else
      return static_cast<double>(static_cast<T>(value));
  });
}

TestTensor awkward_of(DType dtype, const Shape& shape, std::int64_t start = 0) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) { return awkward<T>(shape, true, start); });
}

void expect_binary(const Reference& reference, DType dtype, const Shape& left, const Shape& right) {
  const BinaryOp op = reference.op;
  const TestTensor a = awkward_of(dtype, left), b = awkward_of(dtype, right, 17);
  TestTensor out(result_dtype(op, dtype), broadcast_shapes(left, right));
  binary(op, a.view(), b.view(), out.view());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double x = a.at(source_index(left, out.shape(), i)), y = b.at(source_index(right, out.shape(), i));
    const double expected = reference.value(x, y, !is_floating(dtype));
    const double value = rounded(expected, out.dtype());
    const double scale = std::fabs(value) + (op >= BinaryOp::elu_grad && std::isfinite(y) ? std::fabs(y) : 0);
    const double tolerance = is_floating(dtype) ? scale * (is_half(dtype) ? 1e-2 : 1e-6) : 0;
    ASSERT_TRUE(same(out.at(i), value) || std::fabs(out.at(i) - value) <= tolerance)
        << op_name(op) << " " << dtype << " of " << x << " and " << y << " is " << out.at(i) << ", not " << value
        << " at " << i << " of " << left << " and " << right;
  }
}

TEST(Elementwise, EveryBinaryOperationMatchesItsDefinitionForEveryDtypeAndBroadcast) {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{41 * 41}, {41 * 41}},
                                                       {{3, 700}, {700}},
                                                       {{700}, {3, 1}},
                                                       {{7, 1, 3}, {1, 5, 1}},
                                                       {{2, 3, 4}, {3, 1}},
                                                       {{600, 3}, {600, 1}},
                                                       {{5}, Shape::scalar()},
                                                       {Shape::scalar(), {5}},
                                                       {{0, 3}, {3}},
                                                       {{1}, {0}},
                                                       {{2, 1, 40}, {2, 9, 40}},
                                                       {{1, 1}, {1}},
                                                       {{2, 1, 2, 1, 2}, {1, 2, 1, 2, 1}},
                                                       {Shape::scalar(), Shape::scalar()}};
  for (const Reference& reference : kReferences)
    for (std::size_t dtype = 0; dtype < kNumDTypes; ++dtype)
      if (is_supported(reference.op, static_cast<DType>(dtype)))
        for (const auto& [left, right] : shapes) expect_binary(reference, static_cast<DType>(dtype), left, right);
}

double reference(TernaryOp op, double a, double b, double c) {
  switch (op) {
    case TernaryOp::clip:
      a = a < b ? b : a;
      return a > c ? c : a;
    case TernaryOp::is_within:
      return a >= b && a <= c;
    case TernaryOp::leaky_relu_grad:
      return a > 0 ? b : b * c;
    case TernaryOp::kCount:
      break;
  }
  return 0;
}

void expect_ternary(TernaryOp op, DType dtype, const Shape& first, const Shape& second, const Shape& third) {
  const TestTensor a = awkward_of(dtype, first), b = awkward_of(dtype, second, 17), c = awkward_of(dtype, third, 5);
  TestTensor out(result_dtype(op, dtype), broadcast_shapes(broadcast_shapes(first, second), third));
  ternary(op, a.view(), b.view(), c.view(), out.view());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double x = a.at(source_index(first, out.shape(), i)), y = b.at(source_index(second, out.shape(), i)),
                 z = c.at(source_index(third, out.shape(), i)), value = rounded(reference(op, x, y, z), out.dtype());
    const double tolerance = is_floating(dtype) ? std::fabs(value) * (is_half(dtype) ? 1e-2 : 1e-6) : 0;
    ASSERT_TRUE(same(out.at(i), value) || std::fabs(out.at(i) - value) <= tolerance)
        << op_name(op) << " " << dtype << " of " << x << ", " << y << " and " << z << " is " << out.at(i) << ", not "
        << value << " at " << i << " of " << first << ", " << second << " and " << third;
  }
}

TEST(Elementwise, EveryTernaryOperationMatchesItsDefinitionForEveryDtypeAndBroadcast) {
  const Shape scalar = Shape::scalar();
  const std::vector<std::array<Shape, 3>> shapes = {{Shape{41, 41}, Shape{41, 41}, Shape{41, 41}},
                                                    {Shape{20000}, scalar, scalar},
                                                    {Shape{700}, Shape{700}, Shape{1}},
                                                    {scalar, Shape{50}, scalar},
                                                    {scalar, scalar, scalar},
                                                    {Shape{30, 40}, Shape{40}, Shape{30, 1}},
                                                    {Shape{30, 1}, Shape{30, 1}, Shape{1, 50}},
                                                    {Shape{300, 5}, Shape{5}, Shape{300, 1}},
                                                    {Shape{0, 5}, Shape{5}, scalar}};
  for (int op = 0; op < static_cast<int>(TernaryOp::kCount); ++op)
    for (std::size_t dtype = 0; dtype < kNumDTypes; ++dtype)
      if (is_supported(static_cast<TernaryOp>(op), static_cast<DType>(dtype)))
        for (const auto& [a, b, c] : shapes)
          expect_ternary(static_cast<TernaryOp>(op), static_cast<DType>(dtype), a, b, c);
}

TEST(Elementwise, PowersByANumberAreThoseByATensor) {
  for (const double exponent : {2.0, 3.0, 0.5, -1.0, 0.0, 1.0, -2.5, 7.0, HUGE_VAL, std::nan("")}) {
    const TestTensor x = awkward<float>({2000}), wide = awkward<double>({2000});
    const TestTensor number = TestTensor::from<float>(Shape::scalar(), [&](auto) { return exponent; });
    const TestTensor wide_number = TestTensor::from<double>(Shape::scalar(), [&](auto) { return exponent; });
    const TestTensor many = TestTensor::from<float>({2000}, [&](auto) { return exponent; });
    TestTensor y(f32, {2000}), z(f32, {2000}), wide_y(f64, {2000});
    binary(BinaryOp::power, x.view(), number.view(), y.view());
    binary(BinaryOp::power, x.view(), many.view(), z.view());
    binary(BinaryOp::power, wide.view(), wide_number.view(), wide_y.view());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double exact = std::pow(x.at(i), exponent);
      ASSERT_LE(float_ulps(y.data<float>()[i], exact), 0.51) << x.at(i) << " to " << exponent;
      ASSERT_LE(float_ulps(z.data<float>()[i], exact), 0.51) << x.at(i) << " to " << exponent;
      ASSERT_TRUE(same(wide_y.at(i), exact) || std::fabs(wide_y.at(i) / exact - 1) < 5e-16) << x.at(i);
    }
  }
}

TEST(Elementwise, IntegersWrapAndNeverTrap) {
  const std::int32_t low = INT32_MIN, high = INT32_MAX;
  const std::int32_t left[] = {low, low, high, low, 5}, right[] = {-1, 0, 1, low, 0};
  const auto run = [&](BinaryOp op) {
    std::vector<std::int32_t> out(5);
    binary(op, {left, 0, i32, {5}}, {right, 0, i32, {5}}, {out.data(), 0, i32, {5}});
    return out;
  };
  EXPECT_EQ(run(BinaryOp::divide), (std::vector<std::int32_t>{low, 0, high, 1, 0}));
  EXPECT_EQ(run(BinaryOp::modulo), (std::vector<std::int32_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(run(BinaryOp::add), (std::vector<std::int32_t>{high, low, low, 0, 5}));
  EXPECT_EQ(run(BinaryOp::multiply), (std::vector<std::int32_t>{low, 0, high, 0, 0}));
}

TEST(Elementwise, ArithmeticOfBoolsAndMathOfIntegersIsNotSupported) {
  EXPECT_FALSE(is_supported(BinaryOp::add, boolean));
  EXPECT_FALSE(is_supported(UnaryOp::exp, i32));
  EXPECT_TRUE(is_supported(UnaryOp::exp, f16));
  EXPECT_TRUE(is_supported(BinaryOp::logical_and, boolean));
  EXPECT_EQ(result_dtype(BinaryOp::less, f64), boolean);
  EXPECT_STREQ(op_name(UnaryOp::hard_sigmoid), "hard_sigmoid");
}

TEST(Elementwise, ResultsDoNotDependOnThreadsOrOnWritingAroundTheCaches) {
  const std::int64_t n = (std::int64_t{17} << 20) / 4 + 13;  // Above the size that is streamed.
  const TestTensor x = TestTensor::from<float>({n}, [](std::int64_t i) { return float(i % 1000) * 0.01f - 5.f; });
  TestTensor y(f32, {n});
  unary(UnaryOp::tanh, x.view(), y.view());
  const int threads = num_threads();
  set_num_threads(1);
  for (std::int64_t i = 0; i < n; i += 997) {
    const std::int64_t count = std::min<std::int64_t>(997, n - i);
    TestTensor part(f32, {count});
    unary(UnaryOp::tanh, x.view().rows(i, i + count), part.view());
    ASSERT_EQ(std::memcmp(part.data<float>(), y.data<float>() + i, static_cast<std::size_t>(count) * 4), 0) << i;
  }
  set_num_threads(threads);
}

TEST(Elementwise, WorksInPlace) {
  TestTensor x = awkward<float>({3, 1000}, false);
  const TestTensor before = x;
  TestTensor b = awkward<float>({1000}, false);
  binary(BinaryOp::subtract, x.view(), b.view(), x.view());
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x.at(i), before.at(i) - b.at(i % 1000));
}

TEST(Elementwise, SelectTakesEachElementFromOneSide) {
  for (std::size_t d = 0; d < kNumDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    const TestTensor condition = awkward<bool>({50, 1}), a = awkward_of(dtype, {50, 40}), b = awkward_of(dtype, {40});
    TestTensor out(dtype, {50, 40});
    select(condition.view(), a.view(), b.view(), out.view());
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_TRUE(same(out.at(i), condition.at(i / 40) != 0 ? a.at(i) : b.at(i % 40))) << dtype << " " << i;
  }
}

TEST(Elementwise, CopyConvertsBetweenAllDtypes) {
  for (std::size_t from = 0; from < kNumDTypes; ++from)
    for (std::size_t to = 0; to < kNumDTypes; ++to) {
      const TestTensor x = awkward_of(static_cast<DType>(from), {1000});
      TestTensor y(static_cast<DType>(to), {2, 1000});
      copy(x.view(), y.view());
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double value = x.at(i % 1000);
        if (is_integer(y.dtype()) && !std::isfinite(value)) continue;
        if (is_floating(x.dtype()) && y.dtype() == u8 && value < 0) continue;  // See below.
        ASSERT_TRUE(same(y.at(i), y.dtype() == boolean ? value != 0 : rounded(value, y.dtype())))
            << x.dtype() << " to " << y.dtype() << ": " << value << " gives " << y.at(i);
      }
    }
}

TEST(Elementwise, FloatsOutsideOfAnIntegersRangeBecomeItsNearest) {
  const float x[] = {kInfinity, -kInfinity, std::nanf(""), 3e9f, -3e9f, 300.f, -300.f, -0.9f};
  std::vector<std::int32_t> wide(8);
  std::vector<std::uint8_t> narrow(8);
  copy({x, 0, f32, {8}}, {wide.data(), 0, i32, {8}});
  copy({x, 0, f32, {8}}, {narrow.data(), 0, u8, {8}});
  EXPECT_EQ(wide, (std::vector<std::int32_t>{INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN, 300, -300, 0}));
  EXPECT_EQ(narrow, (std::vector<std::uint8_t>{255, 0, 0, 255, 0, 255, 0, 0}));
}

TEST(Elementwise, TablesOfAllInstructionSetsAgreeOnExactOperations) {
  const TestTensor a = awkward<float>({1000}), b = awkward<float>({1000}, true, 17);
  for (const BinaryOp op : {BinaryOp::add, BinaryOp::divide, BinaryOp::maximum, BinaryOp::less}) {
    std::vector<std::vector<float>> results;
    for (const Loops* table : every_loops()) {
      results.emplace_back(1000);
      const void* in[] = {a.data<float>(), b.data<float>()};
      table->binary[static_cast<std::size_t>(op)][kNativeF32][0](in, results.back().data(), 1000);
      for (std::size_t i = 0; i < 1000; ++i)
        ASSERT_TRUE(same(results[0][i], results.back()[i])) << op_name(op) << " " << table->name;
    }
  }
}

}  // namespace
}  // namespace plimsoll
