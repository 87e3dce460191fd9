#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plimsoll/observe/trace_history.h"

namespace plimsoll {
namespace {

// Files written by this version and the two before it: testdata/fuzz/trace_file_fuzz.
TEST(KeptTraces, HavePhasesSinceVersionThreeAndTextsOfRefusalsSinceFour) {
  const auto phases_of = [](const TraceHistory& history) {
    std::set<std::string> phases;
    for (const TracedMark& mark : history.marks)
      if (mark.kind == MarkKind::kPhase) phases.insert(mark.text);
    return phases;
  };
  const std::string folder = TEST_DATA "/fuzz/trace_file_fuzz/";
  for (const char* name : {"plans", "plans_ring", "plans_version3", "plans_version2"}) {
    const TraceHistory history = make_trace_history(read_trace_file(folder + name));
    EXPECT_TRUE(history.complete) << name;
    EXPECT_EQ(history.expanded_plan_runs, 8u) << name;  // The last run of one plan failed before its first step.
    const std::set<std::string> all = {"backward", "between steps", "data", "forward", "update"}, old = {"data"};
    EXPECT_EQ(phases_of(history), std::string(name) == "plans_version2" ? old : all) << name;
    const auto refused = std::find_if(history.marks.begin(), history.marks.end(),
                                      [](const TracedMark& mark) { return mark.kind == MarkKind::kRefused; });
    ASSERT_NE(refused, history.marks.end()) << name;
    EXPECT_EQ(refused->number, 128u << 10) << name;
    EXPECT_EQ(refused->text.empty(), std::string(name).starts_with("plans_version")) << name;
  }
}

}  // namespace
}  // namespace plimsoll
