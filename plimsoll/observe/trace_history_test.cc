#include "plimsoll/observe/trace_history.h"

#include <gtest/gtest.h>

#include "plimsoll/observe/address_stretches.h"
#include "plimsoll/observe/run_summary.h"
#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

TEST(TraceHistory, FollowsBlocksFromBirthToDeath) {
  TraceMaker trace;
  const auto a = trace.allocate(100), b = trace.allocate(64);
  trace.free(a);
  const TraceHistory history = make_trace_history(trace.file);
  ASSERT_EQ(history.blocks.size(), 2u);
  EXPECT_EQ(history.blocks[0].born, 0u);
  EXPECT_EQ(history.blocks[0].died, 2u);
  EXPECT_EQ(history.blocks[0].size, 128u);
  EXPECT_EQ(history.blocks[0].requested, 100u);
  EXPECT_EQ(history.blocks[b - 1].died, TracedBlock::kNever);
  EXPECT_EQ(history.labels.size(), 1u);
  EXPECT_EQ(history.times, (std::vector<std::int64_t>{1000, 2000, 3000}));
}

TEST(TraceHistory, ToleratesWhatRingsAndRacesLeave) {
  TraceMaker trace;
  trace.free(99);  // Its allocation fell out of the ring.
  const auto a = trace.allocate(64);
  TraceEvent again = trace.file.events.back();  // Seen both as existing and as allocated.
  again.kind = TraceEventKind::kExisting;
  trace.file.events.push_back(again);
  trace.free(a);
  trace.free(a);
  const TraceHistory history = make_trace_history(trace.file);
  EXPECT_EQ(history.blocks.size(), 1u);
  EXPECT_EQ(history.times.size(), 2u);
  EXPECT_EQ(history.unknown_frees, 2u);
}

TEST(TraceHistory, EndsTheBlocksOfAnArenaThatEnds) {
  TraceMaker trace;
  trace.allocate(64);
  trace.allocate(64);
  trace.add(TraceEventKind::kArenaEnded);
  const TraceHistory history = make_trace_history(trace.file);
  EXPECT_EQ(history.blocks[0].died, 2u);
  EXPECT_EQ(history.blocks[1].died, 3u);
  EXPECT_EQ(summarize(history).live_at_end, 0u);
}

TEST(TraceHistory, ReadsRecordsAndLeavesOtherTextsAlone) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"fit","parent":"process","limit_bytes":4096})");
  trace.text(R"(@forecast {"peak_bytes":1000,"batch_size":32,"by_category":{"activations":900}})");
  trace.text(R"(@opened {"kind":"session","id":7})");
  trace.text(R"(@size {"kind":"graph","id":8,"count":3})");
  trace.text(R"(@closed {"kind":"session","id":7})");
  trace.text(R"(@ladder {"rung":"empty caches","freed_bytes":640})");
  for (const char* text : {"@", "@budget", "@budget {", "@budget []", "@nobody {}", "hello {}"}) trace.text(text);
  const TraceHistory history = make_trace_history(trace.file);
  ASSERT_EQ(history.budgets.size(), 1u);
  EXPECT_EQ(history.budgets[0].limit, 4096u);
  EXPECT_TRUE(history.forecast.known);
  EXPECT_EQ(history.forecast.by_category[static_cast<std::size_t>(Category::kActivations)], 900u);
  ASSERT_EQ(history.holders.size(), 2u);
  EXPECT_TRUE(history.holders[0].closed);
  EXPECT_EQ(history.holders[1].sizes[0].count, 3u);
  ASSERT_EQ(history.marks.size(), 7u);
  EXPECT_EQ(history.marks[0].kind, MarkKind::kLadder);
  EXPECT_EQ(history.marks[0].number, 640u);
  EXPECT_EQ(history.marks[6].text, "hello {}");
}

TEST(TraceHistory, AppliesNamesThatCameLater) {
  TraceMaker trace;
  const auto a = trace.allocate(64, {.op = "random_uniform"}), b = trace.allocate(64, {.op = "random_uniform"});
  trace.text(R"(@named {"block":)" + std::to_string(a) + R"(,"category":"parameters","name":"lstm/kernel"})");
  trace.text(R"(@named {"block":99,"category":"parameters","name":"nobody"})");
  const TraceHistory history = make_trace_history(trace.file);
  const TracedLabel& label = history.labels[history.blocks[0].label];
  EXPECT_EQ(history.names[label.name], "lstm/kernel");
  EXPECT_EQ(history.names[label.op], "random_uniform");
  EXPECT_EQ(label.category, Category::kParameters);
  EXPECT_EQ(history.labels[history.blocks[b - 1].label].name, 0u);
  EXPECT_TRUE(history.marks.empty());
}

TEST(TraceHistory, CountsAStepThatIsMarkedTwiceOnce) {
  TraceMaker trace;
  for (const int number : {0, 0, 1, 1, 1, 0}) trace.step(static_cast<std::uint64_t>(number));
  EXPECT_EQ(make_trace_history(trace.file).marks.size(), 3u);
}

TEST(RunSummary, FindsThePeakAndWhatWasThere) {
  TraceMaker trace;
  const auto weights = trace.allocate(1024, {.op = "variable", .category = Category::kParameters});
  trace.commit(8192);
  trace.step(4);
  trace.phase("forward");
  const auto a = trace.allocate(4096);
  trace.phase("backward");
  const auto b = trace.allocate(64, {.category = Category::kGradients});
  trace.free(a);
  trace.step(5);
  trace.free(b);
  trace.commit(4096);
  const RunSummary run = summarize(make_trace_history(trace.file));
  EXPECT_EQ(run.peak_bytes, 1024u + 4096 + 64);
  EXPECT_EQ(run.peak_moment, 2u);
  EXPECT_EQ(run.peak_step, 4u);
  EXPECT_EQ(run.peak_phase, "backward");
  EXPECT_EQ(run.peak_by_category[static_cast<std::size_t>(Category::kParameters)], 1024u);
  EXPECT_EQ(run.reserved_at_peak, 8192u);
  EXPECT_EQ(run.peak_reserved_bytes, 8192u);
  EXPECT_EQ(run.live_at_end, 1024u);
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_EQ(run.steps[0].live_at_start, 1024u);
  EXPECT_EQ(run.steps[0].peak_bytes, run.peak_bytes);
  EXPECT_EQ(run.steps[1].live_at_start, 1024u + 64);
  EXPECT_EQ(weights, 1u);
}

TEST(RunSummary, DrawsItsLineAtTheTightestBudgetThatWasCharged) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"process","limit_bytes":9000})");
  trace.text(R"(@budget {"name":"fit","limit_bytes":5000})");
  trace.text(R"(@budget {"name":"idle","limit_bytes":10})");
  trace.allocate(64, {.budget = "fit"});
  trace.allocate(64, {.budget = "process"});
  const RunSummary run = summarize(make_trace_history(trace.file));
  EXPECT_EQ(run.limit_bytes, 5000u);
  EXPECT_EQ(run.limit_name, "budget \"fit\"");
  trace.text(R"(@budget {"name":"step","parent":"fit","limit_bytes":100})");
  trace.allocate(64, {.budget = "step"});  // Within "fit", which covers everything.
  const RunSummary within = summarize(make_trace_history(trace.file));
  EXPECT_EQ(within.limit.limit_bytes, 5000u);
  EXPECT_EQ(within.limit.peak_bytes, 128u);
  EXPECT_EQ(within.limit.outside_bytes, 64u);
  EXPECT_EQ(within.limit_bytes, 5064u);  // The limit in terms of all bytes in use.
  TraceMaker without;
  without.allocate(64);
  EXPECT_EQ(summarize(make_trace_history(without.file)).limit_bytes, 1u << 30);
}

TEST(AddressStretches, LeaveWideGapsOutAndKeepHoles) {
  TraceMaker trace;
  trace.allocate(1 << 20, {}, 0);
  trace.allocate(1 << 20, {}, 8 << 20);  // A gap of 7 MiB is more than a quarter of what is used: cut.
  trace.allocate(1 << 20, {}, 9 << 20);
  trace.allocate(1 << 20, {}, (10 << 20) + 65536);  // One of 64 KiB: kept.
  trace.allocate(64, {}, std::uint64_t{80} << 30);
  const TraceHistory history = make_trace_history(trace.file);
  const std::vector<AddressStretch> stretches = address_stretches(history);
  ASSERT_EQ(stretches.size(), 3u);
  EXPECT_EQ(stretches[0].size, 1u << 20);
  EXPECT_EQ(stretches[1].from, 8u << 20);
  EXPECT_EQ(stretches[1].size, (3u << 20) + 65536);
  EXPECT_EQ(place_in_map(stretches, 0, 9 << 20), stretches[1].at + (1 << 20));
  EXPECT_LT(stretches[2].at, 6u << 20);
}

TEST(AddressStretches, PutArenasAboveOneAnother) {
  TraceMaker trace;
  trace.file.arenas.push_back({"CPU:1", 1 << 20, 4096});
  trace.allocate(4096, {}, 0);
  trace.allocate(4096, {}, 0);
  trace.file.events.back().arena = 1;
  const std::vector<AddressStretch> stretches = address_stretches(make_trace_history(trace.file));
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_GT(stretches[1].at, stretches[0].at + stretches[0].size);
  EXPECT_EQ(place_in_map(stretches, 1, 64), stretches[1].at + 64);
}

}  // namespace
}  // namespace plimsoll
