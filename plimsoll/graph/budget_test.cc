// Budgets of functions and sessions: the plan is the gate.
#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

TEST(PlanBudget, AFunctionRunsAtWhatItsRefusalNames) {
  const Tensor x = random_normal({40, 50}, {.seed = 1});
  const auto callable = [](Tensor a) { return matmul(a, a, {.transpose_b = true}).sum({1}); };
  std::size_t needed = 0;
  try {
    function(callable, {.budget = 1024, .name = "tight"})(x);
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    needed = error.smallest_sufficient_limit();
    EXPECT_THAT(error.what(), HasSubstr("function \"tight\""));
    EXPECT_THAT(error.what(), HasSubstr("matmul"));
  }
  EXPECT_EQ(function(callable, {.budget = needed})(x).to_vector<float>(), callable(x).to_vector<float>());
  EXPECT_THROW(function(callable, {.budget = needed - 1})(x), OutOfMemory);
}

TEST(PlanBudget, ASessionRunsAtWhatItsRefusalNames) {
  const Graph g;
  Tensor x, loss, train;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 50}, "x");
    const Variable w(random_normal({50, 20}, {.seed = 1}), {.name = "w"});
    loss = square(matmul(x, w)).mean();
    train = train::AdamOptimizer(0.01).minimize(loss);
  }
  const Feeds feeds{{x, random_normal({64, 50}, {.seed = 2})}};
  const auto losses_within = [&](std::size_t budget) {
    Session session(g, {.budget = budget});
    session.initialize_variables();
    std::vector<float> losses;
    for (int i = 0; i < 3; ++i) losses.push_back(session.run({loss, train}, feeds)[0].item<float>());
    return losses;
  };
  std::size_t needed = 0;
  try {
    losses_within(20 << 10);
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    needed = error.smallest_sufficient_limit();
    EXPECT_THAT(error.what(), HasSubstr("session"));
  }
  EXPECT_EQ(losses_within(needed), losses_within(1 << 20));
  EXPECT_THROW(losses_within(needed - 1), OutOfMemory);
}

// Building, planning, initializing and running within ever larger limits: each refusal leaves everything as it was.
TEST(PlanBudget, EveryRefusalLeavesEverythingAsItWas) {
  const Tensor xs = random_normal({8, 6}, {.seed = 2});
  const Variable outside(ones({6, 5}), {.name = "outside"});
  const auto work = [&] {
    const Graph g;
    Tensor x, loss, train;
    {
      const GraphScope in(g);
      x = placeholder(f32, {-1, 6}, "x");
      const Variable w(random_normal({5, 4}, {.seed = 1}) + constant({1.f, 2.f, 3.f, 4.f}), {.name = "w"});
      loss = square(matmul(matmul(x, outside), w)).mean();
      train = train::AdamOptimizer(0.01).minimize(loss);
    }
    Session session(g);
    session.initialize_variables();
    for (int i = 0; i < 2; ++i) session.run({loss, train}, {{x, xs}});
    const auto f = function([&](Tensor a) { return tanh(matmul(a, outside) * constant({1.f, 2.f, 3.f, 4.f, 5.f})); });
    f(xs);
  };
  int refused = 0;
  for (std::size_t limit = 64;; limit += 64) {
    const auto before = outside.value().to_vector<float>();
    const MemoryInfo held = memory();
    const Budget budget("tight", limit);
    try {
      const BudgetScope scope(budget);
      work();
      break;
    } catch (const OutOfMemory&) {
      ++refused;
    }
    EXPECT_EQ(memory().num_tensors, held.num_tensors) << limit;
    EXPECT_EQ(memory().num_bytes, held.num_bytes) << limit;
    EXPECT_EQ(budget.used(), 0u) << limit;
    EXPECT_EQ(outside.value().to_vector<float>(), before) << limit;
    ASSERT_LT(limit, std::size_t{1} << 20);
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace plimsoll
