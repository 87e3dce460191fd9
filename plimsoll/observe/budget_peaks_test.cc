#include "plimsoll/observe/budget_peaks.h"

#include <gtest/gtest.h>

#include "plimsoll/observe/findings.h"
#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

TEST(BudgetPeaks, CountWhatIsChargedToABudgetAndToThoseInside) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"process","limit_bytes":9000})");
  trace.text(R"(@budget {"name":"fit","parent":"process","limit_bytes":5000})");
  trace.allocate(1024, {.category = Category::kParameters});
  trace.allocate(128, {.budget = "process"});
  const auto step = trace.allocate(256, {.budget = "fit"});
  trace.free(step);
  const std::vector<BudgetPeak> peaks = budget_peaks(make_trace_history(trace.file));
  ASSERT_EQ(peaks.size(), 2u);
  EXPECT_EQ(peaks[0].peak_bytes, 128u + 256);
  EXPECT_EQ(peaks[0].outside_bytes, 1024u);
  EXPECT_EQ(peaks[1].peak_bytes, 256u);
  EXPECT_EQ(peaks[1].outside_bytes, 1024u + 128);
  EXPECT_EQ(peaks[1].by_category[static_cast<std::size_t>(Category::kActivations)], 256u);
}

TEST(BudgetPeaks, TellBudgetsOfOneNameApart) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"fit","limit_bytes":5000})");
  const auto first = trace.allocate(4096, {.budget = "fit"});
  trace.free(first);
  trace.text(R"(@budget {"name":"fit","limit_bytes":500})");  // A second fit, of something smaller.
  trace.allocate(256, {.budget = "fit"});
  const TraceHistory history = make_trace_history(trace.file);
  const std::vector<BudgetPeak> peaks = budget_peaks(history);
  ASSERT_EQ(peaks.size(), 2u);
  EXPECT_EQ(peaks[0].peak_bytes, 4096u);
  EXPECT_EQ(peaks[1].peak_bytes, 256u);
  EXPECT_EQ(nearest_to_limit(history, peaks)->budget, 0u);
}

TEST(BudgetPeaks, PreferABudgetToOneThatOnlyMeasures) {
  TraceMaker trace;
  trace.text(R"(@budget {"name":"fit","limit_bytes":1073741824})");  // As wide as the device.
  trace.text(R"(@budget {"name":"inside","parent":"fit","limit_bytes":1000})");
  trace.allocate(512, {.budget = "inside"});
  const TraceHistory history = make_trace_history(trace.file);
  const std::vector<BudgetPeak> peaks = budget_peaks(history);
  EXPECT_EQ(nearest_to_limit(history, peaks)->budget, 1u);
}

// As in fit(): its budget is charged with the step; the parameters existed before.
TEST(Findings, CompareABudgetWithWhatIsChargedToIt) {
  TraceMaker trace;
  trace.allocate(1 << 20, {.op = "variable", .category = Category::kParameters});
  trace.allocate(4 << 20, {.op = "random_normal", .rows = 60000});  // A dataset that stays: not a batch.
  trace.text(R"(@budget {"name":"fit","limit_bytes":1048576})");
  for (std::uint64_t step = 0; step < 4; ++step) {
    trace.step(step);
    const auto x =
        trace.allocate(64 << 10, {.op = "batch", .budget = "fit", .category = Category::kInputs, .rows = 32});
    const auto h = trace.allocate(512 << 10, {.op = "relu", .budget = "fit", .rows = 48});
    trace.free(h);
    trace.free(x);
  }
  const TraceHistory history = make_trace_history(trace.file);
  const RunSummary run = summarize(history);
  EXPECT_EQ(run.limit.peak_bytes, 576u << 10);
  EXPECT_EQ(run.limit_bytes, (1u << 20) + (5u << 20));  // The limit in terms of all bytes in use.
  bool found = false;
  for (const Finding& finding : diagnose(history, run)) {
    if (finding.kind != "room") continue;
    found = true;
    EXPECT_EQ(finding.title, "The peak is 56 % of the budget \"fit\"");
    EXPECT_EQ(finding.evidence, "576.0 KiB of 1.0 MiB; 5.0 MiB more were in use outside it");
    EXPECT_NE(finding.remedy.find("a batch of about 56 would still fit"), std::string::npos) << finding.remedy;
    EXPECT_NE(finding.remedy.find("batch of 32"), std::string::npos) << finding.remedy;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace plimsoll
