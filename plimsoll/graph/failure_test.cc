// Every allocation of building, tracing, planning and running fails once: everything is as before, and the next try
// works.
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <optional>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
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
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

using Floats = std::vector<float>;

// Does `attempt` with each of its heap allocations failing in turn, until one goes through; calls `failed` after each
// that did not. How many failed.
int with_every_heap_failure(const std::function<void()>& attempt, const std::function<void()>& failed) {
  for (std::size_t n = 0; n < 20000; ++n) {
    fail_heap_after(n);
    try {
      attempt();
      if (!disarm_heap()) return static_cast<int>(n);  // Some may be done without.
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(disarm_heap());
      failed();
    } catch (const std::exception& error) {
      disarm_heap();
      ADD_FAILURE() << "allocation " << n << ": " << error.what();
    }
    if (testing::Test::HasFailure()) return -1;
  }
  ADD_FAILURE() << "it never went through";
  return -1;
}

// The same for what is charged to a budget, by giving it a little more each time.
int with_every_refusal(std::size_t most, const std::function<void()>& attempt, const std::function<void()>& failed) {
  int refused = 0;
  for (std::size_t limit = 64; limit <= most; limit += 64) {
    const Budget budget("tight", limit);
    try {
      const BudgetScope use(budget);
      attempt();
      return refused;
    } catch (const OutOfMemory&) {
      ++refused;
      failed();
    }
    if (testing::Test::HasFailure()) return -1;
  }
  ADD_FAILURE() << "it never went through";
  return -1;
}

struct Net {
  Variable w{random_normal({6, 5}, {.seed = 1}), {.name = "w"}}, b{zeros({5}), {.name = "b"}};
  Optimizer adam{AdamOptions{.learning_rate = 0.1}};

  Tensor step(const Tensor& x) const {
    GradientTape tape;
    const Tensor loss = square(relu(matmul(x, w) + b)).mean();
    adam.apply({w, b}, tape.gradient(loss, std::vector<Variable>{w, b}));
    return loss;
  }
  Floats values() const {
    Floats all = w.value().to_vector<float>();
    for (const float value : b.value().to_vector<float>()) all.push_back(value);
    return all;
  }
};

TEST(Failure, OfTheHeapWhileAFunctionIsTracedAndRunChangesNothing) {
  const Tensor x = random_normal({3, 6}, {.seed = 2});
  const MemoryInfo held = memory();
  const Net expected;
  const Floats before = expected.values();
  const float first = expected.step(x).item<float>(), second = expected.step(x).item<float>();
  int failures = 0;
  for (bool failed = true; failed && !HasFailure(); ++failures) {
    const Net net;
    const auto f = function([&](Tensor in) { return net.step(in); });
    bool thrown = false;
    fail_heap_after(static_cast<std::size_t>(failures));
    try {
      const Tensor loss = f(x);
      failed = disarm_heap();  // Some may be done without.
      EXPECT_EQ(loss.item<float>(), first);
    } catch (const std::bad_alloc&) {
      thrown = disarm_heap();
      EXPECT_TRUE(thrown);
    }
    if (thrown) {
      EXPECT_EQ(net.values(), before) << failures;
      EXPECT_EQ(net.adam.step(), 0) << failures;
      EXPECT_EQ(f(x).item<float>(), first) << failures;
    }
    EXPECT_EQ(f(x).item<float>(), second) << failures;
    EXPECT_EQ(net.values(), expected.values()) << failures;
  }
  EXPECT_GT(failures, 100);
  EXPECT_LE(memory().num_tensors, held.num_tensors + 8);  // What is left is `expected`.
}

TEST(Failure, OfMemoryWhileAFunctionRunsChangesNothing) {
  const Tensor x = random_normal({3, 6}, {.seed = 2});
  const Net expected, net;
  const auto f = function([&](Tensor in) { return net.step(in); });
  EXPECT_EQ(f(x).item<float>(), expected.step(x).item<float>());
  const Floats before = net.values();
  const MemoryInfo held = memory();
  float loss = 0;
  const int refusals = with_every_refusal(
      64 << 10, [&] { loss = f(x).item<float>(); },
      [&] {
        EXPECT_EQ(net.values(), before);
        EXPECT_EQ(memory().num_bytes, held.num_bytes);
      });
  EXPECT_GT(refusals, 2);
  EXPECT_EQ(loss, expected.step(x).item<float>());
  EXPECT_EQ(net.values(), expected.values());
  EXPECT_EQ(memory().num_bytes, held.num_bytes);
}

TEST(Failure, OfTheHeapUnderATapeChangesNothing) {
  const Tensor x = random_normal({3, 6}, {.seed = 2});
  const Variable w(random_normal({6, 5}, {.seed = 1}), {.name = "w"});
  const auto body = [&](const Tensor& in) { return tanh(matmul(in, w)).sum(); };
  const auto f = function(body);
  const auto gradient = [&](const auto& callable) {
    GradientTape tape;
    tape.watch(w);
    return tape.gradient(callable(x), std::vector<Variable>{w})[0].template to_vector<float>();
  };
  const Floats expected = gradient(body);
  const MemoryInfo held = memory();
  Floats got;
  const int failures =
      with_every_heap_failure([&] { got = gradient(f); }, [&] { EXPECT_EQ(memory().num_bytes, held.num_bytes); });
  EXPECT_GT(failures, 30);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(gradient(f), expected);
}

// Everything a graph can have.
struct Built {
  Tensor x, loss, train, increment, counted, looped, grouped;

  static Built build() {
    Built made;
    made.x = placeholder(f32, {-1, 4}, "x");
    const NameScope scope("net");
    const Variable w(random_normal({4, 3}, {.seed = 1}), {.name = "w"});
    const Variable counter(zeros({}), {.name = "counter"});
    made.loss = square(relu(matmul(made.x, w)) + constant({1.f, 2.f, 3.f})).mean();
    made.train = train::MomentumOptimizer(0.1, 0.9).minimize(made.loss);
    made.increment = counter.assign_add(ones({}));
    {
      const ControlDependencies after({made.increment});
      made.counted = made.loss * 2.f;
    }
    made.looped = while_loop([](Tensor v) { return v < 100.f; }, [](Tensor v) { return v * 2.f; }, made.counted);
    made.grouped = group({made.train, made.increment});
    return made;
  }
};

TEST(Failure, OfTheHeapWhileAGraphIsBuiltLeavesAGraphThatWorks) {
  const Tensor value = ones({2, 4});
  const MemoryInfo held = memory();
  const auto results = [&](const Graph& g, const Built& built) {
    Session session(g);
    session.initialize_variables();
    const std::vector<Tensor> got = session.run({built.loss, built.grouped, built.looped}, {{built.x, value}});
    return Floats{got[0].item<float>(), got[2].item<float>(),
                  session.run(built.loss, {{built.x, value}}).item<float>()};
  };
  Floats expected;
  {
    const Graph g;
    const GraphScope in(g);
    const Built built = Built::build();
    const TraceWith eager(nullptr);
    expected = results(g, built);
  }
  std::optional<Graph> g;
  Built built;
  const auto build = [&] {
    const GraphScope in(*g);
    built = Built::build();
  };
  int tried = 0;
  const int failures = with_every_heap_failure(
      [&] {
        g.emplace();
        build();
      },
      [&] {
        if (!g || tried++ % 8 != 0) return;
        build();  // Beside what is half built, which nobody needs.
        EXPECT_EQ(results(*g, built), expected);
      });
  EXPECT_GT(failures, 100);
  EXPECT_EQ(results(*g, built), expected);
  g.reset();
  EXPECT_EQ(memory().num_bytes, held.num_bytes);
}

Floats state_of(const Session& session) {
  Floats all;
  for (const Variable& variable : session.variables())
    for (const float value : variable.value().cast(f32).to_vector<float>()) all.push_back(value);
  return all;
}

TEST(Failure, OfTheHeapWhileASessionPlansAndRunsChangesNothing) {
  const Graph g;
  Built built;
  {
    const GraphScope in(g);
    built = Built::build();
  }
  const Feeds feeds{{built.x, ones({2, 4})}};
  const auto loss_of = [&](Session& session) {
    return session.run({built.loss, built.grouped}, feeds)[0].item<float>();
  };
  Session expected(g);
  expected.initialize_variables();
  const Floats before = state_of(expected);
  const float first = loss_of(expected), second = loss_of(expected);
  for (const int planned : {0, 1}) {  // With what planning takes, and with the little that a run itself takes.
    int failures = 0;
    for (bool failed = true; failed && !HasFailure(); ++failures) {
      Session session(g);
      session.initialize_variables();
      if (planned) session.memory_plan({built.loss, built.grouped}, feeds);
      bool thrown = false;
      fail_heap_after(static_cast<std::size_t>(failures));
      try {
        const float loss = loss_of(session);
        failed = disarm_heap();
        EXPECT_EQ(loss, first) << failures;
      } catch (const std::bad_alloc&) {
        thrown = disarm_heap();
        EXPECT_TRUE(thrown);
      }
      if (thrown) {
        EXPECT_EQ(state_of(session), before) << failures;
        EXPECT_EQ(loss_of(session), first) << failures;
      }
      EXPECT_EQ(loss_of(session), second) << failures;
      EXPECT_EQ(state_of(session), state_of(expected)) << failures;
    }
    EXPECT_GT(failures, planned ? 2 : 100);
  }
  Session session(g);
  EXPECT_GT(with_every_heap_failure([&] { session.initialize_variables(); }, [] {}), 20);
  EXPECT_EQ(state_of(session), before);
}

TEST(Failure, OfMemoryWhileASessionRunsChangesNothing) {
  const Graph g;
  Built built;
  {
    const GraphScope in(g);
    built = Built::build();
  }
  const Feeds feeds{{built.x, ones({2, 4})}};
  Session expected(g), session(g);
  expected.initialize_variables();
  session.initialize_variables();
  float got = 0;
  const int refusals = with_every_refusal(
      64 << 10,
      [&] {
        got = session.run({built.counted, built.grouped}, feeds)[0].item<float>();
      },
      [] {});
  EXPECT_GT(refusals, 1);
  EXPECT_EQ(got, (expected.run({built.counted, built.grouped}, feeds)[0].item<float>()));
  EXPECT_EQ(session.run(built.loss, feeds).item<float>(), expected.run(built.loss, feeds).item<float>());
}

}  // namespace
}  // namespace plimsoll
