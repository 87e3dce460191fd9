// Cross entropies over many classes in budgets that have no room for the logits.
#include <gtest/gtest.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/cross_entropy.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/reduce.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kRows = 96, kInner = 20, kClasses = 3000;
constexpr std::size_t kLogits = kRows * kClasses * sizeof(float);
constexpr std::size_t kVariables = 300'000;  // At most so much, beside the gate.

// What a head is made of.
struct Kind {
  bool biased = true;
  DType labels = i32;
  bool uses_logits = false;  // Otherwise, too.
};

struct Trained {
  std::size_t peak = 0, gate = 0;
  std::vector<float> values;  // Losses and weights.
};

Trained train(const Kind& kind, std::optional<std::size_t> budget) {
  const Variable w(random_normal({kInner, kClasses}, {.seed = 1}) * 0.2f), b(random_normal({kClasses}, {.seed = 2}));
  const Variable v(random_normal({kInner, kInner}, {.seed = 3}) * 0.3f);
  const Optimizer optimizer(SGDOptions{.learning_rate = 0.1});
  const Tensor x = random_normal({kRows, kInner}, {.seed = 4});
  const Tensor labels = random_uniform({kRows}, 0, kClasses, {.seed = 5, .dtype = kind.labels});
  const auto step = function(
      [&](const Tensor& in, const Tensor& of) {
        GradientTape tape;
        const Tensor product = matmul(tanh(matmul(in, Tensor(v))), Tensor(w));
        const Tensor logits = kind.biased ? product + Tensor(b) : product;
        Tensor loss = sparse_softmax_cross_entropy_with_logits(of, logits).mean();
        if (kind.uses_logits) loss = loss + 0.001f * square(logits).mean();
        const std::vector<Variable> variables = kind.biased ? std::vector{w, b, v} : std::vector{w, v};
        optimizer.apply(variables, tape.gradient(loss, variables));
        return loss;
      },
      {.budget = budget});
  Trained trained;
  const MemoryPlan plan = step.memory_plan(x, labels);
  trained.peak = plan.peak_bytes;
  trained.gate = plan.smallest_bytes;
  for (int i = 0; i < 2; ++i) trained.values.push_back(step(x, labels).item<float>());
  for (const Variable& each : {w, b, v})
    for (const float value : each.value().to_vector<float>()) trained.values.push_back(value);
  return trained;
}

TEST(SliceLosses, TrainTheSameWithoutRoomForTheLogits) {
  for (const Kind& kind : {Kind{}, Kind{.biased = false, .labels = i64}}) {
    const Trained natural = train(kind, {});
    EXPECT_GT(natural.peak, kLogits);
    EXPECT_LT(natural.gate, natural.peak - kLogits / 2);
    const Trained lean = train(kind, natural.gate + kVariables);
    EXPECT_EQ(lean.values, natural.values);
  }
}

TEST(SliceLosses, LeaveLogitsThatOthersRead) {
  const Trained natural = train({.uses_logits = true}, {});
  EXPECT_GT(natural.gate, kLogits);
  EXPECT_EQ(train({.uses_logits = true}, natural.gate + kVariables).values, natural.values);
}

}  // namespace
}  // namespace plimsoll
