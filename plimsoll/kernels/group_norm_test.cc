#include "plimsoll/kernels/group_norm.h"

#include <gtest/gtest.h>

#include "plimsoll/kernels/problem_testing.h"

namespace plimsoll {
namespace {

template <class T>
struct Problem {
  Shape shape;
  std::int64_t groups;
  std::int64_t channels = shape.back(), batch = shape[0];
  TestTensor x = TestTensor::from<T>(shape, [](std::int64_t i) { return 3 + 2 * std::sin(double(i) * 1.7); });
  TestTensor gamma = TestTensor::from<T>({channels}, [](std::int64_t i) { return 1 + 0.5 * std::cos(double(i)); });
  TestTensor beta = TestTensor::from<T>({channels}, [](std::int64_t i) { return 0.1 * double(i % 7); });
  TestTensor dy = TestTensor::from<T>(shape, [](std::int64_t i) { return std::sin(double(i) * 0.61 + 1); });
  TestTensor y{kDTypeOf<T>, shape}, mean{kDTypeOf<T>, {batch, groups}}, rstd = mean;
  TestTensor dx = y, dgamma = gamma, dbeta = gamma;
  std::vector<Line> scratch{group_norm_scratch_bytes(shape, kDTypeOf<T>) / 64 + 1};

  std::span<std::byte> memory() { return {scratch.data()->bytes, scratch.size() * 64}; }
  void forward() {
    group_norm(x.view(), groups, gamma.view(), beta.view(), 1e-3, {y.view(), mean.view(), rstd.view()}, memory());
  }
  void backward() {
    group_norm_gradient(x.view(), groups, gamma.view(), mean.view(), rstd.view(), dy.view(),
                        {dx.view(), dgamma.view(), dbeta.view()}, memory());
  }
  double objective() {
    forward();
    return dot(y, dy);
  }
};

const std::pair<Shape, std::int64_t> kCases[] = {{{1, 1, 1}, 1},    {{2, 3, 4}, 2}, {{3, 5, 2, 6}, 6},
                                                 {{2, 130, 33}, 3}, {{3, 9}, 3},    {{2, 70, 16}, 1}};

template <class T>
void expect_definition(const Shape& shape, std::int64_t groups, double tolerance) {
  Problem<T> p{shape, groups};
  p.forward();
  const std::int64_t width = p.channels / groups, item = std::int64_t(p.x.size()) / p.batch;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t g = 0; g < groups; ++g) {
      double sum = 0, squares = 0, count = 0;
      const auto each = [&](auto f) {
        for (std::int64_t i = 0; i < item; ++i)
          if (i % p.channels / width == g)
            f(static_cast<std::size_t>(b * item + i), static_cast<std::size_t>(i % p.channels));
      };
      each([&](std::size_t i, std::size_t) { sum += p.x.at(i), count += 1; });
      each([&](std::size_t i, std::size_t) { squares += std::pow(p.x.at(i) - sum / count, 2); });
      const double rstd = 1 / std::sqrt(squares / count + 1e-3);
      EXPECT_NEAR(p.mean.at(static_cast<std::size_t>(b * groups + g)), sum / count, tolerance);
      each([&](std::size_t i, std::size_t c) {
        ASSERT_NEAR(p.y.at(i), (p.x.at(i) - sum / count) * rstd * p.gamma.at(c) + p.beta.at(c), tolerance * rstd);
      });
    }
}

TEST(GroupNorm, MatchesTheDefinition) {
  for (const auto& [shape, groups] : kCases) {
    expect_definition<double>(shape, groups, 1e-11);
    expect_definition<float>(shape, groups, 3e-6);
  }
}

TEST(GroupNorm, GradientsMatchDifferences) {
  for (const auto& [shape, groups] : kCases) {
    Problem<double> p{shape, groups};
    p.forward();
    p.backward();
    const TestTensor dx = p.dx, dgamma = p.dgamma, dbeta = p.dbeta;
    expect_slopes(p, p.x, dx);
    expect_slopes(p, p.gamma, dgamma);
    expect_slopes(p, p.beta, dbeta);
  }
}

TEST(GroupNorm, TheSameBitsForOneAndTwoThreadsWithoutAllocating) {
  Problem<float> one{{5, 100, 24}, 4}, two{{5, 100, 24}, 4};
  run_with_one_and_two_threads(one, two);
  expect_same_bits({{&one.y, &two.y}, {&one.dx, &two.dx}, {&one.dgamma, &two.dgamma}, {&one.dbeta, &two.dbeta}});
}

}  // namespace
}  // namespace plimsoll
