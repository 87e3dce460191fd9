// A BudgetScope around a run binds it, wherever the session or the function was made.
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/trace/trace_file.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

// A training step in a graph.
struct Trained {
  Trained() {
    const GraphScope in(graph);
    x = placeholder(f32, {-1, 50}, "x");
    const Variable w(random_normal({50, 20}, {.seed = 1}), {.name = "w"});
    y = matmul(x, w);
    loss = square(y).mean();
    train = train::AdamOptimizer(0.01).minimize(loss);
  }
  std::vector<Tensor> run(Session& session) const { return session.run({loss, y, train}, {{x, xs}}); }
  static std::vector<std::vector<double>> values(const Session& session) {
    std::vector<std::vector<double>> all;
    for (const Variable& variable : session.variables())
      all.push_back(variable.value().cast(f64).to_vector<double>());  // One counts steps.
    return all;
  }

  Graph graph;
  Tensor x, y, loss, train;
  Tensor xs = random_normal({64, 50}, {.seed = 2});
};

OutOfMemory refusal_of(FunctionRef<void()> run) {
  try {
    run();
  } catch (const OutOfMemory& error) {
    return error;
  }
  ADD_FAILURE() << "not refused";
  return OutOfMemory({});
}

TEST(RunBudget, BindsASessionThatWasMadeOutside) {
  const Trained trained;
  Session session(trained.graph);
  session.initialize_variables();
  trained.run(session);
  const auto before = Trained::values(session);
  const Budget small("small", 6000);
  const OutOfMemory refused = refusal_of([&] {
    const BudgetScope scope(small);
    trained.run(session);
  });
  EXPECT_THAT(refused.what(), HasSubstr("session: the plan needs"));
  EXPECT_THAT(refused.what(), HasSubstr("budget \"small\" of 5.9 KiB (6000 bytes) has 0 bytes in use"));
  EXPECT_EQ(refused.in_use(), 0u);
  EXPECT_EQ(refused.limit(), 6000u);
  EXPECT_EQ(small.used(), 0u);
  EXPECT_EQ(small.peak(), 0u);
  EXPECT_EQ(Trained::values(session), before);

  const Budget enough("enough", refused.smallest_sufficient_limit());
  {
    const BudgetScope scope(enough);
    const std::vector<Tensor> results = trained.run(session);
    EXPECT_EQ(enough.used(), 64u + 64 * 20 * 4);  // The loss and y; the plan's block is given back.
  }
  EXPECT_EQ(enough.peak(), enough.limit());
  EXPECT_EQ(enough.used(), 0u);
  EXPECT_NE(Trained::values(session), before);
  const Budget less("less", refused.smallest_sufficient_limit() - 1);
  const BudgetScope scope(less);
  EXPECT_THROW(trained.run(session), OutOfMemory);
}

TEST(RunBudget, BindsASessionWithABudgetOfItsOwnToo) {
  const Trained trained;
  Session session(trained.graph, {.budget = 1 << 20});
  session.initialize_variables();
  const Budget outer("outer", 1 << 20), small("small", 6000, outer);
  const auto before = Trained::values(session);
  {
    const BudgetScope scope(small);
    EXPECT_THAT(refusal_of([&] { trained.run(session); }).what(), HasSubstr("\"small\""));
  }
  EXPECT_EQ(Trained::values(session), before);
  EXPECT_EQ(outer.used(), 0u);
  const BudgetScope scope(outer);
  {
    const std::vector<Tensor> results = trained.run(session);
    EXPECT_EQ(outer.used(), 64u + 64 * 20 * 4);
  }
  EXPECT_EQ(outer.used(), 0u);  // The optimizer's state belongs to the session.
}

TEST(RunBudget, OfTheSessionBindsRunsInOtherScopesAsWell) {
  const Trained trained;
  // By itself, within the least that will do.
  const std::size_t least = [&] {
    Session session(trained.graph, {.budget = 17 << 10});
    session.initialize_variables();
    return refusal_of([&] { trained.run(session); }).smallest_sufficient_limit();
  }();
  const Budget wide("wide", 1 << 20);
  for (const std::size_t limit : {least, least - 1}) {
    Session session(trained.graph, {.budget = limit});
    session.initialize_variables();
    const BudgetScope scope(wide);
    if (limit == least)
      trained.run(session);
    else
      EXPECT_THAT(refusal_of([&] { trained.run(session); }).what(), HasSubstr("budget \"session\""));
    EXPECT_EQ(wide.used(), 0u);
  }
}

TEST(RunBudget, ChargesWhatIsAboveBothOnce) {
  const Trained trained;
  Budget process("process", 1 << 20);
  std::optional<Session> session;
  {
    const BudgetScope scope(process);
    session.emplace(trained.graph, SessionOptions{.budget = 1 << 19});
    session->initialize_variables();
    trained.run(*session);
  }
  const std::size_t held = process.used();
  process.reset_peak();
  const Budget request("request", 1 << 19, process);
  {
    const BudgetScope scope(request);
    trained.run(*session);
  }
  EXPECT_EQ(process.peak(), held + request.peak());
  EXPECT_EQ(process.used(), held);
  EXPECT_EQ(request.used(), 0u);
  session.reset();
  EXPECT_EQ(process.used(), 0u);
}

TEST(RunBudget, HoldsForRunsOfSeveralThreadsInScopesOfTheirOwn) {
  const Trained trained;
  const Budget process("process", 1 << 20);
  std::optional<Session> session;
  {
    const BudgetScope scope(process);
    session.emplace(trained.graph, SessionOptions{.budget = 40 << 10});  // For one run at a time, hardly for two.
    session->initialize_variables();
    trained.run(*session);
  }
  const std::size_t held = process.used();
  std::atomic<int> ran{0};
  const auto work = [&](const Budget& own) {
    for (int i = 0; i < 200; ++i) {
      const BudgetScope scope(own);
      try {
        session->run(trained.y, {{trained.x, trained.xs}});
        ++ran;
      } catch (const OutOfMemory& error) {
        EXPECT_THAT(error.what(), HasSubstr("\"session\""));
      }
    }
  };
  const Budget one("one", 1 << 19, process), two("two", 1 << 19, process);
  std::thread other([&] { work(one); });
  work(two);
  other.join();
  EXPECT_GT(ran, 0);
  EXPECT_EQ(one.used() + two.used(), 0u);
  EXPECT_EQ(process.used(), held);
  EXPECT_THAT(process.report(), HasSubstr("session"));
}

TEST(RunBudget, RefusesAFunctionsFirstStepWithoutATrace) {
  const Tensor x = random_normal({4, 8}, {.seed = 3}), y = random_normal({4, 1}, {.seed = 4});
  const Variable w1(random_normal({8, 16}, {.seed = 1})), w2(random_normal({16, 1}, {.seed = 2}));
  const Variable statistic(zeros({16}));
  const auto seeds = std::make_shared<SeedStream>();
  Optimizer adam(AdamOptions{});
  const auto step = function(
      [&](Tensor a, Tensor b) {
        GradientTape tape;
        const Tensor h = dropout(relu(matmul(a, w1)), 0.25, {.seed = take_seed(seeds, 5)});
        statistic.assign_add(h.mean({0}));
        const Tensor loss = square(matmul(h, w2) - b).mean();
        adam.apply({w1, w2}, tape.gradient(loss, std::vector<Variable>{w1, w2}));
        return loss;
      },
      {.name = "step"});
  step.memory_plan(x, y);  // Traced outside.
  const auto state = [&] {
    return std::tuple(w1.value().to_vector<float>(), w2.value().to_vector<float>(),
                      statistic.value().to_vector<float>(), adam.step(), seeds->taken, memory().num_bytes);
  };
  const auto before = state();
  std::size_t limit = 64, least = 0;
  int refused = 0;
  for (;; limit += 64) {
    const Budget budget("tight", limit);
    const BudgetScope scope(budget);
    try {
      step(x, y);
      break;
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), HasSubstr("function \"step\""));
      if (least != 0) {
        EXPECT_EQ(error.smallest_sufficient_limit(), least);
      }
      least = error.smallest_sufficient_limit();
      ++refused;
    }
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_EQ(state(), before) << limit;
    ASSERT_LT(limit, std::size_t{1} << 20);
  }
  EXPECT_GT(refused, 10);
  EXPECT_EQ(limit, least);
  EXPECT_EQ(adam.step(), 1);
  EXPECT_EQ(seeds->taken, 1u);
}

TEST(RunBudget, NamesTheBudgetAboveThatIsFull) {
  const Tensor x = ones({64, 64});
  const auto f = function([](Tensor a) { return tanh(a) * 2.f; });
  f(x);
  const Budget above("above", 20 << 10), inside("inside", 1 << 20, above);
  const BudgetScope scope(inside);
  const Tensor kept = f(x);
  const OutOfMemory refused = refusal_of([&] { f(x); });
  EXPECT_THAT(refused.what(), HasSubstr("budget \"above\""));
  EXPECT_EQ(refused.in_use(), 16u << 10);
  ASSERT_FALSE(refused.holders().empty());
  EXPECT_EQ(refused.holders()[0].bytes, 16u << 10);
}

TEST(RunBudget, RefusalsAreInTheTrace) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "run_budget.trace";
  const Tensor x = ones({64, 64});
  const auto f = function([](Tensor a) { return matmul(a, a) * 2.f; });
  f(x);
  std::size_t needed = 0;
  {
    const TraceRecorder recorder({.path = path});
    const BudgetScope scope(Budget("small", 1024));
    needed = refusal_of([&] { f(x); }).requested();
  }
  std::vector<std::uint64_t> refused;
  for (const TraceEvent& event : read_trace_file(path).events)
    if (event.kind == TraceEventKind::kRefused) refused.push_back(event.requested);
  EXPECT_THAT(refused, testing::ElementsAre(needed));
}

// A trace says once what a plan that recomputes does, and what larger ones would; values that come back have a name.
TEST(RunBudget, TracesSayWhatIsRecomputed) {
  const Tensor x = ones({64, 64});
  const auto deep = [](const Tensor& a) {
    std::vector<Tensor> layers = {a};
    for (int i = 0; i < 8; ++i) layers.push_back(exp(layers.back() * 0.01f) - 1.f);
    Tensor sum = layers.back();
    for (std::size_t i = layers.size() - 1; i-- > 1;) sum = matmul(sum, layers[i]);
    return sum;
  };
  const std::size_t gate = function(deep, {.budget = 64 << 20}).memory_plan(x).smallest_bytes;
  auto f = function(deep, {.budget = gate});
  const std::string path = testing::TempDir() + "/plimsoll_recompute_" + std::to_string(getpid()) + ".trace";
  {
    const TraceRecorder recorder({.path = path});
    for (int i = 0; i < 3; ++i) f(x);
  }
  const TraceFile trace = read_trace_file(path);
  std::vector<std::string> records;
  for (const TraceEvent& event : trace.events)
    if (event.text.starts_with("@recompute ")) records.push_back(event.text);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0], testing::HasSubstr("\"larger\":[["));
  bool is_named = false;
  for (const TracePlan& plan : trace.plans)
    for (const TracePlan::Value& value : plan.values) is_named |= trace.names[value.label.name] == "again";
  EXPECT_TRUE(is_named);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace plimsoll
