#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/reduce.h"

namespace plimsoll {
namespace {

struct UnaryCase {
  const char* name;
  Tensor (*function)(Tensor);
  double low, high;
  bool smooth = true;
};

// Where a function has a kink, the operands are chosen away from it, and the second order is left out.
class UnaryGradient : public testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryGradient, AgreesWithDifferences) {
  const UnaryCase& c = GetParam();
  expect_gradients([&](const Tensors& x) { return c.function(x[0]); }, {varied({2, 5}, c.low, c.high)}, c.smooth);
}

INSTANTIATE_TEST_SUITE_P(
    All, UnaryGradient,
    testing::Values(UnaryCase{"negative", negative, -2, 2}, UnaryCase{"abs", abs, 0.5, 2},
                    UnaryCase{"square", square, -2, 2}, UnaryCase{"sqrt", sqrt, 0.5, 3},
                    UnaryCase{"rsqrt", rsqrt, 0.5, 3}, UnaryCase{"reciprocal", reciprocal, 0.5, 3},
                    UnaryCase{"exp", exp, -1, 1}, UnaryCase{"expm1", expm1, -1, 1}, UnaryCase{"log", log, 0.5, 3},
                    UnaryCase{"log1p", log1p, -0.5, 3}, UnaryCase{"sin", sin, -2, 2}, UnaryCase{"cos", cos, -2, 2},
                    UnaryCase{"tan", tan, -1, 1}, UnaryCase{"asin", asin, -0.8, 0.8},
                    UnaryCase{"acos", acos, -0.8, 0.8}, UnaryCase{"atan", atan, -2, 2}, UnaryCase{"sinh", sinh, -1, 1},
                    UnaryCase{"cosh", cosh, -1, 1}, UnaryCase{"tanh", tanh, -2, 2}, UnaryCase{"erf", erf, -2, 2},
                    UnaryCase{"relu", relu, 0.1, 2}, UnaryCase{"relu_off", relu, -2, -0.1},
                    UnaryCase{"relu6", relu6, 1, 5}, UnaryCase{"elu", elu, -2, -0.1}, UnaryCase{"selu", selu, -2, -0.1},
                    UnaryCase{"gelu", gelu, -2, 2}, UnaryCase{"sigmoid", sigmoid, -2, 2},
                    UnaryCase{"hard_sigmoid", hard_sigmoid, -2, 2}, UnaryCase{"softplus", softplus, -2, 2},
                    UnaryCase{"softsign", softsign, 0.2, 2}, UnaryCase{"swish", swish, -2, 2}),
    [](const auto& info) { return info.param.name; });

struct PairCase {
  const char* name;
  Tensor (*function)(const Tensor&, const Tensor&);
  double low, high;
  bool smooth = true;
};

class PairGradient : public testing::TestWithParam<PairCase> {};

TEST_P(PairGradient, AgreesWithDifferences) {
  const PairCase& c = GetParam();
  const auto f = [&](const Tensors& x) { return c.function(x[0], x[1]); };
  expect_gradients(f, {varied({2, 3}, c.low, c.high), varied({2, 3}, c.low, c.high, 0.9)}, c.smooth);
}

TEST_P(PairGradient, AgreesWithDifferencesWhereItBroadcasts) {
  const PairCase& c = GetParam();
  const auto f = [&](const Tensors& x) { return c.function(x[0], x[1]); };
  expect_gradients(f, {varied({2, 1, 3}, c.low, c.high), varied({4, 1}, c.low, c.high, 0.9)}, c.smooth);
  expect_gradients(f, {varied(Shape::scalar(), c.low, c.high), varied({3}, c.low, c.high, 0.9)}, c.smooth);
}

INSTANTIATE_TEST_SUITE_P(All, PairGradient,
                         testing::Values(PairCase{"add", add, -2, 2}, PairCase{"subtract", subtract, -2, 2},
                                         PairCase{"multiply", multiply, -2, 2}, PairCase{"divide", divide, 0.5, 2},
                                         PairCase{"power", power, 0.5, 2}, PairCase{"maximum", maximum, -2, 2},
                                         PairCase{"minimum", minimum, -2, 2},
                                         PairCase{"squared_difference", squared_difference, -2, 2}),
                         [](const auto& info) { return info.param.name; });

TEST(NumberGradient, AgreesWithDifferences) {
  const Tensor x = varied({2, 3}, 0.5, 2);
  expect_gradients([](const Tensors& t) { return (t[0] + 3) * 2 - 1; }, {x});
  expect_gradients([](const Tensors& t) { return 5 - t[0] / 3; }, {x});
  expect_gradients([](const Tensors& t) { return 5 / t[0]; }, {x});
  expect_gradients([](const Tensors& t) { return power(t[0], 3) + power(2, t[0]); }, {x});
  expect_gradients([](const Tensors& t) { return maximum(t[0], 1.1) + minimum(0.9, t[0]); }, {x});
  expect_gradients([](const Tensors& t) { return t[0] % 0.7; }, {x}, false);
}

TEST(SelectionGradient, AgreesWithDifferences) {
  const Tensor mask = constant({true, false, true});
  expect_gradients([&](const Tensors& x) { return where(mask, x[0], x[1] * x[1]); },
                   {varied({2, 3}), varied({2, 1}, -1, 1, 0.5)});
  expect_gradients([](const Tensors& x) { return clip(x[0] * x[0], 0.2, 0.6); }, {varied({7})});
  expect_gradients([](const Tensors& x) { return leaky_relu(x[0], 0.3f); }, {varied({7}, 0.2, 1)});
  expect_gradients([](const Tensors& x) { return leaky_relu(x[0], 0.25f); }, {varied({7}, -1, -0.2)});
  expect_gradients([](const Tensors& x) { return broadcast_to(x[0] * x[0], {4, 2, 3}); }, {varied({2, 1})});
  expect_gradients([](const Tensors& x) { return (x[0] * x[0]).cast(f64).reshape({3, 2}); }, {varied({2, 3})});
}

TEST(ReductionGradient, AgreesWithDifferences) {
  const Tensor x = varied({2, 3, 4}, 0.5, 2);
  for (const bool keep : {false, true}) {
    const ReduceOptions options{keep};
    expect_gradients([=](const Tensors& t) { return square(t[0]).sum({1}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).mean({0, 2}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).mean({}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return t[0].prod({-1}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).max({1}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).min({0}, options); }, {x});
  }
}

TEST(ReductionGradient, OfAProductWithZerosIsExact) {
  const Tensor one_zero = constant({{2.0, 0.0, 3.0}}), two_zeros = constant({{0.0, 0.0, 3.0}});
  const auto df = grad([](const Tensor& x) { return x.prod({1}); });
  EXPECT_EQ(df(one_zero).to_vector<double>(), (std::vector<double>{0, 6, 0}));
  EXPECT_EQ(df(two_zeros).to_vector<double>(), (std::vector<double>{0, 0, 0}));
}

TEST(ReductionGradient, OfEqualLargestElementsIsShared) {
  const auto df = grad([](const Tensor& x) { return x.max(); });
  EXPECT_EQ(df(constant({1.0, 3.0, 3.0})).to_vector<double>(), (std::vector<double>{0, 0.5, 0.5}));
}

}  // namespace
}  // namespace plimsoll
