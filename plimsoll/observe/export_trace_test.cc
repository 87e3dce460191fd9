#include "plimsoll/observe/export_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/observe/internal/exported_run.h"
#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

using ::testing::HasSubstr;

// Step 1 holds 64, then 192 bytes; step 2 begins with 128 and ends with 1152.
TraceHistory two_steps() {
  TraceMaker trace;
  trace.step(1);
  const auto a = trace.allocate(64);
  trace.allocate(128);
  trace.free(a);
  trace.step(2);
  trace.allocate(1024);
  return make_trace_history(trace.file);
}

std::uint64_t live_at(const ExportedRun& run, const std::string& at) {
  std::uint64_t live = 0;
  run.for_each_before(run.end_at(at), [&](const BlockEvent& event) {
    live = event.is_birth ? live + event.block->size : live - event.block->size;
  });
  return live;
}

TEST(ExportedRun, KnowsTheBytesOfEveryMoment) {
  const TraceHistory history = two_steps();
  const ExportedRun run(history, "");
  EXPECT_EQ(run.peak_bytes(), 1152u);
  EXPECT_EQ(live_at(run, "peak"), 1152u);
  EXPECT_EQ(live_at(run, "step:1"), 0u);
  EXPECT_EQ(live_at(run, "step:2"), 128u);
  EXPECT_EQ(live_at(run, "end"), 1152u);
  EXPECT_EQ(live_at(run, "0.000003"), 192u);
}

TEST(ExportedRun, StartsWithWhatWasLiveBeforeItsFirstStep) {
  const TraceHistory history = two_steps();
  EXPECT_EQ(ExportedRun(history, "1:1").peak_bytes(), 192u);
  const ExportedRun second(history, "2:2");
  std::vector<std::uint64_t> births;
  second.for_each([&](const BlockEvent& event) { births.push_back(event.is_birth ? event.block->size : 0); });
  EXPECT_EQ(births, (std::vector<std::uint64_t>{128, 1024}));
}

std::string refused(const std::string& at, const std::string& steps = "") {
  const TraceHistory history = two_steps();
  try {
    ExportedRun(history, steps).end_at(at);
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(ExportedRun, RefusesMomentsThatDoNotExistAndNamesThoseThatDo) {
  for (const char* at : {"step:", "step:x", "soon", "-1", "nan"})
    EXPECT_THAT(refused(at), HasSubstr("is not a moment; use peak, end, step:N or seconds")) << at;
  EXPECT_THAT(refused("step:7"), HasSubstr("export: at \"step:7\" is not an exported step; use step:1 to step:2"));
  EXPECT_THAT(refused("step:1", "2:2"), HasSubstr("use step:2 to step:2"));
  EXPECT_THAT(refused("99"), HasSubstr("export: at \"99\" is outside of what is exported; use 0 to 6e-06 seconds"));
  EXPECT_THAT(refused("inf"), HasSubstr("is outside"));
}

TEST(ExportedRun, RefusesStepsThatDoNotExistAndNamesThoseThatDo) {
  for (const char* steps : {"x", "2:1", "-1:2", "1:", ":", "1:2:3"})
    EXPECT_THAT(refused("", steps), HasSubstr("are not A:B with A <= B")) << steps;
  for (const char* steps : {"3", "5:9", "0:0"})
    EXPECT_THAT(refused("", steps), HasSubstr("are not in the trace; it has 1:2")) << steps;
  EXPECT_EQ(refused("", "2:999"), "");
  const TraceHistory without = make_trace_history(TraceMaker().file);
  EXPECT_THROW(ExportedRun(without, "1:2"), InvalidArgument);
  EXPECT_THROW(ExportedRun(without, "").end_at("step:0"), InvalidArgument);
}

TEST(ExportTrace, KnowsWrongOptionsWithoutATrace) {
  for (const ExportOptions& options :
       {ExportOptions{.format = "massif"}, ExportOptions{.format = "pytorch", .at = "end"},
        ExportOptions{.format = "pprof", .at = "soon"}, ExportOptions{.steps = "2:1"}})
    EXPECT_THROW(check_export_options(options), InvalidArgument);
  check_export_options({.format = "pprof", .at = "step:99999", .steps = "1:2"});
  EXPECT_THROW(export_trace("no such trace", "out", {.steps = "2:1"}), InvalidArgument);
}

TEST(ExportTrace, RefusesUnknownFormatsAndMomentsOfWholeRuns) {
  const TraceHistory history = two_steps();
  const auto out = std::filesystem::path(::testing::TempDir()) / "export_trace_refused";
  EXPECT_THROW(export_trace(history, out, {.format = "massif"}), InvalidArgument);
  EXPECT_THROW(export_trace(history, out, {.format = "heaptrack", .at = "peak"}), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(ExportTrace, WritesHeaptracksLinesAndCompressesByName) {
  const TraceHistory history = two_steps();
  const auto plain = std::filesystem::path(::testing::TempDir()) / "export_trace.heaptrack";
  const auto packed = std::filesystem::path(::testing::TempDir()) / "export_trace.heaptrack.gz";
  const ExportResult result = export_trace(history, plain, {.format = "heaptrack"});
  EXPECT_EQ(result.allocations, 3u);
  EXPECT_EQ(result.peak_bytes, 1152u);
  const std::string text = read_file(plain, 1 << 20);
  EXPECT_EQ(text.size(), result.file_bytes);
  EXPECT_THAT(text, HasSubstr("a 400 1\n+ 2\n"));
  export_trace(history, packed, {.format = "heaptrack"});
  EXPECT_EQ(read_file(packed, 1 << 20).substr(0, 2), "\x1f\x8b");
  std::filesystem::remove(plain);
  std::filesystem::remove(packed);
}

}  // namespace
}  // namespace plimsoll
