// Whole training steps as functions: optimizers, seeds that change from run to run, steps that fail.
#include <gmock/gmock.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/graph/control_flow.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

struct Net {
  explicit Net(const OptimizerOptions& options) : optimizer(options) {}
  Variable w1{random_normal({8, 16}, {.seed = 1}), {.name = "w1"}};
  Variable w2{random_normal({16, 1}, {.seed = 2}), {.name = "w2"}};
  Optimizer optimizer;
  std::shared_ptr<SeedStream> seeds = std::make_shared<SeedStream>();

  Tensor step(const Tensor& x, const Tensor& y) const {
    GradientTape tape;
    const Tensor h = dropout(relu(matmul(x, w1)), 0.25, {.seed = take_seed(seeds, 5)});
    const Tensor loss = square(matmul(h, w2) - y).mean();
    optimizer.apply({w1, w2}, tape.gradient(loss, std::vector<Variable>{w1, w2}));
    return loss;
  }
  std::vector<std::vector<float>> state() const {
    std::vector<std::vector<float>> all = {w1.value().to_vector<float>(), w2.value().to_vector<float>()};
    for (const Variable& w : {w1, w2})
      for (const Optimizer::Slot& slot : optimizer.slots(w)) all.push_back(slot.value.to_vector<float>());
    all.push_back({static_cast<float>(optimizer.step()), static_cast<float>(seeds->taken)});
    return all;
  }
};

const OptimizerOptions kOptimizers[] = {SGDOptions{},
                                        SGDOptions{.momentum = 0.9, .nesterov = true},
                                        RMSpropOptions{.momentum = 0.5, .centered = true},
                                        AdagradOptions{},
                                        AdadeltaOptions{},
                                        AdamOptions{},
                                        AdamOptions{.weight_decay = 0.01},
                                        AdamaxOptions{}};

TEST(TrainFunction, EveryOptimizerStepsAsWhenRunDirectly) {
  const Tensor x = random_normal({4, 8}, {.seed = 3}), y = random_normal({4, 1}, {.seed = 4});
  for (const OptimizerOptions& options : kOptimizers) {
    const Net eager(options), traced(options);
    const auto f = function([&](Tensor a, Tensor b) { return traced.step(a, b); });
    for (int i = 0; i < 5; ++i) {
      if (i == 3) eager.optimizer.set_learning_rate(0.2), traced.optimizer.set_learning_rate(0.2);
      EXPECT_EQ(f(x, y).item<float>(), eager.step(x, y).item<float>());
    }
    EXPECT_EQ(traced.state(), eager.state()) << options.index();
    EXPECT_EQ(f.trace_count(), 1u);
    // The state is one, whoever steps.
    EXPECT_EQ(traced.step(x, y).item<float>(), eager.step(x, y).item<float>());
    EXPECT_EQ(f(x, y).item<float>(), eager.step(x, y).item<float>());
    EXPECT_EQ(traced.state(), eager.state()) << options.index();
  }
}

TEST(TrainFunction, ShapesShareTheOptimizersState) {
  const Net eager(AdamOptions{}), traced(AdamOptions{});
  const auto f = function([&](Tensor a, Tensor b) { return traced.step(a, b); });
  for (const std::int64_t batch : {4, 3, 4, 1}) {
    const Tensor x = random_normal({batch, 8}, {.seed = 3}), y = random_normal({batch, 1}, {.seed = 4});
    f.memory_plan(x, y);  // Traced before the first step of the other.
    EXPECT_EQ(f(x, y).item<float>(), eager.step(x, y).item<float>());
  }
  EXPECT_EQ(traced.state(), eager.state());
}

TEST(TrainFunction, APlanMakesNoState) {
  const Net net(AdamOptions{});
  const MemoryInfo before = memory();
  {
    const auto f = function([&](Tensor a, Tensor b) { return net.step(a, b); });
    f.memory_plan(zeros({4, 8}), zeros({4, 1}));
    EXPECT_TRUE(net.optimizer.slots(net.w1).empty());
  }
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST(TrainFunction, RestoredStateIsUsedByFunctionsThatHaveIt) {
  const Net eager(AdamOptions{}), traced(AdamOptions{});
  const auto f = function([&](Tensor a, Tensor b) { return traced.step(a, b); });
  const Tensor x = random_normal({4, 8}, {.seed = 3}), y = random_normal({4, 1}, {.seed = 4});
  for (int i = 0; i < 2; ++i) f(x, y), eager.step(x, y);
  const auto slots = eager.optimizer.slots(eager.w1);
  for (int i = 0; i < 2; ++i) f(x, y), eager.step(x, y);
  for (const Net* net : {&eager, &traced}) net->optimizer.restore(net->w1, slots), net->optimizer.restore_step(2);
  EXPECT_EQ(f(x, y).item<float>(), eager.step(x, y).item<float>());
  EXPECT_EQ(traced.state(), eager.state());
}

TEST(TrainFunction, SeveralStepsInOneFunctionCount) {
  const Net eager(AdamOptions{}), traced(AdamOptions{});
  const auto f = function([&](Tensor a, Tensor b) { return traced.step(a, b) + traced.step(a, b); });
  const Tensor x = random_normal({4, 8}, {.seed = 3}), y = random_normal({4, 1}, {.seed = 4});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x, y).item<float>(), (eager.step(x, y) + eager.step(x, y)).item<float>());
  EXPECT_EQ(traced.state(), eager.state());
}

TEST(TrainFunction, ARefusedStepChangesNothing) {
  const Net net(AdamOptions{}), twin(AdamOptions{});
  const auto f = function([&](Tensor x, Tensor y) { return net.step(x, y); });
  const Tensor x = random_normal({64, 8}, {.seed = 3}), y = zeros({64, 1});
  f.memory_plan(x, y);
  int refused = 0, done = 0;
  for (std::size_t limit = 64; limit < 64 << 10; limit += 64 + limit / 4) {
    const Budget budget("tight", limit);
    const auto before = net.state();
    try {
      const BudgetScope scope(budget);
      f(x, y);
    } catch (const OutOfMemory&) {
      ++refused;
      EXPECT_EQ(net.state(), before);
      continue;
    }
    ++done;
    twin.step(x, y);
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(done, 0);
  EXPECT_EQ(net.state(), twin.state());
}

TEST(TrainFunction, ElementsThatAreRefusedChangeNothing) {
  const Variable table(random_normal({4, 3}, {.seed = 1}));
  const Optimizer adam(AdamOptions{});
  const auto f = function([&](Tensor indices) {
    GradientTape tape;
    const Tensor loss = gather(table, indices).sum();
    adam.apply({table}, tape.gradient(loss, std::vector<Variable>{table}));
    return loss;
  });
  f(constant({1, 2}));
  const auto before = table.value().to_vector<float>();
  EXPECT_THROW(f(constant({1, 7})), InvalidArgument);
  EXPECT_EQ(table.value().to_vector<float>(), before);
  EXPECT_EQ(adam.step(), 1);
  f(constant({0, 3}));
  EXPECT_EQ(adam.step(), 2);
}

TEST(TrainFunction, AStepAllocatesNothingOnTheHeap) {
  const Net net(AdamOptions{});
  const auto f = function([&](Tensor x, Tensor y) { return net.step(x, y); });
  const Tensor x = random_normal({4, 8}, {.seed = 3}), y = zeros({4, 1});
  for (int i = 0; i < 3; ++i) f(x, y);
  const std::size_t before = heap_allocations();
  for (int i = 0; i < 100; ++i) f(x, y);
  EXPECT_EQ(heap_allocations(), before);
}

TEST(TrainFunction, AGradientOfAFunctionDropsWhatTheCallDropped) {
  const auto seeds = std::make_shared<SeedStream>();
  const Variable w(ones({64}));
  const auto f = function([&](Tensor x) { return dropout(x * w, 0.5, {.seed = take_seed(seeds, 3)}); });
  for (std::uint64_t i = 0; i < 3; ++i) {
    GradientTape tape;
    const Tensor y = f(ones({64}));
    EXPECT_EQ(seeds->taken, i + 1);
    EXPECT_EQ(tape.gradient(y.sum(), std::vector<Variable>{w})[0].to_vector<float>(), y.to_vector<float>());
    EXPECT_EQ(y.to_vector<float>(), dropout(ones({64}), 0.5, {.seed = seed_at(3, i)}).to_vector<float>());
  }
}

TEST(TrainFunction, StepsInBranchesAndGraphsAreRefused) {
  const Net net(AdamOptions{});
  const Tensor x = zeros({4, 8}), y = zeros({4, 1});
  const auto branch = function([&](Tensor a, Tensor b) {
    return cond(
        a.sum() > 0.f, [&] { return net.step(a, b); }, [&] { return b.sum(); });
  });
  EXPECT_THROW(branch(x, y), Unsupported);
  const Graph g;
  const GraphScope in(g);
  EXPECT_THROW(net.step(placeholder(f32, {4, 8}), placeholder(f32, {4, 1})), Unsupported);
  const Variable declared(zeros({2}), {.name = "declared"});
  EXPECT_THROW(net.optimizer.apply({declared}, {zeros({2})}), Error);
}

// Values of 256 KiB and more that are recomputed for gradients, read in other shapes by several.
TEST(TrainFunction, GivesWhatIsMadeAgainInTheShapeItWasReadIn) {
  const Variable gamma(random_normal({128}, {.seed = 1})), beta(random_normal({128}, {.seed = 2}));
  const Variable w1(random_normal({128, 8}, {.seed = 3})), w2(random_normal({128, 8}, {.seed = 4}));
  const Tensor x = random_normal({16, 32, 128}, {.seed = 5});
  const auto normalized = [&](const Tensor& a) { return layer_norm(a, gamma, beta); };
  const auto attended = [&](const Tensor& a) {
    const Tensor heads = a.reshape({16, 32, 4, 32});
    return scaled_dot_product_attention(heads, heads * 2.f, heads, {.sequence_first = true});
  };
  for (const bool is_norm : {true, false})
    for (const bool plain_first : {true, false}) {
      const auto loss_of = [&](const Tensor& a) {
        const Tensor made = is_norm ? normalized(a) : attended(a * gamma);
        const Tensor wide = made.reshape({16, 32, 128}), flat = made.reshape({-1, 128});
        return square(dense(plain_first ? wide : flat, w1)).sum() + square(dense(plain_first ? flat : wide, w2)).sum();
      };
      const auto step = [&](const Tensor& a) {
        GradientTape tape;
        const Tensor loss = loss_of(a);
        return tape.gradient(loss, std::vector<Variable>{w1, w2, gamma});
      };
      const std::vector<Tensor> expected = step(x), inside = function(step)(x);
      GradientTape tape;
      const Tensor loss = function(loss_of)(x);
      const std::vector<Tensor> around = tape.gradient(loss, std::vector<Variable>{w1, w2, gamma});
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(inside[i].to_vector<float>(), expected[i].to_vector<float>()) << is_norm << plain_first << i;
        EXPECT_EQ(around[i].to_vector<float>(), expected[i].to_vector<float>()) << is_norm << plain_first << i;
      }
    }
}

}  // namespace
}  // namespace plimsoll
