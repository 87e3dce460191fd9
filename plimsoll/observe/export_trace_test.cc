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

TEST(ExportedRun, RefusesMomentsAndStepsThatDoNotExist) {
  const TraceHistory history = two_steps();
  for (const char* steps : {"x", "3", "2:1", "5:9", "-1:2", "1:"})
    EXPECT_THROW(ExportedRun(history, steps), InvalidArgument);
  const ExportedRun run(history, "");
  for (const char* at : {"step:7", "step:", "soon", "99", "-1", "nan"})
    EXPECT_THROW(run.end_at(at), InvalidArgument) << at;
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
