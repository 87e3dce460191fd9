// Budgets of functions and sessions: the plan is the gate.
#include <gmock/gmock.h>

#include <optional>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
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

TEST(PlanBudget, AFunctionStaysWithinTheScopeAround) {
  const Tensor x = random_normal({64, 64}, {.seed = 1});  // 16 KiB, as is the result.
  const auto f = function([](Tensor a) { return a * 2.f; }, {.budget = 256 << 10, .name = "inner"});
  const Budget outer("outer", 40 << 10), other("other", 24 << 10);
  std::vector<Tensor> kept;
  {
    const BudgetScope use(outer);
    kept.push_back(f(x));
    kept.push_back(f(x));
    EXPECT_GE(outer.used(), 2 * x.nbytes());
    EXPECT_THROW(f(x), OutOfMemory);
    EXPECT_THAT(outer.report(), HasSubstr("inner"));
    const BudgetScope inside(other);
    kept.push_back(f(x));
    EXPECT_GE(other.used(), x.nbytes());
    EXPECT_THROW(f(x), OutOfMemory);
  }
  for (int i = 0; i < 8; ++i) kept.push_back(f(x));  // Outside any scope its own limit is left.
  kept.clear();
  EXPECT_EQ(outer.used(), 0u);
  const auto tight = function([](Tensor a) { return a * 2.f; }, {.budget = 1024});
  const BudgetScope use(outer);
  EXPECT_THROW(tight(x), OutOfMemory);
}

TEST(PlanBudget, ASessionStaysWithinTheScopeItWasMadeIn) {
  const Graph g;
  Tensor x, y;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 64}, "x");
    y = matmul(x, Variable(ones({64, 64}), {.name = "w"}));
  }
  const Tensor few = ones({8, 64}), many = ones({128, 64});  // 2 and 32 KiB.
  const Budget outer("outer", 40 << 10);
  std::optional<Session> session;
  {
    const BudgetScope use(outer);
    session.emplace(g, SessionOptions{.budget = 256 << 10});
  }
  session->initialize_variables();
  EXPECT_GE(outer.used(), 64 * 64 * sizeof(float));
  EXPECT_EQ(session->run(y, {{x, few}}).at<float>({7, 63}), 64);
  EXPECT_THROW(session->run(y, {{x, many}}), OutOfMemory);
  EXPECT_EQ(session->run(y, {{x, few}}).at<float>({7, 63}), 64);
  session->close();
  EXPECT_EQ(outer.used(), 0u);
}

TEST(Budgets, ThatCannotBeMadeLeaveOthersAsTheyAre) {
  const Budget first("first", 1 << 20), second("second", 1 << 20, first);
  const std::string before = first.report();
  bool has_failed = true;
  std::size_t failures = 0;
  for (; has_failed && failures < 100; failures += has_failed) {
    std::string name = "a budget whose name is too long to lie in the string itself, " + std::to_string(failures);
    fail_heap_after(failures);
    try {
      const Budget budget(std::move(name), 1024, first);
    } catch (const std::bad_alloc&) {
    }
    has_failed = disarm_heap();
    EXPECT_EQ(first.report(), before) << failures;
  }
  EXPECT_FALSE(has_failed);
  EXPECT_GT(failures, 2u);
}

}  // namespace
}  // namespace plimsoll
