// Programs that store values in a file and load them: the same bits, never a byte above, and as a whole or not at all.
#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/training_step_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/spill/spill_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

constexpr double kQuick = 2;  // A disk so quick that storing is cheaper than computing again, also in small programs.

// With a file for tests that can fail.
struct SpillPlace {
  SpillFolder folder;
  FaultyIo io;
  SpillFile file{{.directory = folder.path(), .io = &io}};
};

std::vector<std::size_t> budgets_of(const Program& program, std::size_t count) {
  const std::size_t gate = program.smallest_block_bytes(Program::kMostSlowdown, Eviction::kSpill);
  const std::size_t natural = program.block_bytes();
  std::vector<std::size_t> budgets;
  for (std::size_t i = 0; i < count; ++i) budgets.push_back(gate + (natural - gate) * i / (count - 1));
  return budgets;
}

TEST(ProgramSpill, GivesTheSameBytesWithinEveryBudget) {
  SpillPlace place;
  std::size_t pairs = 0, spilled = 0;
  const char* const more = std::getenv("PLIMSOLL_MORE_PROGRAMS");  // For long runs: so many times as many.
  const unsigned programs = 63 * static_cast<unsigned>(more ? std::max(1, std::atoi(more)) : 1);
  for (unsigned seed = 1; seed <= programs; ++seed) {
    TrainingStep step(seed, {.inside = seed % 3 != 0, .assigns = seed % 2 == 0, .spill_bytes_per_cost = kQuick});
    const Outcome natural = step.run();
    for (const std::size_t bytes : budgets_of(step.program(), 8)) {
      const Budget budget("step", bytes);
      const Outcome lean = step.run({.budget = &budget, .spill = &place.file});
      EXPECT_TRUE(lean.bytes == natural.bytes) << "seed " << seed << ", " << bytes << " bytes";
      EXPECT_LE(budget.peak(), bytes);
      EXPECT_EQ(budget.used(), 0u);
      ++pairs;
      spilled += lean.spilled_bytes > 0;
    }
  }
  EXPECT_GE(pairs, 500u);
  EXPECT_GE(spilled, pairs / 5);  // Else it shows nothing.
  EXPECT_EQ(place.file.stats().failures, 0u);
}

TEST(ProgramSpill, RunsAtTheGateAndIsRefusedAByteBelow) {
  SpillPlace place;
  std::size_t leaner = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    TrainingStep step(seed, {.layers = 14, .assigns = false, .spill_bytes_per_cost = kQuick});
    step.restore();
    const Program& program = step.program();
    const std::size_t gate = program.smallest_block_bytes(Program::kMostSlowdown, Eviction::kSpill);
    EXPECT_LE(program.floor_bytes(Eviction::kSpill), gate);
    EXPECT_LE(gate, program.smallest_block_bytes());
    leaner += gate < program.smallest_block_bytes();
    const Budget enough("enough", gate);
    step.run({.budget = &enough, .spill = &place.file});
    EXPECT_EQ(enough.peak(), gate);
    step.restore();
    const auto before = step.state();
    const Budget less("less", gate - 1);
    try {
      step.run({.budget = &less, .spill = &place.file});
      ADD_FAILURE() << "not refused, seed " << seed;
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.smallest_sufficient_limit(), gate);
      EXPECT_THAT(error.what(), HasSubstr("recomputing and spilling"));
    }
    EXPECT_TRUE(step.state() == before);
  }
  EXPECT_GE(leaner, 2u);  // Mostly recomputing alone comes as far down here.
}

TEST(ProgramSpill, IsNeverSlowerWithALargerBudgetThanWithoutAFile) {
  for (unsigned seed = 3; seed <= 6; ++seed) {
    TrainingStep step(seed, {.layers = 14, .assigns = false, .spill_bytes_per_cost = kQuick});
    const std::vector<BudgetPoint> without = step.program().front(), with = step.program().front(Eviction::kSpill);
    for (std::size_t i = 1; i < with.size(); ++i) {
      EXPECT_LT(with[i].bytes, with[i - 1].bytes);
      EXPECT_GE(with[i].slowdown, with[i - 1].slowdown);
    }
    for (const BudgetPoint& point : without) {
      double best = 1e9;
      for (const BudgetPoint& other : with)
        if (other.bytes <= point.bytes) best = std::min(best, other.slowdown);
      EXPECT_LE(best, point.slowdown);
    }
  }
}

// Every call of the file fails once. Nothing is stored or loaded after the first change, so nothing has changed.
TEST(ProgramSpill, ChangesNothingWhenACallOfTheFileFails) {
  std::size_t failed = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    TrainingStep step(seed, {.layers = 10, .assigns = seed % 2 == 0, .spill_bytes_per_cost = kQuick});
    const Outcome natural = step.run();
    const std::size_t bytes = budgets_of(step.program(), 3)[0];
    for (const FaultyIo::Call call : {FaultyIo::kAllocate, FaultyIo::kWrite, FaultyIo::kRead})
      for (std::size_t number = 0;; ++number) {
        SpillPlace place;
        place.io.fail(call, number, {.error_number = EIO});
        const Budget budget("step", bytes);
        step.restore();
        const auto before = step.state();
        const TrainingStep::RunOptions options{.budget = &budget, .steps = 1, .spill = &place.file};
        bool is_refused = false;
        try {
          step.run(options);
        } catch (const Error& error) {
          is_refused = true;
          EXPECT_THAT(error.what(), HasSubstr("errno 5"));
          EXPECT_TRUE(step.state() == before) << "seed " << seed << ", call " << call << " number " << number;
        }
        EXPECT_EQ(budget.used(), 0u);
        EXPECT_EQ(place.io.calls(call) > number, is_refused);
        if (!is_refused) break;
        ++failed;
        EXPECT_TRUE(step.run({.budget = &budget, .spill = &place.file}).bytes == natural.bytes) << "the next time";
      }
  }
  EXPECT_GT(failed, 20u);
}

// The largest with which the step stores something.
std::size_t spilling_budget(TrainingStep& step) {
  SpillPlace place;
  for (const BudgetPoint& point : step.program().front(Eviction::kSpill)) {
    const Budget budget("step", point.bytes);
    if (step.run({.budget = &budget, .steps = 1, .spill = &place.file}).spilled_bytes > 0) return point.bytes;
  }
  ADD_FAILURE() << "nothing is ever stored";
  return step.program().block_bytes();
}

TEST(ProgramSpill, ChangesNothingWhenOtherBytesComeBack) {
  TrainingStep step(3, {.layers = 14, .assigns = false, .spill_bytes_per_cost = kQuick});
  const Outcome natural = step.run();
  SpillPlace place;
  place.io.fail(FaultyIo::kRead, 0, {.corrupts = true});
  const Budget budget("step", spilling_budget(step));
  step.restore();
  const auto before = step.state();
  EXPECT_THROW(step.run({.budget = &budget, .steps = 1, .spill = &place.file}), Corruption);
  EXPECT_TRUE(step.state() == before);
  EXPECT_TRUE(step.run({.budget = &budget, .spill = &place.file}).bytes == natural.bytes);
}

TEST(ProgramSpill, IsRefusedBeforeTheFirstStepWhenTheDiskIsTooSmall) {
  TrainingStep step(3, {.layers = 14, .assigns = false, .spill_bytes_per_cost = kQuick});
  SpillPlace place;
  SpillFile small({.directory = place.folder.path(), .limit = 4096, .io = &place.io});
  const Budget budget("step", spilling_budget(step));
  step.restore();
  const auto before = step.state();
  try {
    step.run({.budget = &budget, .spill = &small});
    ADD_FAILURE() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("spill directory"));
  }
  EXPECT_TRUE(step.state() == before);
  EXPECT_EQ(small.stats().reserved_bytes, 0u);
  EXPECT_EQ(place.io.calls(FaultyIo::kWrite), 0u);
}

// Products that take longer than storing what they give, each of which is needed again, the last first.
auto many_layers() {
  return [w = random_normal({512, 512}, {.seed = 1}) * 0.05f](const Tensor& x) {
    std::vector<Tensor> layers = {x};
    for (int i = 0; i < 8; ++i) layers.push_back(matmul(layers.back(), w) + static_cast<float>(i));
    Tensor sum = layers.back();
    for (std::size_t i = layers.size() - 1; i-- > 1;) sum = matmul(sum, w) * layers[i];
    return sum;
  };
}

TEST(ProgramSpill, ServesFunctionsAndSessionsThatNameADirectory) {
  const SpillFolder folder;
  SpillIo::FileSystem facts;
  const int opened = ::open(folder.path().c_str(), O_PATH | O_CLOEXEC);
  SpillIo::system().file_system(opened, facts);
  ::close(opened);
  if (facts.type == TMPFS_MAGIC) GTEST_SKIP() << "the tests' directory is kept in memory";
  const Tensor x = random_uniform({256, 512}, {.seed = 3});
  auto natural = function(many_layers());
  const std::vector<std::byte> expected = TrainingStep::bytes_of(natural(x));
  auto plan_only = function(many_layers(), {.budget = std::size_t{1} << 30, .spill = folder.path().string()});
  const std::size_t gate = plan_only.memory_plan(x).smallest_bytes;
  EXPECT_LT(gate, natural.memory_plan(x).smallest_bytes) << "less than by recomputing alone";
  auto lean = function(many_layers(), {.budget = gate, .spill = folder.path().string()});
  EXPECT_TRUE(TrainingStep::bytes_of(lean(x)) == expected);

  const auto layers = many_layers();
  Graph graph;
  Tensor in, out;
  {
    const GraphScope scope(graph);
    in = placeholder(f32, {256, 512});
    out = layers(in);
  }
  Session session(graph, {.budget = gate, .spill = folder.path().string()});
  EXPECT_TRUE(TrainingStep::bytes_of(session.run(out, {{in, x}})) == expected);
  EXPECT_TRUE(folder.is_empty());
}

TEST(ProgramSpill, ServesCallsFromManyThreadsAtOnce) {
  const SpillFolder folder;
  const Tensor x = random_uniform({256, 512}, {.seed = 3});
  SpillPlace place;
  const std::vector<std::byte> expected = TrainingStep::bytes_of(function(many_layers())(x));
  const auto layers = many_layers();
  const auto graph = GraphState::make(GraphState::Role::kTrace);
  ValueId fed, fetched;
  {
    const TraceWith tracing(graph.get());
    const Tensor in = graph->add_placeholder({Shape({256, 512}), f32}, device_of(x), "x");
    fed = graph->resolve(in, "test", "a feed");
    fetched = graph->resolve(layers(in), "test", "a fetch");
  }
  const std::vector<Feed> feeds = {{fed, graph->output(fed).spec}};
  const std::vector<ValueId> fetches = {fetched};
  Program program(rewrite(*graph, feeds, fetches, true, {}), {}, false, kQuick);
  const std::size_t gate = program.smallest_block_bytes(Program::kMostSlowdown, Eviction::kSpill);
  ASSERT_LT(gate, program.smallest_block_bytes());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        const Budget budget("thread", gate);
        std::vector<Tensor> results(1);
        const Tensor* const given[] = {&x};
        program.run({.feeds = given, .results = results, .own = &budget, .may_recompute = true, .spill = &place.file});
        if (TrainingStep::bytes_of(results[0]) != expected) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(place.file.stats().stores, 0u);
}

TEST(ProgramSpill, RefusesADirectoryWithoutABudgetAndOneThatIsNotThere) {
  EXPECT_THROW(function(many_layers(), {.spill = "somewhere"}), InvalidArgument);
  EXPECT_THROW(function(many_layers(), {.budget = 1000, .spill = "not/there"}), NotFound);
  const Graph graph;
  EXPECT_THROW(Session(graph, {.spill = "somewhere"}), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
