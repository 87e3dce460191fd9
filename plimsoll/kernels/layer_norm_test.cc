#include "plimsoll/kernels/layer_norm.h"

#include <gtest/gtest.h>

#include "plimsoll/kernels/problem_testing.h"

namespace plimsoll {
namespace {

double value_of(std::int64_t i) { return 3 + 2 * std::sin(double(i) * 1.7); }
double gamma_of(std::int64_t i) { return 1 + 0.5 * std::cos(double(i)); }
double beta_of(std::int64_t i) { return 0.1 * double(i % 7); }
double slope_of(std::int64_t i) { return std::sin(double(i) * 0.61 + 1); }

// Everything one call reads and writes.
template <class T>
struct Problem {
  std::int64_t rows, columns;
  TestTensor x = TestTensor::from<T>({rows, columns}, value_of), gamma = TestTensor::from<T>({columns}, gamma_of),
             beta = TestTensor::from<T>({columns}, beta_of), dy = TestTensor::from<T>({rows, columns}, slope_of);
  TestTensor y{kDTypeOf<T>, {rows, columns}}, mean{kDTypeOf<T>, {rows}}, rstd{kDTypeOf<T>, {rows}};
  TestTensor dx = y, dgamma = gamma, dbeta = gamma;
  bool affine = true;
  std::vector<Line> scratch{layer_norm_gradient_scratch_bytes(rows, columns, kDTypeOf<T>) / 64 + 1};

  ConstTensorView scale() { return affine ? ConstTensorView(gamma.view()) : ConstTensorView(); }
  void forward() {
    layer_norm(x.view(), columns, scale(), affine ? ConstTensorView(beta.view()) : ConstTensorView(), 1e-3,
               {y.view(), mean.view(), rstd.view()});
  }
  void backward() {
    layer_norm_gradient(x.view(), columns, scale(), mean.view(), rstd.view(), dy.view(),
                        {dx.view(), affine ? dgamma.view() : TensorView(), affine ? dbeta.view() : TensorView()},
                        {scratch.data()->bytes, affine ? scratch.size() * 64 : 0});
  }
  double objective() {
    forward();
    return dot(y, dy);
  }
};

template <class T>
void expect_definition(std::int64_t rows, std::int64_t columns, bool affine, double tolerance) {
  Problem<T> p{rows, columns};
  p.affine = affine;
  p.forward();
  for (std::int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      mean += p.x.at(static_cast<std::size_t>(r * columns + c)) / double(columns);
    for (std::int64_t c = 0; c < columns; ++c)
      variance += std::pow(p.x.at(static_cast<std::size_t>(r * columns + c)) - mean, 2) / double(columns);
    const double rstd = 1 / std::sqrt(variance + 1e-3);
    ASSERT_NEAR(p.mean.at(static_cast<std::size_t>(r)), mean, tolerance * 5);
    ASSERT_NEAR(p.rstd.at(static_cast<std::size_t>(r)), rstd, tolerance * rstd);
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(r * columns + c);
      const double hat = (p.x.at(i) - mean) * rstd;
      ASSERT_NEAR(p.y.at(i), affine ? hat * gamma_of(c) + beta_of(c) : hat, tolerance * 10 * (columns == 1 ? 100 : 1))
          << rows << "x" << columns << " at " << i;
    }
  }
}

TEST(LayerNorm, MatchesTheDefinition) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 5}, {2, 33}, {70, 256}, {3, 5000}})
    for (const bool affine : {false, true}) {
      expect_definition<double>(rows, columns, affine, 1e-12);
      expect_definition<float>(rows, columns, affine, 1e-6);
    }
}

TEST(LayerNorm, GradientsMatchDifferences) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 3}, {5, 33}, {130, 9}, {3, 2100}, {300, 70}})
    for (const bool affine : {false, true}) {
      Problem<double> p{rows, columns};
      p.affine = affine;
      p.forward();
      p.backward();
      const TestTensor dx = p.dx, dgamma = p.dgamma, dbeta = p.dbeta;
      expect_slopes(p, p.x, dx);
      if (!affine) continue;
      expect_slopes(p, p.gamma, dgamma);
      expect_slopes(p, p.beta, dbeta);
    }
}

TEST(LayerNorm, FloatGradientsMatchThoseOfDoubles) {
  Problem<double> exact{300, 130};
  Problem<float> p{300, 130};
  exact.forward(), exact.backward();
  p.forward(), p.backward();
  for (std::size_t i = 0; i < p.dx.size(); ++i) ASSERT_NEAR(p.dx.at(i), exact.dx.at(i), 2e-6);
  for (std::size_t i = 0; i < p.dgamma.size(); ++i) {
    ASSERT_NEAR(p.dgamma.at(i), exact.dgamma.at(i), 1e-4);
    ASSERT_NEAR(p.dbeta.at(i), exact.dbeta.at(i), 1e-4);
  }
}

TEST(LayerNorm, AFarMeanDoesNotSpoilTheVariance) {
  TestTensor x = TestTensor::from<float>({1, 512}, [](std::int64_t i) { return i % 2 == 0 ? 100001.f : 99999.f; });
  TestTensor rstd(f32, {1});
  layer_norm(x.view(), 512, {}, {}, 0, {x.view(), {}, rstd.view()});
  EXPECT_FLOAT_EQ(static_cast<float>(rstd.at(0)), 1.f);
  EXPECT_FLOAT_EQ(static_cast<float>(x.at(1)), -1.f);
}

TEST(LayerNorm, TheSameBitsForOneAndTwoThreadsWithoutAllocating) {
  Problem<float> one{301, 257}, two{301, 257};
  run_with_one_and_two_threads(one, two);
  expect_same_bits({{&one.y, &two.y},
                    {&one.dx, &two.dx},
                    {&one.dgamma, &two.dgamma},
                    {&one.dbeta, &two.dbeta},
                    {&one.rstd, &two.rstd}});
}

}  // namespace
}  // namespace plimsoll
