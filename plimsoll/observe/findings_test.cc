#include "plimsoll/observe/findings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/base/json.h"
#include "plimsoll/observe/report_json.h"
#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<Finding> findings_of(const TraceMaker& trace) {
  const TraceHistory history = make_trace_history(trace.file);
  return diagnose(history, summarize(history));
}

const Finding* find(const std::vector<Finding>& findings, const std::string& kind) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.kind == kind; });
  return found == findings.end() ? nullptr : &*found;
}

// Steps that allocate and free 1 MiB each; `in_step` may do more.
template <class F>
void steps(TraceMaker& trace, std::uint64_t count, F&& in_step) {
  trace.allocate(4096, {.op = "variable", .category = Category::kParameters});
  for (std::uint64_t step = 0; step < count; ++step) {
    trace.step(step);
    const auto block = trace.allocate(1 << 20, {.op = "matmul", .scope = "dense", .rows = 32});
    in_step(step);
    trace.free(block);
  }
}

TEST(Findings, CleanStepsShowNoGrowth) {
  TraceMaker trace;
  steps(trace, 1000, [](std::uint64_t) {});
  const std::vector<Finding> findings = findings_of(trace);
  EXPECT_EQ(find(findings, "growth"), nullptr);
  for (const Finding& finding : findings) EXPECT_EQ(finding.level, FindingLevel::kNote) << finding.title;
}

TEST(Findings, NameWhatGrowsFromStepToStep) {
  TraceMaker trace;
  steps(trace, 50, [&](std::uint64_t) { trace.allocate(640, {.op = "mean", .scope = "loss", .rows = 1}); });
  const std::vector<Finding> findings = findings_of(trace);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, "growth");
  EXPECT_EQ(findings[0].level, FindingLevel::kProblem);
  EXPECT_THAT(findings[0].title, HasSubstr("640 B per step: tensors of \"mean\" in scope \"loss\""));
  EXPECT_THAT(findings[0].evidence, HasSubstr("47 more of them"));
}

TEST(Findings, AGrowingListThatIsClearedAtTheEndIsFound) {
  TraceMaker trace;
  std::vector<std::uint64_t> kept;
  steps(trace, 40, [&](std::uint64_t) { kept.push_back(trace.allocate(64, {.op = "mean"})); });
  for (const std::uint64_t block : kept) trace.free(block);
  EXPECT_NE(find(findings_of(trace), "growth"), nullptr);
}

TEST(Findings, ACacheThatFillsAndStopsIsNotGrowth) {
  TraceMaker trace;
  steps(trace, 100, [&](std::uint64_t step) {
    if (step < 6) trace.allocate(4096, {.op = "plan", .category = Category::kCache});
  });
  EXPECT_EQ(find(findings_of(trace), "growth"), nullptr);
}

TEST(Findings, ExplainARefusal) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"fit","limit_bytes":2097152})");
  trace.allocate(1 << 20, {.op = "lstm", .budget = "fit"});
  trace.refuse(3 << 20, "matmul");
  trace.refuse(64, "add");
  const std::vector<Finding> findings = findings_of(trace);
  const Finding* refused = find(findings, "refused");
  ASSERT_NE(refused, nullptr);
  EXPECT_THAT(refused->title, HasSubstr("2 requests were refused, the largest for 3.0 MiB"));
  EXPECT_THAT(refused->evidence, HasSubstr("\"matmul\" asked for 3.0 MiB"));
  EXPECT_THAT(refused->evidence, HasSubstr("1.0 MiB were in use of 2.0 MiB"));
  EXPECT_THAT(refused->remedy, HasSubstr("4.0 MiB"));
}

TEST(Findings, ARefusalComesFirstWithTheBudgetThatRefused) {
  TraceMaker trace;
  for (int i = 0; i < 10; ++i)
    trace.text(fmt::format(R"(@budget {{"name":"b{}","limit_bytes":{}}})", i, (i + 1) * 4096));
  steps(trace, 50, [&](std::uint64_t) { trace.allocate(1 << 22, {.op = "mean", .budget = "b1"}); });  // Grows.
  trace.refuse_by("b7", 65536, 8 * 4096, "budget \"b7\": cannot allocate 64.0 KiB");
  trace.refuse_by("b7", 40000, 8 * 4096, "budget \"b7\": cannot allocate 39.1 KiB");
  trace.refuse_by("", 2048, 1 << 30, "\"CPU:0\": no hole");
  const std::vector<Finding> findings = findings_of(trace);
  ASSERT_GE(findings.size(), 3u);
  EXPECT_EQ(findings[0].kind, "refused");
  EXPECT_EQ(findings[0].level, FindingLevel::kProblem);
  EXPECT_EQ(findings[0].title, "Budget \"b7\" refused 2 requests, the largest for 64.0 KiB");
  EXPECT_THAT(findings[0].evidence, HasSubstr("budget \"b7\": cannot allocate 64.0 KiB"));
  EXPECT_THAT(findings[0].remedy, HasSubstr("a limit of 64.0 KiB (65536 bytes) would have been enough"));
  EXPECT_EQ(findings[1].title, "\"CPU:0\" refused a request for 2.0 KiB");
  EXPECT_EQ(findings[2].kind, "growth");
  EXPECT_EQ(summarize(make_trace_history(trace.file)).limit_name, "budget \"b7\"");
}

TEST(Findings, NoBatchStillFitsWhereOneWasRefused) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"fit","limit_bytes":307200})");
  trace.text(
      R"(@forecast {"peak_bytes":4194304,"batch_size":128,"by_category":{"activations":4000000,"parameters":194304}})");
  trace.allocate(4096, {.op = "window", .budget = "fit", .category = Category::kInputs, .rows = 128});
  trace.refuse_by("fit", 4194304, 307200, "fit: model \"tides\" needs 4.0 MiB");
  const std::vector<Finding> findings = findings_of(trace);
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings[0].remedy, HasSubstr("a batch of about 3 instead of 128"));
  for (const Finding& finding : findings) EXPECT_THAT(finding.remedy, Not(HasSubstr("still fit"))) << finding.title;
}

TEST(ReportJson, ListsWhatWasRefused) {
  TraceMaker trace;
  trace.refuse_by("fit", 4096, 1024, "too much \xff");
  const TraceHistory history = make_trace_history(trace.file);
  const RunSummary run = summarize(history);
  const auto json = parse_json(report_json(history, run, diagnose(history, run)));
  EXPECT_EQ(json["refusals"], 1);
  ASSERT_EQ(json["refused"].size(), 1u);
  EXPECT_EQ(json["refused"][0]["budget"], "fit");
  EXPECT_EQ(json["refused"][0]["requested_bytes"], 4096);
  EXPECT_EQ(json["refused"][0]["limit_bytes"], 1024);
  EXPECT_EQ(json["refused"][0]["text"], "too much \uFFFD");
}

TEST(Findings, CountSessionsThatStayOpen) {
  TraceMaker trace;
  for (int id = 1; id <= 3; ++id) trace.text(R"(@opened {"kind":"session","id":)" + std::to_string(id) + "}");
  trace.text(R"(@closed {"kind":"session","id":2})");
  const std::vector<Finding> findings = findings_of(trace);
  const Finding* open = find(findings, "session never closed");
  ASSERT_NE(open, nullptr);
  EXPECT_THAT(open->title, HasSubstr("2 of 3 sessions"));
  TraceMaker one;
  one.text(R"(@opened {"kind":"session","id":1})");
  EXPECT_EQ(find(findings_of(one), "session never closed"), nullptr);
}

TEST(Findings, NoticeAGraphThatGrows) {
  TraceMaker grows, stays;
  for (int i = 0; i < 10; ++i) {
    grows.text(R"(@size {"kind":"graph","id":1,"count":)" + std::to_string(10 + 2 * i) + "}");
    stays.text(R"(@size {"kind":"graph","id":1,"count":30})");
  }
  const std::vector<Finding> findings = findings_of(grows);
  const Finding* found = find(findings, "graph grows");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->evidence, HasSubstr("to 28 nodes"));
  EXPECT_EQ(find(findings_of(stays), "graph grows"), nullptr);
}

TEST(Findings, NoticePersistentTapesThatAreKept) {
  TraceMaker kept, brief;
  kept.text(R"(@opened {"kind":"tape","id":1,"persistent":true})");
  steps(kept, 5, [](std::uint64_t) {});
  const std::vector<Finding> findings = findings_of(kept);
  EXPECT_NE(find(findings, "persistent tape"), nullptr);
  steps(brief, 5, [&](std::uint64_t) {
    brief.text(R"(@opened {"kind":"tape","id":1,"persistent":true})");
    brief.text(R"(@closed {"kind":"tape","id":1})");
  });
  EXPECT_EQ(find(findings_of(brief), "persistent tape"), nullptr);
}

TEST(Findings, EstimateTheBatchThatFits) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"fit","limit_bytes":1069056})");  // 1 MiB + 20 KiB.
  trace.allocate(16384, {.op = "variable", .budget = "fit", .category = Category::kParameters});
  for (std::uint64_t step = 0; step < 3; ++step) {
    trace.step(step);
    trace.free(trace.allocate(1 << 20, {.op = "matmul", .budget = "fit", .rows = 64}));
  }
  const std::vector<Finding> findings = findings_of(trace);
  const Finding* room = find(findings, "room");
  ASSERT_NE(room, nullptr);
  EXPECT_EQ(room->level, FindingLevel::kWarning);
  EXPECT_THAT(room->remedy, HasSubstr("a batch of about 64 would still fit"));
}

TEST(Findings, CompareForecastAndMeasurement) {
  TraceMaker trace;
  trace.text(R"(@forecast {"peak_bytes":1048576})");
  trace.allocate(1 << 19);
  const std::vector<Finding> findings = findings_of(trace);
  const Finding* forecast = find(findings, "forecast");
  ASSERT_NE(forecast, nullptr);
  EXPECT_THAT(forecast->title, HasSubstr("(-50.0 %)"));
}

TEST(Findings, SayWhatATraceLacks) {
  TraceMaker trace;
  trace.file.complete = false;
  trace.file.dropped_events = 12;
  const std::vector<Finding> findings = findings_of(trace);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, "incomplete trace");
}

TEST(Findings, ReportFragmentationCachesAndRounding) {
  TraceMaker trace;
  trace.commit(64 << 20);
  trace.allocate(1 << 20, {.op = "plan", .category = Category::kCache}, 0);
  for (int i = 0; i < 4000; ++i) trace.allocate(1, {}, (2 << 20) + 64 * static_cast<std::uint64_t>(i));
  const std::vector<Finding> findings = findings_of(trace);
  for (const char* kind : {"fragmentation", "caches", "rounding", "peak"})
    EXPECT_NE(find(findings, kind), nullptr) << kind;
}

TEST(ReportJson, HasTheNumbersOfTheSummary) {
  TraceMaker trace;
  steps(trace, 8, [](std::uint64_t) {});
  const TraceHistory history = make_trace_history(trace.file);
  const RunSummary run = summarize(history);
  const auto json = parse_json(report_json(history, run, diagnose(history, run)));
  EXPECT_EQ(json["peak_bytes"], run.peak_bytes);
  EXPECT_EQ(json["steps"], 8);
  EXPECT_EQ(json["peak_by_category"]["activations"], 1 << 20);
  EXPECT_EQ(json["forecast"], nullptr);
  EXPECT_FALSE(json["findings"].empty());
}

TEST(Findings, SayWhatALargerBudgetWouldBuy) {
  TraceMaker trace;
  trace.text(
      R"(@recompute {"where":"step","natural_bytes":83886080,"now":[20971520,1.5],"drops":9,"repeats":12,"stores":2,)"
      R"("loads":2,"stored_bytes":2097152,"larger":[[31457280,1.45],[41943040,1.25],[83886080,1]]})");
  steps(trace, 3, [](std::uint64_t) {});
  const TraceHistory history = make_trace_history(trace.file);
  EXPECT_THAT(history.marks.front().text, HasSubstr("12 steps run again"));
  const std::vector<Finding> findings = findings_of(trace);
  const Finding* const found = find(findings, "recomputing");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->title, HasSubstr("recomputes and spills and takes 1.50 x"));
  EXPECT_THAT(found->evidence, HasSubstr("20.0 MiB instead of 80.0 MiB"));
  EXPECT_THAT(found->remedy, HasSubstr("with 20.0 MiB more a step is 1.20 x faster"));
  EXPECT_THAT(found->remedy, HasSubstr("with 60.0 MiB more a step is 1.50 x faster, as without a budget"));
}

TEST(Findings, SayWhatBudgetsThatEvictDid) {
  TraceMaker trace;
  for (int i = 0; i < 2; ++i)
    trace.text(
        R"(@evicted {"budget":"tight","drops":3,"dropped_bytes":3072,"stores":1,"stored_bytes":1024,"repeats":5})");
  trace.text(R"(@recompute {"now":7,"larger":[3,[-1,"x"]]})");  // Nothing in a trace is trusted.
  steps(trace, 3, [](std::uint64_t) {});
  const std::vector<Finding> findings = findings_of(trace);
  const Finding* const found = find(findings, "evicting");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->evidence, HasSubstr("6 drops (6.0 KiB), 2 stores (2.0 KiB); 10 operations ran again"));
  EXPECT_EQ(find(findings, "recomputing")->remedy, "");
}

}  // namespace
}  // namespace plimsoll
