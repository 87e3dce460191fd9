// Runs, calls, new plans, savers and closes at once: what the thread sanitizer looks at, and what each of them
// promises.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

constexpr int kThreads = 4;

template <class F>
void on_threads(F&& f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&f, t] { f(t); });
  for (std::thread& thread : threads) thread.join();
}

struct Model {
  Graph graph;
  Tensor x, y, increment, read;
  Model() {
    const GraphScope in(graph);
    x = placeholder(f32, {-1, 8}, "x");
    const Variable w(ones({8, 8}), {.name = "w"});
    const Variable counter(zeros({}), {.name = "counter"});
    y = relu(matmul(x, w)) + x;
    increment = counter.assign_add(ones({}));
    read = counter.value();
  }
};

TEST(Concurrency, ASessionThatIsClosedRefusesRunsAndFinishesThoseUnderWay) {
  const Model model;
  const Tensor value = ones({4, 8});
  const MemoryInfo held = memory();
  for (int round = 0; round < 10; ++round) {
    Session session(model.graph);
    session.initialize_variables();
    std::atomic<int> done{0}, refused{0};
    on_threads([&](int t) {
      if (t == 0) {
        while (done.load() == 0) std::this_thread::yield();
        session.close();
        return;
      }
      try {
        for (;;) {
          EXPECT_EQ(session.run(model.y, {{model.x, value}}).at<float>({3, 7}), 9.f);
          session.run(model.increment);
          ++done;
        }
      } catch (const FailedPrecondition& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("closed"));
        ++refused;
      }
    });
    EXPECT_EQ(refused.load(), kThreads - 1);
    EXPECT_TRUE(session.is_closed());
    EXPECT_TRUE(session.variables().empty());
  }
  EXPECT_EQ(memory().num_bytes, held.num_bytes);
}

TEST(Concurrency, EverythingASessionOffersMayBeAskedForWhileItRuns) {
  const Model model;
  Session session(model.graph);
  session.initialize_variables();
  on_threads([&](int t) {
    for (int i = 0; i < 40; ++i) {
      const Tensor value = ones({1 + (t + i) % 5, 8});  // Plans are made by whoever comes first.
      EXPECT_EQ(session.run(model.y, {{model.x, value}}).at<float>({0, 0}), 9.f);
      session.run(model.increment);
      if (t == 0) {
        EXPECT_EQ(session.variables().size(), 2u);
      } else if (t == 1) {
        EXPECT_EQ(session.variable_values([](const std::string& name) { return name == "w"; }).size(), 1u);
      } else if (t == 2) {
        EXPECT_GT(session.memory_plan({model.y}, {{model.x, value}}).peak_bytes, 0u);
        EXPECT_GT(session.memory_report().plans, 0u);
      } else {
        const GraphScope in(model.graph);  // A graph may grow meanwhile.
        placeholder(f32, {}, "another");
      }
    }
  });
  EXPECT_EQ(session.run(model.read).item<float>(), 40 * kThreads);
}

TEST(Concurrency, CallsThatChangeVariablesTakeTurns) {
  const Variable counter(zeros({16}), {.name = "counter"}), other(zeros({16}), {.name = "other"});
  // Each reads what the other changes.
  const auto f = function([&](Tensor by) { counter.assign_add(by + other.value() * 0.f); });
  const auto g = function([&](Tensor by) { other.assign_add(by + counter.value() * 0.f); });
  const Tensor one = ones({16});
  on_threads([&](int t) {
    for (int i = 0; i < 200; ++i) {
      if (t % 2 == 0)
        f(one);
      else
        g(one);
    }
  });
  EXPECT_EQ(counter.value().to_vector<float>(), std::vector<float>(16, 200 * kThreads / 2));
  EXPECT_EQ(other.value().to_vector<float>(), std::vector<float>(16, 200 * kThreads / 2));
}

TEST(Concurrency, TrainingStepsOfOneModelTakeTurns) {
  const Variable w(ones({8, 4}), {.name = "w"});
  const Optimizer adam(AdamOptions{.learning_rate = 0.01});
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Tensor loss = square(matmul(dropout(x, 0.5, {.seed = 3}), w)).mean();
    adam.apply({w}, tape.gradient(loss, std::vector<Variable>{w}));
    return loss;
  });
  const Tensor x = random_normal({4, 8}, {.seed = 1});
  on_threads([&](int) {
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(std::isfinite(step(x).item<float>()));
  });
  EXPECT_EQ(adam.step(), 50 * kThreads);
}

TEST(Concurrency, FunctionsMayBeTracedCalledAndDifferentiatedAtOnce) {
  const Variable w(random_normal({8, 8}, {.seed = 1}), {.name = "w"});
  const auto body = [&](const Tensor& x) { return tanh(matmul(x, w)).sum(); };
  const auto gradient_of = [&](const auto& callable, const Tensor& x) {
    GradientTape tape;
    tape.watch(w);
    return tape.gradient(callable(x), std::vector<Variable>{w})[0].template to_vector<float>();
  };
  const auto f = function(body);
  on_threads([&](int t) {
    for (int i = 0; i < 10; ++i) {
      const Tensor x = random_normal({1 + (i + t) % 6, 8}, {.seed = static_cast<std::uint64_t>(i)});
      EXPECT_EQ(f(x).item<float>(), body(x).item<float>());
      EXPECT_EQ(gradient_of(f, x), gradient_of(body, x));
    }
  });
  EXPECT_EQ(f.cached_traces(), 6u);
}

}  // namespace
}  // namespace plimsoll
