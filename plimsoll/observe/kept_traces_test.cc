#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
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
    const TraceHistory history = read_trace_history(folder + name);
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

// Reading a file in little memory gives what its parsed events give.
TEST(KeptTraces, ReadTheSameWithAndWithoutAllTheirEventsAtOnce) {
  const std::string folder = TEST_DATA "/fuzz/trace_file_fuzz/";
  for (const char* name : {"plans", "plans_ring", "plans_version3", "plans_version2"}) {
    const TraceHistory one = read_trace_history(folder + name),
                       other = make_trace_history(read_trace_file(folder + name));
    EXPECT_EQ(one.names, other.names);
    EXPECT_EQ(one.times, other.times);
    EXPECT_EQ(one.owner, other.owner);
    EXPECT_EQ(one.labels, other.labels);
    EXPECT_EQ(one.events, other.events);
    EXPECT_EQ(one.marks.size(), other.marks.size());
    ASSERT_EQ(one.blocks.size(), other.blocks.size());
    for (std::size_t i = 0; i < one.blocks.size(); ++i) {
      EXPECT_EQ(one.blocks[i].label, other.blocks[i].label);
      EXPECT_EQ(one.blocks[i].size, other.blocks[i].size);
      EXPECT_EQ(one.blocks[i].died, other.blocks[i].died);
    }
  }
}

TEST(KeptTraces, NameTheFileThatIsDamaged) {
  const std::string path = testing::TempDir() + "/plimsoll_damaged.trace";
  std::string bytes = read_file(TEST_DATA "/fuzz/trace_file_fuzz/plans", 1 << 20);
  bytes[100] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    read_trace_history(path);
    FAIL();
  } catch (const Corruption& error) {
    EXPECT_EQ(std::string(error.what()).find("trace \"" + path + "\": a block's checksum is wrong (offset "), 0u)
        << error.what();
  }
  std::filesystem::remove(path);
  EXPECT_THROW(read_trace_history(path), NotFound);
}

}  // namespace
}  // namespace plimsoll
