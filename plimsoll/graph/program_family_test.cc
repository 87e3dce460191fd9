// Programs within budgets below their natural peak: the same bits, never a byte above.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/graph/training_step_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

// Some bytes from the gate up to the natural peak, both included.
std::vector<std::size_t> budgets_of(const Program& program, std::size_t count) {
  const std::size_t gate = program.smallest_block_bytes(), natural = program.block_bytes();
  std::vector<std::size_t> budgets;
  for (std::size_t i = 0; i < count; ++i) budgets.push_back(gate + (natural - gate) * i / (count - 1));
  return budgets;
}

TEST(ProgramFamily, GivesTheSameBytesWithinEveryBudget) {
  std::size_t pairs = 0, recomputed = 0;
  const char* const more = std::getenv("PLIMSOLL_MORE_PROGRAMS");  // For long runs: so many times as many.
  const unsigned programs = 44 * static_cast<unsigned>(more ? std::max(1, std::atoi(more)) : 1);
  for (unsigned seed = 1; seed <= programs; ++seed) {
    TrainingStep step(seed, {.inside = seed % 3 != 0});
    const Outcome natural = step.run();
    EXPECT_EQ(natural.recomputed, 0);
    for (const std::size_t bytes : budgets_of(step.program(), 12)) {
      const Budget budget("step", bytes);
      const Outcome lean = step.run({.budget = &budget});
      EXPECT_TRUE(lean.bytes == natural.bytes) << "seed " << seed << ", " << bytes << " bytes";
      EXPECT_LE(budget.peak(), bytes);
      EXPECT_EQ(budget.used(), 0u);
      ++pairs;
      recomputed += lean.recomputed > 0;
    }
  }
  EXPECT_GE(pairs, 500u);
  EXPECT_GE(recomputed, pairs / 3);  // Else it shows nothing.
}

TEST(ProgramFamily, RecurrentLayersComputeGatesAgainWithTheSameBytes) {
  constexpr std::int64_t kRows = 1024;
  std::size_t leaner = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    TrainingStep step(seed, {.layers = 5, .recurrent = true, .rows = kRows});
    const Outcome natural = step.run();
    for (const std::size_t bytes : budgets_of(step.program(), 6)) {
      const Budget budget("step", bytes);
      const Outcome lean = step.run({.budget = &budget});
      EXPECT_TRUE(lean.bytes == natural.bytes) << "seed " << seed << ", " << bytes << " bytes";
      EXPECT_LE(budget.peak(), bytes);
    }
    // The largest buffer has the gates of a layer: with all of them its gradient would take them and three activations.
    std::size_t gates = 0;
    for (const PlannedBuffer& buffer : step.program().memory_plan().buffers) gates = std::max(gates, buffer.bytes);
    leaner += step.program().smallest_block_bytes() < gates + 2 * kRows * 16 * sizeof(float);
  }
  EXPECT_GE(leaner, 4u);
}

TEST(ProgramFamily, GivesTheSameBytesWithPassesOffAndWithOtherThreads) {
  const int threads = num_threads();
  for (unsigned seed = 50; seed < 56; ++seed)
    for (const Passes& passes : {Passes{.in_place = false}, Passes{.reorder = false}, Passes{.fuse_elementwise = false},
                                 Passes{.fuse_dense = false}}) {
      TrainingStep step(seed, {.passes = passes});
      const Outcome natural = step.run();
      for (const int number : {1, 2, 7}) {
        set_num_threads(number);
        for (const std::size_t bytes : budgets_of(step.program(), 3)) {
          const Budget budget("step", bytes);
          EXPECT_TRUE(step.run({.budget = &budget}).bytes == natural.bytes)
              << "seed " << seed << ", " << bytes << " bytes";
        }
      }
      set_num_threads(threads);
    }
}

TEST(ProgramFamily, RunsAtTheGateAndIsRefusedAByteBelow) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    TrainingStep step(seed);
    step.restore();
    const std::size_t gate = step.program().smallest_block_bytes();
    EXPECT_LE(step.program().floor_bytes(), gate);
    const Budget enough("enough", gate);
    step.run({.budget = &enough});
    EXPECT_EQ(enough.peak(), gate);
    step.restore();
    const auto before = step.state();
    const Budget less("less", gate - 1);
    try {
      step.run({.budget = &less});
      ADD_FAILURE() << "not refused, seed " << seed;
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.smallest_sufficient_limit(), gate);
      EXPECT_THAT(error.what(), HasSubstr(step.program().floor_step()));
      EXPECT_THAT(error.what(), HasSubstr("times as long"));
      EXPECT_THAT(error.what(), HasSubstr(std::to_string(step.program().floor_bytes())));
    }
    EXPECT_TRUE(step.state() == before);
    EXPECT_EQ(less.peak(), 0u);
  }
}

TEST(ProgramFamily, IsNeverSlowerWithALargerBudget) {
  TrainingStep step(3, {.layers = 14});
  const Program& program = step.program();
  const std::vector<BudgetPoint> front = program.front();
  ASSERT_GT(front.size(), 4u);
  EXPECT_EQ(front.front().bytes, program.block_bytes());
  EXPECT_EQ(front.front().slowdown, 1);
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_LT(front[i].bytes, front[i - 1].bytes);
    EXPECT_GT(front[i].slowdown, front[i - 1].slowdown);
  }
  double before = 1;
  for (const std::size_t bytes : budgets_of(program, 200)) {
    const Budget budget("step", bytes);
    const Outcome outcome = step.run({.budget = &budget, .steps = 1});
    EXPECT_LE(outcome.recomputed, before);
    before = outcome.recomputed;
  }
  EXPECT_EQ(before, 0);
}

TEST(ProgramFamily, DependsOnTheProgramAlone) {
  const int threads = num_threads();
  for (unsigned seed = 20; seed < 24; ++seed) {
    const auto front_with = [&](int number) {
      set_num_threads(number);
      TrainingStep step(seed);
      std::vector<std::pair<std::size_t, double>> points;
      for (const BudgetPoint& point : step.program().front()) points.emplace_back(point.bytes, point.slowdown);
      return points;
    };
    EXPECT_EQ(front_with(1), front_with(2));
    set_num_threads(threads);
  }
}

TEST(ProgramFamily, PlacesEveryMembersBuffersApart) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    TrainingStep step(seed);
    const Program& program = step.program();
    const std::vector<BudgetPoint> front = program.front();
    for (std::size_t point = 0; point < front.size(); ++point) {
      const MemoryPlan& plan = program.memory_plan_of(point);
      std::vector<Buffer> buffers;
      std::vector<std::size_t> offsets;
      for (const PlannedBuffer& buffer : plan.buffers) {
        if (buffer.is_result || buffer.bytes == 0) continue;
        buffers.push_back({.size = buffer.bytes, .lower = buffer.first, .upper = buffer.end, .alignment = 64});
        offsets.push_back(buffer.offset);
      }
      EXPECT_EQ(validate_plan(buffers, offsets, {.capacity = plan.extent_bytes}), "");
      EXPECT_EQ(plan.extent_bytes, front[point].bytes);  // Results stay inside.
    }
  }
}

TEST(ProgramFamily, RefusesWhatWouldBeSlowerThanAskedFor) {
  TrainingStep step(3, {.layers = 14});
  const std::vector<BudgetPoint> front = step.program().front();
  const BudgetPoint middle = front[front.size() / 2];
  EXPECT_EQ(step.program().smallest_block_bytes(middle.slowdown), middle.bytes);
  const Budget fits("fits", middle.bytes), less("less", middle.bytes - 1);
  step.run({.budget = &fits, .max_slowdown = middle.slowdown});
  EXPECT_THROW(step.run({.budget = &less, .max_slowdown = middle.slowdown}), OutOfMemory);
  step.run({.budget = &less});
  EXPECT_THROW(step.run({.budget = &less, .may_recompute = false}), OutOfMemory);
}

TEST(ProgramFamily, ChangesNothingWhenAnIndexDoesNotExist) {
  int refused = 0;
  for (unsigned seed = 60; seed < 90; ++seed) {
    TrainingStep step(seed, {.layers = 8, .assigns = false});
    for (const std::size_t bytes : budgets_of(step.program(), 3)) {
      step.restore();
      const auto before = step.state();
      const Budget budget("step", bytes);
      try {
        step.run({.budget = &budget, .bad_rows = true});
      } catch (const InvalidArgument&) {
        ++refused;
        EXPECT_TRUE(step.state() == before) << "seed " << seed;
        EXPECT_EQ(budget.used(), 0u);
      }
    }
  }
  EXPECT_GT(refused, 20);
}

TEST(ProgramFamily, CountsItsBytesOnceItIsThere) {
  TrainingStep step(3, {.layers = 14});
  const std::size_t natural = step.program().bytes();
  step.run();
  EXPECT_EQ(step.program().bytes(), natural);  // Nothing was looked for.
  step.program().front();
  const std::size_t with_schedules = step.program().bytes();
  EXPECT_GT(with_schedules, natural);
  const Budget budget("step", step.program().smallest_block_bytes());
  step.run({.budget = &budget});
  EXPECT_GT(step.program().bytes(), with_schedules);
}

// The search for leaner plans, the tables of one and its first run: whichever allocation fails, the step has not
// happened and the next try does it.
TEST(ProgramFamily, LeavesEverythingAsItWasWhenTheHeapIsFull) {
  const Outcome natural = TrainingStep(3, {.layers = 10}).run({.steps = 1});
  TrainingStep step(3, {.layers = 10});
  const std::size_t gate = TrainingStep(3, {.layers = 10}).program().smallest_block_bytes();
  std::size_t failures = 0;
  for (std::size_t after = 0;; after += 1 + after / 3) {
    step.restore();
    const auto before = step.state();
    const Budget budget("step", gate);
    Outcome outcome;
    fail_heap_after(after);
    try {
      step.run_once({.budget = &budget}, outcome);
    } catch (const std::bad_alloc&) {
    }
    if (!disarm_heap()) {
      EXPECT_GT(outcome.recomputed, 0);
      break;
    }
    ++failures;
    EXPECT_TRUE(step.state() == before) << after;
    EXPECT_EQ(budget.used(), 0u) << after;
    ASSERT_LT(failures, 200u);
  }
  EXPECT_GT(failures, 20u);
  const Budget budget("step", gate);
  EXPECT_TRUE(step.run({.budget = &budget, .steps = 1}).bytes == natural.bytes);
}

}  // namespace
}  // namespace plimsoll
