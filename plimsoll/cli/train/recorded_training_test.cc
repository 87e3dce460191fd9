// What a recorded training shows: who holds each byte of a planned step, under which name, against which budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "plimsoll/graph/function.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/observe/budget_peaks.h"
#include "plimsoll/observe/findings.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

class RecordedTraining : public testing::Test {
 protected:
  ~RecordedTraining() override { std::filesystem::remove(path_); }

  static Sequential make_model() {
    Sequential model({layers::Dense(64, {.activation = "relu", .input_shape = {16}, .name = "first", .seed = 1}),
                      layers::Dense(1, {.name = "second", .seed = 2})});
    model.compile({.optimizer = optimizers::Adam(), .loss = losses::MeanSquaredError()});
    return model;
  }
  TraceFile read() const { return read_trace_file(path_); }

  // Bytes in use after all that happened at a time, as blocks of arenas have them and as the history tells.
  static std::map<std::int64_t, std::uint64_t> by_blocks(const TraceFile& file) {
    std::map<std::int64_t, std::uint64_t> result;
    std::map<std::uint64_t, std::uint64_t> live;
    std::uint64_t total = 0;
    for (const TraceEvent& event : file.events) {
      if (event.kind == TraceEventKind::kAllocate || event.kind == TraceEventKind::kExisting) {
        if (live.emplace(event.block, event.size).second) total += event.size;
      } else if (event.kind == TraceEventKind::kFree) {
        total -= live[event.block];
        live.erase(event.block);
      }
      result[event.time_ns] = total;
    }
    return result;
  }
  static std::map<std::int64_t, std::uint64_t> by_history(const TraceHistory& history) {
    std::map<std::int64_t, std::uint64_t> result;
    BytesByCategory live{};
    for (std::uint32_t moment = 0; moment < history.times.size(); ++moment) {
      const TracedBlock& block = history.blocks[history.owner[moment]];
      live[static_cast<std::size_t>(history.labels[block.label].category)] +=
          block.born == moment ? block.size : 0 - block.size;
      std::uint64_t total = 0;
      for (const std::uint64_t bytes : live) total += bytes;
      result[history.times[moment]] = total;
    }
    return result;
  }

  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("plimsoll_recorded_" + std::to_string(getpid()));
  const Tensor x_ = random_normal({512, 16}, {.seed = 1}), y_ = random_normal({512, 1}, {.seed = 2});
};

TEST_F(RecordedTraining, NamesWhatLiesInsideOfAPlannedStep) {
  Sequential model = make_model();
  {
    TraceRecorder recorder({.path = path_});
    model.fit(x_, y_, {.epochs = 1, .batch_size = 32, .verbose = 0});
  }
  const TraceHistory history = make_trace_history(read());
  EXPECT_GE(history.plan_runs, 16u);
  EXPECT_EQ(history.expanded_plan_runs, history.plan_runs);
  std::map<Category, std::set<std::string>> scopes;
  for (const TracedBlock& block : history.blocks) {
    const TracedLabel& label = history.labels[block.label];
    if (!label.is_unused) scopes[label.category].insert(history.names[label.scope]);
    if (history.names[label.op] == "plan") {
      EXPECT_TRUE(label.is_unused);
    }
  }
  EXPECT_TRUE(scopes[Category::kActivations].count("first"));
  EXPECT_TRUE(scopes[Category::kGradients].count("first"));  // Which may lie where the activation was.
  EXPECT_TRUE(scopes[Category::kGradients].count("second"));
  bool named = false;  // The optimizer's state, by the parameter it belongs to.
  for (const TracedLabel& label : history.labels)
    named |= label.category == Category::kOptimizer && history.names[label.name].starts_with("first/kernel/");
  EXPECT_TRUE(named);
}

TEST_F(RecordedTraining, AddsUpToTheBytesInUseAtAllTimes) {
  Sequential model = make_model();
  {
    TraceRecorder recorder({.path = path_});
    model.fit(x_, y_, {.epochs = 2, .batch_size = 64, .verbose = 0});
    model.predict(x_);
  }
  const TraceFile file = read();
  const std::map<std::int64_t, std::uint64_t> blocks = by_blocks(file), told = by_history(make_trace_history(file));
  ASSERT_GT(told.size(), 100u);
  for (const auto& [time, total] : told) {
    const auto at = std::prev(blocks.upper_bound(time));
    ASSERT_EQ(total, at->second) << time;
  }
  EXPECT_EQ(told.rbegin()->second, blocks.rbegin()->second);
}

TEST_F(RecordedTraining, TellsTracedFunctionsToo) {
  const auto f = function([](const Tensor& a) {
    const NameScope scope("inner");
    return square(tanh(a + 1.f)).sum();
  });
  f(x_);
  {
    TraceRecorder recorder({.path = path_});
    f(x_);
  }
  const TraceHistory history = make_trace_history(read());
  EXPECT_EQ(history.plan_runs, 1u);
  bool found = false;
  for (const TracedBlock& block : history.blocks)
    found |= history.names[history.labels[block.label].scope] == "inner" && !history.labels[block.label].is_unused;
  EXPECT_TRUE(found);
}

TEST_F(RecordedTraining, KnowsTheNamesOfWhatWasThereBefore) {
  Sequential model = make_model();
  model.train_on_batch(x_, y_);  // Then there are weights, and the optimizer's state.
  const Variable scale(ones({3}), {.name = "scale"});
  const Tensor table = constant({1.f, 2.f}, {.name = "table"});
  {
    TraceRecorder recorder({.path = path_});
    ones({4});
  }
  const TraceHistory history = make_trace_history(read());
  std::map<std::string, Category> named;
  for (const TracedBlock& block : history.blocks)
    named[history.names[history.labels[block.label].name]] = history.labels[block.label].category;
  ASSERT_TRUE(named.count("scale"));
  EXPECT_EQ(named["scale"], Category::kParameters);
  EXPECT_TRUE(named.count("table"));
  EXPECT_TRUE(named.count("first/kernel"));
  EXPECT_EQ(named["first/kernel"], Category::kParameters);
}

TEST_F(RecordedTraining, SaysWhereTheScopesOfTensorsBegin) {
  int line = 0;
  {
    TraceRecorder recorder({.path = path_});
    line = __LINE__ + 1;
    const NameScope scope("kept");
    const Tensor a = ones({4});
    tidy([&] { return a + 1.f; });
  }
  const TraceHistory history = make_trace_history(read());
  std::set<std::string> sites;
  for (const TracedBlock& block : history.blocks) sites.insert(history.names[history.labels[block.label].site]);
  EXPECT_TRUE(sites.count("train/recorded_training_test.cc:" + std::to_string(line)));
  EXPECT_TRUE(sites.count("train/recorded_training_test.cc:" + std::to_string(line + 2)));
}

TEST_F(RecordedTraining, IsComparedWithTheBudgetByWhatIsChargedToIt) {
  Sequential model = make_model();
  const std::size_t budget = model.forecast({.batch_size = 32}).smallest_budget;
  {
    TraceRecorder recorder({.path = path_});
    const History trained = model.fit(x_, y_, {.epochs = 2, .batch_size = 32, .verbose = 0, .budget = budget});
    EXPECT_LE(trained.peak_bytes(), budget);
  }
  const TraceHistory history = make_trace_history(read());
  const RunSummary run = summarize(history);
  EXPECT_THAT(run.limit_name, HasSubstr("fit"));
  EXPECT_LE(run.limit.peak_bytes, run.limit.limit_bytes);
  EXPECT_GE(run.limit.peak_bytes, run.limit.limit_bytes * 9 / 10);
  EXPECT_GE(run.limit_bytes, run.peak_bytes);
  bool found = false;
  for (const Finding& finding : diagnose(history, run)) {
    if (finding.kind != "room") continue;
    found = true;
    EXPECT_THAT(finding.remedy, HasSubstr("batch of 32,"));  // Not the 512 rows.
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace plimsoll
