#include <gtest/gtest.h>

#include <set>

#include "plimsoll/observe/trace_history.h"

namespace plimsoll {
namespace {

// Files that were written by this version and the one before: testdata/fuzz/trace_file_fuzz.
TEST(KeptTraces, HavePhasesInTheirPlansFromVersionThreeOn) {
  const auto phases_of = [](const TraceHistory& history) {
    std::set<std::string> phases;
    for (const TracedMark& mark : history.marks)
      if (mark.kind == MarkKind::kPhase) phases.insert(mark.text);
    return phases;
  };
  const std::string folder = TEST_DATA "/fuzz/trace_file_fuzz/";
  for (const char* name : {"plans", "plans_ring", "plans_version2"}) {
    const TraceHistory history = make_trace_history(read_trace_file(folder + name));
    EXPECT_TRUE(history.complete) << name;
    EXPECT_EQ(history.told_plan_runs, 8u) << name;  // The last of one plan's failed before it told anything.
    const std::set<std::string> told = {"backward", "between steps", "data", "forward", "update"}, old = {"data"};
    EXPECT_EQ(phases_of(history), std::string(name) == "plans_version2" ? old : told) << name;
  }
}

}  // namespace
}  // namespace plimsoll
