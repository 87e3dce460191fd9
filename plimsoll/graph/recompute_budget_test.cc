// Sessions and functions with budgets below what they naturally take.
#include <gmock/gmock.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/graph/control_flow.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/reduce.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

constexpr int kLayers = 12;

// Layers whose activations are 32 KiB each.
Tensor deep(Tensor x, const std::vector<Variable>& weights, bool drops) {
  for (const Variable& w : weights) {
    x = tanh(matmul(x, Tensor(w)));
    if (drops) x = dropout(x, 0.2);
  }
  return x;
}

std::vector<Variable> make_weights() {
  std::vector<Variable> weights;
  for (unsigned i = 0; i < kLayers; ++i) weights.emplace_back(random_normal({16, 16}, {.seed = i + 1}) * 0.4f);
  return weights;
}

std::vector<float> all_of(const std::vector<Tensor>& tensors) {
  std::vector<float> values;
  for (const Tensor& tensor : tensors)
    for (const float value : tensor.to_vector<float>()) values.push_back(value);
  return values;
}

struct InGraph {
  InGraph() {
    const GraphScope in(graph);
    x = placeholder(f32, {-1, 16}, "x");
    std::vector<Variable> weights;
    for (unsigned i = 0; i < kLayers; ++i)
      weights.emplace_back(random_normal({16, 16}, {.seed = i + 1}) * 0.4f,
                           VariableOptions{.name = "w" + std::to_string(i)});
    loss = square(deep(x, weights, true)).mean();
    train = train::AdamOptimizer(0.01).minimize(loss);
  }
  std::vector<float> run(Session& session) const {
    std::vector<float> losses;
    config::set_seed(3);
    for (int i = 0; i < 3; ++i) losses.push_back(session.run({loss, train}, {{x, xs}})[0].item<float>());
    for (const Variable& variable : session.variables())
      for (const float value : variable.value().cast(f32).to_vector<float>()) losses.push_back(value);
    losses.push_back(random_uniform({}).item<float>());
    return losses;
  }

  Graph graph;
  Tensor x, loss, train;
  const Tensor xs = random_normal({512, 16}, {.seed = 9});
};

TEST(RecomputeBudget, ASessionTrainsTheSameWithHalfItsExtent) {
  const InGraph g;
  Session ample(g.graph);
  ample.initialize_variables();
  const std::vector<float> expected = g.run(ample);
  const MemoryPlan plan = ample.memory_plan({g.loss, g.train}, {{g.x, g.xs}});
  ASSERT_GT(plan.front.size(), 3u);
  EXPECT_LT(plan.smallest_bytes, plan.peak_bytes / 2);
  EXPECT_LE(plan.floor_bytes, plan.smallest_bytes);
  EXPECT_THAT(plan.to_string(), HasSubstr(std::to_string(plan.smallest_bytes)));
  std::size_t held = 0;
  {
    const Budget watch("watch", 1 << 24);
    const BudgetScope scope(watch);
    Session session(g.graph);
    session.initialize_variables();
    g.run(session);  // Variables that shared their first value have bytes of their own now.
    held = watch.used();
  }
  for (const std::size_t bytes : {plan.smallest_bytes, plan.peak_bytes / 2}) {
    Session session(g.graph, {.budget = held + bytes});
    session.initialize_variables();
    EXPECT_EQ(g.run(session), expected);
    const SessionMemory report = session.memory_report();
    EXPECT_EQ(report.front.size(), plan.front.size());
    EXPECT_THAT(report.to_string(), HasSubstr("times as long"));
    EXPECT_GT(report.plan_bytes, ample.memory_report().plan_bytes / 2);
  }
  Session tight(g.graph, {.budget = held + plan.floor_bytes - 64});
  tight.initialize_variables();
  try {
    g.run(tight);
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("recomputing it needs"));
    EXPECT_THAT(error.what(), HasSubstr(plan.floor_step));
    Session enough(g.graph, {.budget = error.smallest_sufficient_limit()});
    enough.initialize_variables();
    EXPECT_EQ(g.run(enough), expected);
  }
}

TEST(RecomputeBudget, ABudgetAroundASessionWithoutOneIsRefusedAsBefore) {
  const InGraph g;
  Session session(g.graph);
  session.initialize_variables();
  const std::size_t peak = session.memory_plan({g.loss, g.train}, {{g.x, g.xs}}).peak_bytes;
  const Budget around("around", peak - 64);
  const BudgetScope scope(around);
  EXPECT_THROW(g.run(session), OutOfMemory);
}

// What a function gives within the least it can do with, and half way from there.
void expect_same_within_budgets(const std::function<std::vector<Tensor>(Tensor)>& callable) {
  const Tensor x = random_normal({512, 16}, {.seed = 9});
  config::set_seed(4);
  const auto natural = function(callable);
  const std::vector<float> expected = all_of(natural(x));
  const MemoryPlan plan = natural.memory_plan(x);
  EXPECT_LT(plan.smallest_bytes, plan.front.front().bytes);
  const std::size_t middle = (plan.smallest_bytes + plan.front.front().bytes) / 2;
  for (const std::size_t bytes : {plan.smallest_bytes, middle}) {
    const Budget watch("watch", 1 << 26);
    const BudgetScope scope(watch);
    const auto lean = function(callable, {.budget = bytes});
    config::set_seed(4);
    EXPECT_TRUE(all_of(lean(x)) == expected);
    EXPECT_LE(watch.peak(), bytes);
    config::set_seed(4);
    EXPECT_TRUE(all_of(lean(x)) == expected);
  }
  EXPECT_THROW(function(callable, {.budget = plan.smallest_bytes - 1})(x), OutOfMemory);
}

TEST(RecomputeBudget, AFunctionWithATapeGivesTheSameGradients) {
  const std::vector<Variable> weights = make_weights();
  expect_same_within_budgets([&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = square(deep(x, weights, true)).mean();
    return tape.gradient(loss, weights);
  });
}

TEST(RecomputeBudget, GradientsOfGradientsAreTheSame) {
  const std::vector<Variable> weights = make_weights();
  expect_same_within_budgets([&](const Tensor& x) {
    GradientTape outer;
    Tensor norm;
    {
      GradientTape inner;
      const Tensor loss = square(deep(x, weights, false)).mean();
      norm = square(inner.gradient(loss, weights)[0]).sum();
    }
    return outer.gradient(norm, weights);
  });
}

TEST(RecomputeBudget, BranchesAndLoopsAreNotRepeated) {
  const std::vector<Variable> weights = make_weights();
  const Variable count(zeros({}), {.trainable = false});
  for (const float times : {1.f, 30.f}) {
    const auto step = [&](const Tensor& x) {
      GradientTape tape;
      Tensor h = deep(x, weights, true);
      h = cond(
          h.mean() > -2.f,
          [&] {
            count.assign_add(ones({}));
            return h * 0.5f;
          },
          [&] { return h; });
      const Tensor n = full({}, times);
      h = while_loop([&](const TensorTree& s) { return s[0].tensor() < n; },
                     [](const TensorTree& s) {
                       return TensorTree{s[0].tensor() + 1.f, s[1].tensor() * 0.99f};
                     },
                     TensorTree{zeros({}), h})[1]
              .tensor();
      const Tensor loss = square(deep(h, weights, false)).mean();
      return tape.gradient(loss, weights);
    };
    count.assign(zeros({}));
    expect_same_within_budgets(step);
    EXPECT_EQ(count.value().item<float>(), 5);  // Once in each run: two within two budgets, and the natural one.
  }
}

TEST(RecomputeBudget, AFunctionUnderATapeIsCalledWithinIt) {
  const std::vector<Variable> weights = make_weights();
  const Tensor x = random_normal({512, 16}, {.seed = 9});
  const auto gradient_of = [&](const auto& f) {
    GradientTape tape;
    const Tensor loss = square(f(x)).mean();
    return all_of(tape.gradient(loss, weights));
  };
  const auto callable = [&](Tensor t) { return deep(std::move(t), weights, false); };
  EXPECT_TRUE(gradient_of(function(callable, {.budget = 1 << 21})) == gradient_of(function(callable)));
}

TEST(RecomputeBudget, AProgramOfVeryManyStepsIsNotRecomputed) {
  const Tensor x = ones({4});
  const auto long_one = [](Tensor v) {
    const Tensor kept = exp(v);
    for (int i = 0; i < 10'100; ++i) v = tanh(v) + kept;  // Too small to be fused.
    return v;
  };
  const MemoryPlan plan = function(long_one).memory_plan(x);
  EXPECT_EQ(plan.front.size(), 1u);
  try {
    function(long_one, {.budget = 64})(x);
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("too long to recompute"));
  }
}

TEST(RecomputeBudget, OneOperationsNeedIsTheLeast) {
  const Tensor x = random_normal({64, 64}, {.seed = 1});
  const auto f = function([](const Tensor& a) { return matmul(a, a); });
  const MemoryPlan plan = f.memory_plan(x);
  ASSERT_EQ(plan.front.size(), 1u);
  EXPECT_EQ(plan.smallest_bytes, plan.front[0].bytes);
  EXPECT_EQ(plan.floor_step, "matmul");
  EXPECT_EQ(plan.floor_bytes, plan.smallest_bytes);
}

}  // namespace
}  // namespace plimsoll
