#include "plimsoll/kernels/attention.h"

#include <gtest/gtest.h>

#include "plimsoll/kernels/problem_testing.h"

namespace plimsoll {
namespace {

enum MaskKind { kNoMask, kAdditive, kAllowed, kBoth };

template <class T>
TestTensor values(const Shape& shape, int seed) {
  return TestTensor::from<T>(shape, [&](std::int64_t i) { return 1.5 * std::sin(double(i) * 1.37 + seed); });
}

template <class T>
struct Problem {
  std::int64_t batch, heads, queries, keys, depth, columns;
  MaskKind masks = kNoMask;
  bool causal = false;
  Shape q_shape{batch, heads, queries, depth}, k_shape{batch, heads, keys, depth}, v_shape{batch, heads, keys, columns};
  TestTensor q = values<T>(q_shape, 1), k = values<T>(k_shape, 2), v = values<T>(v_shape, 3);
  TestTensor y = values<T>({batch, heads, queries, columns}, 4), dy = values<T>(y.shape(), 5);
  TestTensor log_sum = values<T>({batch, heads, queries}, 6), dq = q, dk = k, dv = v;
  TestTensor additive = values<T>({1, heads, queries, keys}, 7);
  // The first query of each item may attend to nothing.
  TestTensor allowed = TestTensor::from<bool>(
      {batch, 1, queries, keys}, [&](std::int64_t i) { return i / keys % queries != 0 && i * 7 % 3 != 0; });
  std::vector<Line> scratch{attention_scratch_bytes(q_shape, k_shape, v_shape, kDTypeOf<T>) / 64 + 1};
  std::vector<Line> back_scratch{attention_gradient_scratch_bytes(q_shape, k_shape, v_shape, kDTypeOf<T>) / 64 + 1};

  AttentionInputs inputs() {
    const auto if_given = [&](MaskKind kind, TestTensor& mask) {
      return masks == kind || masks == kBoth ? ConstTensorView(mask.view()) : ConstTensorView();
    };
    return {q.view(), k.view(), v.view(), if_given(kAdditive, additive), if_given(kAllowed, allowed)};
  }
  void forward() {
    attention({.causal = causal}, inputs(), {y.view(), log_sum.view()}, {scratch.data()->bytes, scratch.size() * 64});
  }
  void backward() {
    attention_gradient({.causal = causal}, inputs(), y.view(), log_sum.view(), dy.view(),
                       {dq.view(), dk.view(), dv.view()}, {back_scratch.data()->bytes, back_scratch.size() * 64});
  }
  double objective() {
    forward();
    return dot(y, dy);
  }
};

template <class T>
void expect_definition(Problem<T> p, double tolerance) {
  p.forward();
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<double> weights(at(p.keys));
  for (std::int64_t row = 0; row < p.batch * p.heads * p.queries; ++row) {
    const std::int64_t head = row / p.queries, query = row % p.queries, item = head / p.heads;
    double sum = 0;
    for (std::int64_t key = 0; key < p.keys; ++key) {
      double score = 0;
      for (std::int64_t d = 0; d < p.depth; ++d)
        score += p.q.at(at(row * p.depth + d)) * p.k.at(at((head * p.keys + key) * p.depth + d));
      score /= std::sqrt(double(p.depth));
      if (p.masks == kAdditive || p.masks == kBoth)
        score += p.additive.at(at((head % p.heads * p.queries + query) * p.keys + key));
      const bool hidden =
          (p.causal && key > query) || ((p.masks == kAllowed || p.masks == kBoth) &&
                                        p.allowed.at(at((item * p.queries + query) * p.keys + key)) == 0);
      sum += weights[at(key)] = hidden ? 0 : std::exp(score);
    }
    for (std::int64_t c = 0; c < p.columns; ++c) {
      double expected = 0;
      for (std::int64_t key = 0; key < p.keys && sum > 0; ++key)
        expected += weights[at(key)] / sum * p.v.at(at((head * p.keys + key) * p.columns + c));
      ASSERT_NEAR(p.y.at(at(row * p.columns + c)), expected, tolerance) << row << ", " << c;
    }
    if (sum > 0)
      ASSERT_NEAR(p.log_sum.at(at(row)), std::log(sum), tolerance * 10);
    else
      ASSERT_EQ(p.log_sum.at(at(row)), -INFINITY);
  }
}

TEST(Attention, MatchesTheDefinitionForAllMasks) {
  for (int masks = kNoMask; masks <= kBoth; ++masks)
    for (const bool causal : {false, true})
      for (const auto& [queries, keys] : {std::pair{1, 1}, {3, 5}, {65, 130}, {200, 33}, {1, 100}}) {
        expect_definition<double>({2, 3, queries, keys, 5, 7, MaskKind(masks), causal}, 1e-11);
        expect_definition<float>({2, 2, queries, keys, 16, 33, MaskKind(masks), causal}, 2e-5);
      }
}

TEST(Attention, GradientsMatchDifferences) {
  for (int masks = kNoMask; masks <= kBoth; ++masks)
    for (const bool causal : {false, true})
      for (const auto& [queries, keys] : {std::pair{1, 1}, {4, 3}, {70, 66}, {3, 130}}) {
        Problem<double> p{1, 2, queries, keys, 3, 5, MaskKind(masks), causal};
        p.forward();
        p.backward();
        const TestTensor dq = p.dq, dk = p.dk, dv = p.dv;
        expect_slopes(p, p.q, dq, 20);
        expect_slopes(p, p.k, dk, 20);
        expect_slopes(p, p.v, dv, 20);
      }
}

TEST(Attention, FloatGradientsMatchThoseOfDoubles) {
  Problem<double> exact{1, 2, 100, 90, 16, 24, kBoth, true};
  Problem<float> p{1, 2, 100, 90, 16, 24, kBoth, true};
  exact.forward(), exact.backward();
  p.forward(), p.backward();
  for (const auto& [a, b] : {std::pair{&p.dq, &exact.dq}, {&p.dk, &exact.dk}, {&p.dv, &exact.dv}})
    for (std::size_t i = 0; i < a->size(); ++i) ASSERT_NEAR(a->at(i), b->at(i), 2e-4) << i;
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Problem<float> p{1, 1, 2, 100, 1, 1};
  std::fill_n(p.q.data<float>(), p.q.size(), 1.f);
  for (std::size_t i = 0; i < 100; ++i) p.k.data<float>()[i] = i == 80 ? 1e4f : -1e4f;
  p.forward();
  EXPECT_FLOAT_EQ(static_cast<float>(p.y.at(0)), static_cast<float>(p.v.at(80)));
}

TEST(Attention, ScratchDoesNotGrowWithTheSequences) {
  const Shape small = {1, 1, 4, 16}, large = {8, 8, 4096, 16};
  EXPECT_EQ(attention_scratch_bytes(small, small, small, f32), attention_scratch_bytes(large, large, large, f32));
  EXPECT_EQ(attention_gradient_scratch_bytes(small, small, small, f32),
            attention_gradient_scratch_bytes(large, large, large, f32));
}

TEST(Attention, TheSameBitsForOneAndTwoThreadsWithoutAllocating) {
  Problem<float> one{2, 3, 130, 140, 16, 24, kBoth, true}, two = one;
  run_with_one_and_two_threads(one, two);
  expect_same_bits({{&one.y, &two.y}, {&one.dq, &two.dq}, {&one.dk, &two.dk}, {&one.dv, &two.dv}});
}

}  // namespace
}  // namespace plimsoll
