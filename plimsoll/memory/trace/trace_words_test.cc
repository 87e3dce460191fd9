#include "plimsoll/memory/trace/trace_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/pages/host_page_source.h"
#include "plimsoll/memory/trace/trace_file.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

template <class F>
std::vector<std::string> texts_of(F&& while_recording) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("plimsoll_words_" + std::to_string(getpid()));
  TraceRecorder recorder({.path = path});
  while_recording();
  recorder.finish();
  std::vector<std::string> texts;
  for (const TraceEvent& event : read_trace_file(path).events)
    if (event.kind == TraceEventKind::kText) texts.push_back(event.text);
  std::filesystem::remove(path);
  return texts;
}

TEST(TraceRecords, NameTheBudgetsThatAreThereAndThoseThatAreMade) {
  const Budget before("before", 1_MiB);
  { const Budget gone("gone", 1_MiB); }
  const std::vector<std::string> texts = texts_of([&] { const Budget during("with \"quotes\"", 64_KiB, before); });
  EXPECT_THAT(texts, Contains(R"(@budget {"name":"before","parent":"","limit_bytes":1048576})"));
  EXPECT_THAT(texts, Contains(R"(@budget {"name":"with \"quotes\"","parent":"before","limit_bytes":65536})"));
  EXPECT_THAT(texts, Not(Contains(HasSubstr("gone"))));
}

TEST(TraceRecords, TellOfHolders) {
  EXPECT_FALSE(trace_is_recording());
  int holder = 0;
  const std::vector<std::string> texts = texts_of([&] {
    EXPECT_TRUE(trace_is_recording());
    trace_opened("tape", &holder, true);
    trace_size("graph", &holder, 12);
    trace_closed("tape", &holder);
    trace_named(7, "parameters", "dense/kernel");
    trace_ladder("empty caches", 640);
  });
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_THAT(texts[0], testing::MatchesRegex(R"(@opened \{"kind":"tape","id":[0-9]+,"persistent":true\})"));
  EXPECT_THAT(texts[1], HasSubstr(R"("count":12})"));
  EXPECT_THAT(texts[2], testing::StartsWith("@closed"));
  EXPECT_EQ(texts[3], R"(@named {"block":7,"category":"parameters","name":"dense/kernel"})");
  EXPECT_EQ(texts[4], R"(@ladder {"rung":"empty caches","freed_bytes":640})");
}

TEST(TraceRecords, TellOfRungsThatGaveSomething) {
  HostPageSource pages;
  Arena arena(pages, {.name = "test", .limit = 1_MiB});
  arena.set_deferred_release(true);
  const std::vector<std::string> texts = texts_of([&] {
    arena.deallocate(arena.allocate(700_KiB));
    arena.deallocate(arena.allocate(800_KiB));  // Only after the first free has taken effect.
  });
  EXPECT_THAT(texts, Contains(HasSubstr("flush deferred releases")));
}

}  // namespace
}  // namespace plimsoll
