#include "plimsoll/graph/loop_gradient.h"

#include <gtest/gtest.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/control_flow.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/interceptor.h"

namespace plimsoll {
namespace {

// x <- tanh(x * w) + 0.1, n times.
Tensor grow(const Tensor& x, const Tensor& w, const Tensor& n) {
  return while_loop([&](const std::vector<Tensor>& s) { return s[1] < n; },
                    [&](const std::vector<Tensor>& s) {
                      return std::vector{tanh(s[0] * w) + 0.1f, s[1] + 1};
                    },
                    std::vector{x, constant(0)})[0];
}

std::vector<std::vector<float>> gradients_of(const auto& callable, const Tensor& x, const Tensor& w, const Tensor& n) {
  GradientTape tape;
  tape.watch(x);
  tape.watch(w);
  std::vector<std::vector<float>> result;
  for (const Tensor& gradient : tape.gradient(callable(x, w, n).sum(), {x, w}))
    result.push_back(gradient.is_empty_handle() ? std::vector<float>(2, 0.f) : gradient.to_vector<float>());
  return result;
}

TEST(LoopGradient, IsThatOfTheLoopWrittenOut) {
  const auto f = function(grow);
  const Tensor x = constant({0.3f, -0.2f}), w = constant({1.1f, 0.9f});
  for (const int n : {0, 1, 2, 3, 31, 32, 33, 34, 100, 700}) {
    const auto traced = gradients_of(f, x, w, constant(n)), eager = gradients_of(grow, x, w, constant(n));
    for (int i = 0; i < 2; ++i)
      for (int k = 0; k < 2; ++k) EXPECT_NEAR(traced[i][k], eager[i][k], 1e-5 * (1 + std::abs(eager[i][k]))) << n;
  }
  EXPECT_EQ(f.trace_count(), 1u);
}

// Counts the operations that run.
class Counting final : public OpObserver {
 public:
  Counting() : before_(std::exchange(ThreadContext::current().observer, this)) {}
  ~Counting() override { ThreadContext::current().observer = before_; }
  void ran(const Op&, std::span<const Tensor* const>, std::span<const Tensor>, std::int64_t) override { ++count; }
  std::size_t count = 0;

 private:
  OpObserver* const before_;
};

TEST(LoopGradient, TakesTimeThatGrowsWithTheIterations) {
  const auto f = function(grow);
  const Tensor x = constant({0.3f, -0.2f}), w = constant({1.1f, 0.9f});
  const auto operations_for = [&](int n) {
    const Counting counting;
    gradients_of(f, x, w, constant(n));
    return counting.count;
  };
  operations_for(1);
  EXPECT_LT(operations_for(2000), 20 * operations_for(200));  // Its square would be 100 times as many.
}

TEST(LoopGradient, CanBeDifferentiatedAgain) {
  const Tensor x = constant({0.3f, -0.2f}), w = constant({1.1f, 0.9f}), n = constant(3);
  const auto second = [&](const auto& callable) {
    GradientTape outer;
    outer.watch(w);
    Tensor inner_gradient;
    {
      GradientTape inner;
      inner.watch(w);
      inner_gradient = inner.gradient(callable(x, w, n).sum(), w);
    }
    return outer.gradient(inner_gradient.sum(), w).template to_vector<float>();
  };
  const auto traced = second(function(grow)), eager = second(grow);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(traced[i], eager[i], 1e-4);
}

TEST(LoopGradient, ManySizesKeepFewPlans) {
  const auto f = function([](Tensor x) {
    return while_loop([](const std::vector<Tensor>& s) { return s[0].sum() < 100.f; },
                      [](const std::vector<Tensor>& s) { return std::vector{s[0] * 2.f + 1.f}; }, std::vector{x})[0];
  });
  for (int round = 0; round < 2; ++round)
    for (std::int64_t size = 1; size < 30; ++size) EXPECT_GE(f(ones({size})).sum().item<float>(), 100.f);
}

}  // namespace
}  // namespace plimsoll
