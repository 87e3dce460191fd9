#include "plimsoll/memory/trace/trace_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/call_site.h"
#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/trace/trace_file.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll {
namespace {

class TracePlanTest : public testing::Test {
 protected:
  ~TracePlanTest() override { std::filesystem::remove(path_); }

  static PlacedValue value(const char* op, std::uint64_t offset, std::uint64_t bytes, std::uint32_t first,
                           std::uint32_t end) {
    PlacedValue made{.offset = offset, .bytes = bytes, .first = first, .end = end};
    made.label.op = op;
    made.label.scope = "encoder";
    made.label.category = Category::kGradients;
    made.label.site = site_number({"src/train.cc", 12});
    made.label.has_shape = 1;
    made.label.rank = 1;
    made.label.sizes[0] = static_cast<std::uint32_t>(bytes / 4);
    return made;
  }
  static void run(KnownPlan& known, const PlacedValues& plan, std::uint64_t block) {
    TracePlanRun run(known, plan, {&block, 1});
    for (std::uint32_t i = 0; i < plan.steps && run.times_steps(); ++i) run.step_done();
    run.finish();
  }
  static std::vector<TraceEvent> steps_of(const TraceFile& file) {
    std::vector<TraceEvent> result;
    for (const TraceEvent& event : file.events)
      if (event.kind == TraceEventKind::kPlanSteps) result.push_back(event);
    return result;
  }

  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("plimsoll_plan_trace_" + std::to_string(getpid()));
  PlacedValues plan_{.steps = 3, .values = {value("matmul", 0, 100, 0, 2), value("relu", 128, 64, 1, 3)}};
};

TEST_F(TracePlanTest, DescribesAPlanOnceAndEachRunInOneEvent) {
  KnownPlan known;
  {
    TraceRecorder recorder({.path = path_});
    run(known, plan_, 77);
    run(known, plan_, 78);
  }
  const TraceFile file = read_trace_file(path_);
  ASSERT_EQ(file.plans.size(), 1u);
  EXPECT_EQ(file.plans[0].steps, 3u);
  ASSERT_EQ(file.plans[0].values.size(), 2u);
  const TracePlan::Value& first = file.plans[0].values[0];
  EXPECT_EQ(file.names[first.label.op], "matmul");
  EXPECT_EQ(file.names[first.label.scope], "encoder");
  EXPECT_EQ(file.names[first.label.site], "src/train.cc:12");
  EXPECT_EQ(first.label.category, Category::kGradients);
  EXPECT_EQ(first.label.requested, 100u);
  EXPECT_EQ(first.label.size, 128u);
  EXPECT_EQ(first.label.sizes[0], 25u);
  EXPECT_EQ(first.first, 0u);
  EXPECT_EQ(first.end, 2u);
  EXPECT_EQ(file.plans[0].values[1].label.offset, 128u);
  const std::vector<TraceEvent> steps = steps_of(file);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].block, 77u);
  EXPECT_EQ(steps[1].block, 78u);
  for (const TraceEvent& event : steps) {
    EXPECT_EQ(event.number, 0u);
    EXPECT_EQ(event.size, 3u);
  }
}

TEST_F(TracePlanTest, SaysWhatTheStepsAreFor) {
  KnownPlan known, other;
  PlacedValues phased = plan_;
  phased.phases = {{0, "forward"}, {2, "backward"}};
  {
    TraceRecorder recorder({.path = path_});
    run(known, phased, 1);
    run(other, plan_, 2);
  }
  const TraceFile file = read_trace_file(path_);
  ASSERT_EQ(file.plans.size(), 2u);
  ASSERT_EQ(file.plans[0].phases.size(), 2u);
  EXPECT_EQ(file.plans[0].phases[0].first, 0u);
  EXPECT_EQ(file.names[file.plans[0].phases[0].name], "forward");
  EXPECT_EQ(file.plans[0].phases[1].first, 2u);
  EXPECT_EQ(file.names[file.plans[0].phases[1].name], "backward");
  EXPECT_EQ(file.plans[0].values.size(), 2u);
  EXPECT_TRUE(file.plans[1].phases.empty());
}

TEST_F(TracePlanTest, TimesStepsUntilTheyAreKnownToBeShort) {
  KnownPlan known;
  {
    TraceRecorder recorder({.path = path_});
    run(known, plan_, 1);
    EXPECT_TRUE(known.short_steps);
    run(known, plan_, 2);
  }
  const TraceFile file = read_trace_file(path_);
  const std::vector<TraceEvent> steps = steps_of(file);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].requested, 3u);
  EXPECT_EQ(steps[1].requested, 0u);
  EXPECT_EQ(file.durations.size(), 3u);
}

TEST_F(TracePlanTest, TimesLongStepsInEveryRun) {
  KnownPlan known;
  plan_.steps = 1;
  plan_.values.clear();
  TraceRecorder recorder({.path = path_});
  for (std::uint64_t block = 1; block <= 2; ++block) {
    TracePlanRun run(known, plan_, {&block, 1});
    ASSERT_TRUE(run.times_steps());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    run.step_done();
    run.finish();
  }
  recorder.finish();
  const TraceFile file = read_trace_file(path_);
  ASSERT_EQ(file.durations.size(), 2u);
  EXPECT_GE(file.durations[0], 2'000'000u);
  EXPECT_GE(file.durations[1], 2'000'000u);
}

TEST_F(TracePlanTest, TellsLongPlansInSeveralEvents) {
  KnownPlan known;
  plan_.steps = 450;
  {
    TraceRecorder recorder({.path = path_});
    run(known, plan_, 5);
  }
  const TraceFile file = read_trace_file(path_);
  std::uint64_t steps = 0;
  for (const TraceEvent& event : steps_of(file)) steps += event.size;
  EXPECT_EQ(steps_of(file).size(), 3u);
  EXPECT_EQ(steps, 450u);
}

TEST_F(TracePlanTest, DescribesItAnewInTheNextRecording) {
  KnownPlan known;
  for (int i = 0; i < 2; ++i) {
    {
      TraceRecorder recorder({.path = path_});
      run(known, plan_, 9);
    }
    const TraceFile file = read_trace_file(path_);
    EXPECT_EQ(file.plans.size(), 1u);
    EXPECT_EQ(steps_of(file).size(), 1u);
  }
}

TEST_F(TracePlanTest, IsInARingEvenWhenItsFirstRunIsNot) {
  KnownPlan known;
  {
    TraceRecorder recorder({.path = path_, .mode = TraceMode::kRing, .max_bytes = 128_KiB});
    for (std::uint64_t block = 1; block < 40'000; ++block) run(known, plan_, block);
  }
  const TraceFile file = read_trace_file(path_);
  EXPECT_GT(file.dropped_events, 0u);
  EXPECT_EQ(file.plans.size(), 1u);
  EXPECT_EQ(steps_of(file).back().block, 39'999u);
}

TEST_F(TracePlanTest, IsLeftOutWhenThereIsNoRoomForIt) {
  KnownPlan known;
  for (std::uint32_t i = 0; i < 100'000; ++i) plan_.values.push_back(value("add", 64 * std::uint64_t{i}, 64, 0, 3));
  {
    TraceRecorder recorder({.path = path_});
    run(known, plan_, 1);
    EXPECT_LT(recorder.counters().buffered_bytes, 1_MiB);
  }
  const TraceFile file = read_trace_file(path_);
  EXPECT_EQ(file.plans.size(), 0u);
  EXPECT_EQ(steps_of(file).size(), 0u);
}

}  // namespace
}  // namespace plimsoll
