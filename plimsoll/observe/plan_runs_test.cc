#include "plimsoll/observe/plan_runs.h"

#include <gtest/gtest.h>

#include <map>

#include "plimsoll/observe/run_summary.h"
#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

class PlanRunsTest : public testing::Test {
 protected:
  PlanRunsTest() {
    TracePlan plan{.steps = 4, .values = {}};
    plan.values.push_back(value("matmul", 0, 128, 0, 2));
    plan.values.push_back(value("relu", 256, 64, 1, 3));
    plan.values.push_back(value("gradient", 0, 192, 2, 4));
    plan.values.back().label.category = Category::kGradients;
    trace_.file.plans.push_back(plan);
  }
  TracePlan::Value value(const char* op, std::uint64_t offset, std::uint64_t size, std::uint32_t first,
                         std::uint32_t end) {
    TracePlan::Value made{.first = first, .end = end};
    made.label.op = trace_.name(op);
    made.label.offset = offset;
    made.label.size = made.label.requested = size;
    made.label.category = Category::kActivations;
    return made;
  }
  // A run of plan 0 in a block of 320 bytes at 1024.
  void run(std::vector<std::uint32_t> durations = {}, std::uint64_t steps = 4) {
    const auto block = trace_.allocate(320, {.op = "plan", .budget = "fit", .category = Category::kWorkspace}, 1024);
    TraceEvent& event = trace_.add(TraceEventKind::kPlanSteps);
    event.block = block;
    event.size = steps;
    event.requested = durations.size();
    event.offset = trace_.file.durations.size();
    event.time_ns += 1000;
    trace_.file.durations.insert(trace_.file.durations.end(), durations.begin(), durations.end());
    trace_.add(TraceEventKind::kText).text = "later";
    trace_.free(block);
  }
  // Bytes in use after all that happened at each time.
  static std::map<std::int64_t, std::uint64_t> totals(const TraceHistory& history) {
    std::map<std::int64_t, std::uint64_t> result;
    std::uint64_t total = 0;
    for (std::uint32_t moment = 0; moment < history.times.size(); ++moment) {
      const TracedBlock& block = history.blocks[history.owner[moment]];
      total += block.born == moment ? block.size : 0 - block.size;
      result[history.times[moment]] = total;
    }
    return result;
  }
  static std::string name_of(const TraceHistory& history, const TracedBlock& block) {
    return history.names[history.labels[block.label].op];
  }

  TraceMaker trace_;
};

TEST_F(PlanRunsTest, CutABlockIntoTheValuesInItAndTheUnusedRest) {
  run({100, 200, 300, 400});
  const TraceHistory history = make_trace_history(trace_.file);
  EXPECT_EQ(history.plan_runs, 1u);
  EXPECT_EQ(history.expanded_plan_runs, 1u);
  std::map<std::string, const TracedBlock*> named;
  for (const TracedBlock& block : history.blocks) {
    if (!history.labels[block.label].is_unused) named[name_of(history, block)] = &block;
    EXPECT_EQ(history.names[history.labels[block.label].budget], "fit");
    EXPECT_NE(block.died, TracedBlock::kNever);
  }
  ASSERT_EQ(named.size(), 3u);  // The block itself is not among them: its bytes count once.
  const std::int64_t reported = trace_.file.events[1].time_ns;
  EXPECT_EQ(history.times[named["matmul"]->born], trace_.file.events[0].time_ns);
  EXPECT_EQ(history.times[named["matmul"]->died], reported - 700);
  EXPECT_EQ(history.times[named["relu"]->born], reported - 900);
  EXPECT_EQ(history.times[named["relu"]->died], reported - 400);
  EXPECT_EQ(history.times[named["gradient"]->born], reported - 700);
  EXPECT_EQ(history.times[named["gradient"]->died], history.times.back());
  EXPECT_EQ(named["relu"]->offset, 1024u + 256);
  for (const auto& [time, total] : totals(history)) EXPECT_EQ(total, time == history.times.back() ? 0u : 320u) << time;
  EXPECT_EQ(history.unknown_frees, 0u);
}

TEST_F(PlanRunsTest, SpreadStepsThatWereNotTimed) {
  run();
  const TraceHistory history = make_trace_history(trace_.file);
  const std::int64_t begin = trace_.file.events[0].time_ns, end = trace_.file.events.back().time_ns;
  for (const TracedBlock& block : history.blocks) {
    if (name_of(history, block) == "gradient") {
      EXPECT_EQ(history.times[block.born], begin + (end - begin) / 2);
    }
  }
  EXPECT_EQ(totals(history).size(), 5u);  // Begin, three boundaries, end.
}

TEST_F(PlanRunsTest, MarkThePhasesOfTheirStepsAndWhatComesAfter) {
  trace_.file.plans[0].phases = {{0, trace_.name("forward")}, {1, trace_.name("backward")}, {3, trace_.name("update")}};
  trace_.step(0);
  run({100, 200, 300, 400});
  trace_.step(1);
  run();
  trace_.phase("data");
  run();
  const TraceHistory history = make_trace_history(trace_.file);
  std::vector<std::string> phases;
  std::vector<std::int64_t> times;
  std::vector<std::uint32_t> moments;
  for (const TracedMark& mark : history.marks) {
    if (mark.kind != MarkKind::kPhase) continue;
    phases.push_back(mark.text);
    times.push_back(mark.time_ns);
    moments.push_back(mark.moment);
  }
  const std::vector<std::string> once = {"forward", "backward", "update"};
  std::vector<std::string> wanted;
  for (const char* after : {"between steps", "between steps", "data"}) {
    if (std::string(after) == "data") wanted.push_back("data");
    wanted.insert(wanted.end(), once.begin(), once.end());
    wanted.push_back(after);
  }
  ASSERT_EQ(phases, wanted);
  const std::int64_t allocated = trace_.file.events[1].time_ns, reported = trace_.file.events[2].time_ns;
  EXPECT_EQ(times[0], allocated);
  EXPECT_EQ(times[1], reported - 900);
  EXPECT_EQ(times[2], reported - 400);
  EXPECT_EQ(times[3], trace_.file.events[4].time_ns);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(moments[0], 0u);
  EXPECT_EQ(history.names[history.labels[history.blocks[history.owner[moments[1]]].label].op],
            "plan");  // It was unused.
  const std::int64_t begin = trace_.file.events[6].time_ns, end = trace_.file.events[9].time_ns;
  EXPECT_EQ(times[5], begin + (end - begin) / 4);  // Not timed: its part of the run.
  EXPECT_EQ(summarize(history).peak_phase, "backward");
}

TEST_F(PlanRunsTest, KeepThePeakAndPutItWhereLeastIsUnused) {
  trace_.allocate(64, {.category = Category::kParameters});
  run();
  run();
  const RunSummary run = summarize(make_trace_history(trace_.file));
  EXPECT_EQ(run.peak_bytes, 320u + 64);
  EXPECT_EQ(run.peak_unused_bytes, 320u - 192 - 64);
  EXPECT_EQ(run.peak_by_category[static_cast<std::size_t>(Category::kGradients)], 192u);
  EXPECT_EQ(run.peak_by_category[static_cast<std::size_t>(Category::kActivations)], 64u);
  EXPECT_EQ(run.peak_by_category[static_cast<std::size_t>(Category::kWorkspace)], 64u);
}

TEST_F(PlanRunsTest, ThatFailedKeepWhatTheyHadUntilTheEnd) {
  run({10, 10}, 2);  // Then a step threw.
  const TraceHistory history = make_trace_history(trace_.file);
  for (const TracedBlock& block : history.blocks) {
    if (name_of(history, block) == "relu") {
      EXPECT_EQ(history.times[block.died], history.times.back());
    }
  }
  EXPECT_EQ(totals(history).rbegin()->second, 0u);
}

TEST_F(PlanRunsTest, BeyondTheMostMomentsAreExpandedForEveryNth) {
  for (int i = 0; i < 10; ++i) run();
  const TraceHistory all = make_trace_history(trace_.file), some = make_trace_history(trace_.file, 50);
  EXPECT_EQ(all.expanded_plan_runs, 10u);
  EXPECT_EQ(some.plan_runs, 10u);
  EXPECT_LT(some.expanded_plan_runs, 10u);
  EXPECT_GT(some.expanded_plan_runs, 0u);
  EXPECT_LT(some.times.size(), all.times.size());
  EXPECT_EQ(summarize(some).peak_bytes, summarize(all).peak_bytes);
  EXPECT_EQ(summarize(some).peak_unused_bytes, summarize(all).peak_unused_bytes);
}

TEST_F(PlanRunsTest, OfImpossiblePlansStayWhole) {
  TracePlan& plan = trace_.file.plans[0];
  const TracePlan sound = plan;
  plan.values.push_back(value("overlaps", 64, 128, 0, 4));
  run();
  EXPECT_EQ(make_trace_history(trace_.file).plan_runs, 0u);
  plan = sound;
  plan.values.push_back(value("reaches beyond", 256, 128, 3, 4));
  EXPECT_EQ(make_trace_history(trace_.file).plan_runs, 0u);
  plan = sound;
  plan.values.push_back(value("endless", std::uint64_t{1} << 55, 128, 3, 4));
  EXPECT_EQ(make_trace_history(trace_.file).plan_runs, 0u);
  EXPECT_EQ(summarize(make_trace_history(trace_.file)).peak_bytes, 320u);
  plan = sound;
  EXPECT_EQ(make_trace_history(trace_.file).plan_runs, 1u);
}

TEST_F(PlanRunsTest, WithAnUnknownBlockAreNotExpanded) {
  run();
  trace_.file.events.erase(trace_.file.events.begin());  // As a ring does.
  const TraceHistory history = make_trace_history(trace_.file);
  EXPECT_EQ(history.plan_runs, 0u);
  EXPECT_EQ(history.blocks.size(), 0u);
}

TEST_F(PlanRunsTest, EndWithTheirArena) {
  const auto block = trace_.allocate(320, {.op = "plan"});
  TraceEvent& event = trace_.add(TraceEventKind::kPlanSteps);
  event.block = block;
  event.size = 4;
  trace_.add(TraceEventKind::kArenaEnded);
  trace_.free(block);
  const TraceHistory history = make_trace_history(trace_.file);
  for (const TracedBlock& piece : history.blocks) EXPECT_NE(piece.died, TracedBlock::kNever);
  EXPECT_EQ(totals(history).rbegin()->second, 0u);
}

}  // namespace
}  // namespace plimsoll
