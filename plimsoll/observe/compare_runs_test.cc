#include "plimsoll/observe/compare_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/json.h"
#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

using ::testing::HasSubstr;

// Two layers; the second one's output has `rows` rows of 64 bytes.
TraceHistory run_of(std::uint64_t rows, bool refuses = false) {
  TraceMaker trace;
  trace.step(1);
  trace.allocate(4096, {.op = "matmul", .scope = "first", .category = Category::kParameters});
  const auto block = trace.allocate(64 * rows, {.op = "relu", .scope = "second"});
  if (refuses) trace.refuse(1 << 20, "conv");
  trace.free(block);
  return make_trace_history(trace.file);
}

TEST(CompareRuns, SaysWhatGrewAtThePeak) {
  const RunComparison runs = compare_runs(run_of(10), run_of(30, true));
  EXPECT_EQ(runs.before.summary.peak_bytes, 4096u + 640u);
  EXPECT_EQ(runs.after.summary.peak_bytes, 4096u + 1920u);
  ASSERT_EQ(runs.groups.size(), 2u);
  EXPECT_EQ(runs.groups[0].what, "relu in second");
  EXPECT_EQ(runs.groups[0].change(), 1280);
  EXPECT_EQ(runs.groups[1].change(), 0);
  ASSERT_EQ(runs.fresh.size(), 1u);
  EXPECT_EQ(runs.fresh[0].kind, "refused");
  EXPECT_TRUE(runs.gone.empty());
}

TEST(CompareRuns, ShowsItAsJsonAndAsAPage) {
  const RunComparison runs = compare_runs(run_of(30), run_of(10));
  const nlohmann::json document = parse_json(comparison_json(runs, "old", "new"));
  EXPECT_EQ(document["peak_change_bytes"], -1280);
  EXPECT_EQ(document["groups"][0]["change_bytes"], -1280);
  EXPECT_EQ(document["before"]["peak_by_category"]["parameters"], 4096);
  const std::string page = comparison_page(runs, "<old>", "new");
  EXPECT_THAT(page, HasSubstr("&lt;old&gt;"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("<old>")));
  EXPECT_THAT(page, HasSubstr("relu in second (activations)"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("<script")));
}

TEST(CompareRuns, EmptyAndEqualRunsHaveNothingToSay) {
  const RunComparison empty =
      compare_runs(make_trace_history(TraceMaker().file), make_trace_history(TraceMaker().file));
  EXPECT_TRUE(empty.groups.empty());
  EXPECT_THAT(comparison_page(compare_runs(run_of(3), run_of(3)), "a", "b"),
              HasSubstr("the same operations hold the same bytes"));
}

TEST(CompareRuns, ChangesHaveASign) {
  EXPECT_EQ(format_change(1536), "+1.5 KiB");
  EXPECT_EQ(format_change(-512), "-512 B");
  EXPECT_EQ(format_change(0), "0 B");
}

}  // namespace
}  // namespace plimsoll
