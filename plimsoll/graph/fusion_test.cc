#include "plimsoll/graph/chain_op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

std::size_t chains_in(const MemoryPlan& plan) {
  return static_cast<std::size_t>(std::count(plan.order.begin(), plan.order.end(), "chain"));
}

// The callable with the pass and without gives the bits of running it directly, and needs no more memory.
template <class F>
std::size_t expect_same(F callable, const Tensor& x, const Tensor& y) {
  const auto fused = function(callable), plain = function(callable, {.passes = {.fuse_elementwise = false}});
  const std::vector<float> expected = callable(x, y).template to_vector<float>();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fused(x, y).template to_vector<float>(), expected);
    EXPECT_EQ(plain(x, y).template to_vector<float>(), expected);
  }
  EXPECT_EQ(chains_in(plain.memory_plan(x, y)), 0u);
  EXPECT_LE(fused.memory_plan(x, y).peak_bytes, plain.memory_plan(x, y).peak_bytes);
  return chains_in(fused.memory_plan(x, y));
}

TEST(ChainOp, GivesTheBitsOfTheOperationsOneByOne) {
  const Tensor one = constant(1.5f).reshape({1, 1});
  for (const std::int64_t rows : {64, 65, 1000}) {  // Below and above what is split, with odd ends.
    const Tensor x = random_normal({rows, 67}, {.seed = 1}), y = random_normal({rows, 67}, {.seed = 2});
    EXPECT_EQ(expect_same([](Tensor a, Tensor b) { return tanh(a * b + 1.f) * 2.f; }, x, y), 1u);
    EXPECT_EQ(expect_same([](Tensor a, Tensor b) { return relu((a - b) * (1.f / 3.f)) - a; }, x, y), 1u);
    EXPECT_EQ(expect_same([&](Tensor a, Tensor b) { return exp(-(a + b)) / one; }, x, y), 1u);
    EXPECT_EQ(expect_same([](Tensor a, Tensor) { return square(a) * square(a); }, x, y), 1u);
  }
}

TEST(ChainOp, LeavesAloneWhatSomebodyElseReads) {
  const Tensor x = random_normal({64, 67}, {.seed = 1}), y = random_normal({64, 67}, {.seed = 2});
  EXPECT_EQ(expect_same(
                [](Tensor a, Tensor b) {
                  const Tensor sum = a + b;
                  return tanh(sum) + sum;
                },
                x, y),
            1u);
  EXPECT_EQ(expect_same([](Tensor a, Tensor b) { return (a + b).sum({1}) * 2.f; }, x, y), 0u);
  EXPECT_EQ(expect_same([](Tensor a, Tensor b) { return (a + b).reshape({67, 64}) * 2.f; }, x, y), 0u);
  EXPECT_EQ(expect_same([](Tensor a, Tensor b) { return a.sum({0}) + b * 1.f; }, x, y), 0u);
}

TEST(ChainOp, IsNotDoneForSmallTensors) {
  EXPECT_EQ(expect_same([](Tensor a, Tensor b) { return tanh(a * b + 1.f) * 2.f; }, ones({8}), ones({8})), 0u);
}

TEST(ChainOp, IsCutWhereItIsLong) {
  const Tensor x = random_normal({64, 67}, {.seed = 1});
  EXPECT_EQ(expect_same(
                [](Tensor a, Tensor) {
                  for (int i = 0; i < 20; ++i) a = a * 0.9f + 0.1f;
                  return a;
                },
                x, x),
            5u);
}

TEST(ChainOp, IsPartOfGradients) {
  const Tensor x = random_normal({64, 67}, {.seed = 1}), y = random_normal({64, 67}, {.seed = 2});
  EXPECT_GE(expect_same(
                [](Tensor a, Tensor b) {
                  GradientTape tape;
                  tape.watch(a);
                  return tape.gradient((sigmoid(a * b) * tanh(a + 0.5f)).sum(), a);
                },
                x, y),
            1u);
}

std::size_t count_in(const MemoryPlan& plan, const char* op) {
  return static_cast<std::size_t>(std::count(plan.order.begin(), plan.order.end(), op));
}

TEST(FuseDense, GivesTheBitsOfItsParts) {
  const Tensor x = random_normal({9, 5}, {.seed = 1}), w = random_normal({5, 5}, {.seed = 2}),
               b = random_normal({5}, {.seed = 3});
  const auto expect_dense = [&](auto callable, std::size_t steps) {
    const auto fused = function(callable), plain = function(callable, {.passes = {.fuse_dense = false}});
    EXPECT_EQ(fused(x, w, b).template to_vector<float>(), callable(x, w, b).template to_vector<float>());
    EXPECT_EQ(plain(x, w, b).template to_vector<float>(), callable(x, w, b).template to_vector<float>());
    EXPECT_EQ(fused.memory_plan(x, w, b).order.size(), steps);
    EXPECT_LE(fused.memory_plan(x, w, b).peak_bytes, plain.memory_plan(x, w, b).peak_bytes);
  };
  using T = Tensor;
  expect_dense([](T x, T w, T b) { return matmul(x, w) + b; }, 1);
  expect_dense([](T x, T w, T b) { return relu(matmul(x, w) + b); }, 1);
  expect_dense([](T x, T w, T b) { return tanh(b + matmul(x, w)); }, 1);
  expect_dense([](T x, T w, T b) { return exp(matmul(x, w) + b); }, 2);
  expect_dense([](T x, T w, T b) { return matmul(x, w, {.transpose_b = true}) + b; }, 2);  // Not what dense() does.
  expect_dense(
      [](T x, T w, T b) {
        const T product = matmul(x, w);
        return relu(product + b) + product;
      },
      4);
  expect_dense([](T x, T w, T b) { return matmul(x, w) + (b + 1.f).sum(); }, 4);
}

TEST(FuseDense, WorksInATrainingStep) {
  const Tensor x = random_normal({9, 5}, {.seed = 1});
  const Variable w(random_normal({5, 4}, {.seed = 2})), b(random_normal({4}, {.seed = 3}));
  const auto step = [&](Tensor in) {
    GradientTape tape;
    return tape.gradient(relu(matmul(in, w) + b).sum(), std::vector<Variable>{w, b});
  };
  const auto f = function(step);
  const std::vector<Tensor> got = f(x), expected = step(x);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(got[i].to_vector<float>(), expected[i].to_vector<float>());
  EXPECT_EQ(count_in(f.memory_plan(x), "add"), 0u);
}

TEST(Fusion, AChainDoesNotOverwriteWhatItReadsThroughAView) {
  const Tensor data = random_normal({64, 64}, {.seed = 7});
  const auto f = [](const Tensor& x) {
    const Tensor a = softmax(x);
    return (square(a.slice({0}, {64})) - a).sum();
  };
  EXPECT_EQ(function(f)(data).item<float>(), f(data).item<float>());
}

}  // namespace
}  // namespace plimsoll
