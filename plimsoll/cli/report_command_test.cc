#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/observe/report_page.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;

// Runs the program on traces of small programs.
class ReportCommand : public testing::Test {
 protected:
  ReportCommand() { std::filesystem::create_directories(folder_); }
  ~ReportCommand() override { std::filesystem::remove_all(folder_); }

  int run(const std::vector<std::string>& arguments) {
    const CliResult result = run_cli(arguments);
    out_ = result.out;
    error_ = result.errors;
    return result.code;
  }
  // Twenty steps of it.
  template <class F>
  void record(F&& step) {
    TraceRecorder recorder({.path = trace_});
    for (std::uint64_t i = 0; i < 20; ++i) {
      trace_step(i);
      step(i);
    }
    recorder.finish();
  }
  std::vector<std::string> kinds() {
    EXPECT_EQ(run({"doctor", trace_, "--json"}), 0) << error_;
    std::vector<std::string> result;
    const auto json = parse_json(out_);
    for (const auto& finding : json["findings"]) result.push_back(finding["kind"]);
    return result;
  }

  const std::string folder_ = testing::TempDir() + "/plimsoll_report_" + std::to_string(getpid());
  const std::string trace_ = folder_ + "/run.trace";
  std::string out_, error_;
};

TEST_F(ReportCommand, WritesAPageWhoseNumbersItCanPrint) {
  record([](std::uint64_t) { ones({1000}) + 1.f; });
  if (has_report_page()) {
    ASSERT_EQ(run({"report", trace_, "-o", folder_ + "/page.html"}), 0) << error_;
    EXPECT_THAT(out_, HasSubstr("page.html: "));
    EXPECT_GT(std::filesystem::file_size(folder_ + "/page.html"), 50'000u);
    ASSERT_EQ(run({"report", trace_}), 0);
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/run.html"));
  }
  ASSERT_EQ(run({"report", trace_, "--json"}), 0);
  const auto json = parse_json(out_);
  EXPECT_EQ(json["steps"], 20);
  EXPECT_GE(json["peak_bytes"], 4000);
}

TEST_F(ReportCommand, PutsTheRanksOfAJobOnOnePage) {
  record([](std::uint64_t) { ones({1000}) + 1.f; });
  const std::string other = folder_ + "/run.rank1.trace";
  std::filesystem::copy_file(trace_, other);
  if (has_report_page()) {
    ASSERT_EQ(run({"report", trace_, other, "-o", folder_ + "/page.html"}), 0) << error_;
    EXPECT_THAT(out_, HasSubstr("2 ranks"));
    std::ifstream file(folder_ + "/page.html");
    const std::string page(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(page, HasSubstr("1: run.rank1.trace"));
  }
  ASSERT_EQ(run({"report", trace_, other, "--json"}), 0);
  EXPECT_EQ(parse_json(out_)["ranks"].size(), 2u);
  EXPECT_NE(run({"report", trace_, folder_ + "/missing.trace"}), 0);
}

TEST_F(ReportCommand, FindsNothingInACleanLoop) {
  record([](std::uint64_t) { ones({1000}) + 1.f; });
  ASSERT_EQ(run({"doctor", trace_}), 0);
  EXPECT_THAT(out_, HasSubstr("Nothing grows from step to step"));
  EXPECT_THAT(out_, Not(HasSubstr("\033")));
}

TEST_F(ReportCommand, NamesAListOfLosses) {
  std::vector<Tensor> losses;
  record([&](std::uint64_t) {
    const NameScope scope("my_loss");
    losses.push_back(square(ones({16})));
  });
  ASSERT_EQ(run({"doctor", trace_}), 0);
  EXPECT_THAT(out_, HasSubstr("in scope \"my_loss\""));
  EXPECT_THAT(out_, testing::StartsWith(trace_));
  EXPECT_THAT(kinds(), testing::Contains("growth"));
}

TEST_F(ReportCommand, NamesSessionsGraphsAndTapes) {
  Graph graph;
  std::vector<std::unique_ptr<Session>> sessions;
  std::unique_ptr<GradientTape> tape;
  record([&](std::uint64_t step) {
    if (step == 0) tape = std::make_unique<GradientTape>(TapeOptions{.persistent = true});
    const GraphScope inside(graph);
    if (step % 4 == 0) sessions.push_back(std::make_unique<Session>(graph));
    sessions.back()->run(constant(1.f) + static_cast<float>(step));
  });
  const std::vector<std::string> found = kinds();
  for (const char* kind : {"session never closed", "graph grows", "persistent tape"})
    EXPECT_THAT(found, testing::Contains(kind));
}

TEST_F(ReportCommand, ComparesTwoRuns) {
  record([](std::uint64_t) { ones({1000}) + 1.f; });
  const std::string before = folder_ + "/before.trace";
  std::filesystem::rename(trace_, before);
  record([](std::uint64_t) { ones({9000}) + 1.f; });
  ASSERT_EQ(run({"report", "--compare", before, trace_, "-o", folder_ + "/both.html"}), 0) << error_;
  EXPECT_THAT(out_, HasSubstr("before.trace"));
  EXPECT_THAT(out_, HasSubstr("+"));
  EXPECT_GT(std::filesystem::file_size(folder_ + "/both.html"), 1000u);
  ASSERT_EQ(run({"report", before, "--compare", trace_, "--json"}), 0) << error_;
  EXPECT_GE(parse_json(out_)["peak_change_bytes"], 32000);
  ASSERT_EQ(run({"report", "--compare", before, trace_, "--markdown"}), 0);
  EXPECT_THAT(out_, HasSubstr("|"));
  EXPECT_EQ(run({"report", "--compare", before}), 2);
  EXPECT_EQ(run({"report", before, "--markdown"}), 2);
}

TEST_F(ReportCommand, FailsABuildWhenAsked) {
  std::vector<Tensor> losses;
  record([&](std::uint64_t) { losses.push_back(square(ones({16}))); });
  EXPECT_EQ(run({"doctor", trace_, "--fail-on", "refusal,peak:1GiB"}), 0) << out_;
  EXPECT_EQ(run({"doctor", trace_, "--fail-on", "growth"}), 1);
  EXPECT_THAT(out_, HasSubstr("failed: growth: "));
  EXPECT_EQ(run({"doctor", trace_, "--fail-on", "leak"}), 1);
  EXPECT_EQ(run({"doctor", trace_, "--fail-on", "peak:1KiB", "--json"}), 1);
  EXPECT_THAT(std::string(parse_json(out_)["failed"][0]), testing::StartsWith("peak: "));
  EXPECT_EQ(run({"doctor", trace_, "--fail-on", "growth", "--markdown"}), 1);
  EXPECT_THAT(out_, HasSubstr("- **failed**: growth: "));
  for (const char* wrong : {"speed", "peak", "peak:", "peak:much", "growth,speed"}) {
    EXPECT_EQ(run({"doctor", trace_, "--fail-on", wrong}), 2) << wrong;
    EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1) << error_;
  }
  record([](std::uint64_t) { ones({1000}) + 1.f; });
  EXPECT_EQ(run({"doctor", trace_, "--fail-on", "growth,leak,refusal"}), 0) << out_;
}

TEST_F(ReportCommand, ReplaysAndInspectsARecordedTrace) {
  record([](std::uint64_t) { ones({1000}) + 1.f; });
  ASSERT_EQ(run({"replay", trace_, "--repeat", "1", "--json"}), 0) << error_;
  const auto replayed = parse_json(out_);
  const std::string csv = folder_ + "/run.csv";
  ASSERT_EQ(run({"replay", trace_, "--to-csv", csv}), 0) << error_;
  EXPECT_THAT(out_, HasSubstr("allocations"));
  ASSERT_EQ(run({"replay", csv, "--repeat", "1", "--json"}), 0) << error_;
  EXPECT_EQ(parse_json(out_)["peak_live"], replayed["peak_live"]);
  EXPECT_EQ(run({"replay", csv, "--to-csv", csv + "2"}), 2);
  ASSERT_EQ(run({"inspect", trace_}), 0) << error_;
  EXPECT_THAT(out_, HasSubstr("steps           20\n"));
  ASSERT_EQ(run({"inspect", trace_, "--json"}), 0);
  EXPECT_EQ(parse_json(out_)["kind"], "trace");
}

TEST_F(ReportCommand, SaysWhatIsWrongInOneLine) {
  EXPECT_EQ(run({"report", folder_ + "/none.trace"}), 1);
  EXPECT_THAT(error_, HasSubstr("none.trace"));
  EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1);
  std::ofstream(folder_ + "/text.trace") << "not a trace at all, but text that is long enough to be one";
  EXPECT_EQ(run({"doctor", folder_ + "/text.trace"}), 1);
  EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1) << error_;
  EXPECT_EQ(run({"doctor"}), 2);
  EXPECT_THAT(error_, HasSubstr("plimsoll doctor: TRACE is required; see plimsoll doctor --help"));
  EXPECT_EQ(run({"report", trace_, "--colour"}), 2);
  EXPECT_THAT(error_, HasSubstr("no option \"--colour\"; see plimsoll report --help"));
  EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1) << error_;
  EXPECT_EQ(run({"reprot", trace_}), 2);
  EXPECT_THAT(error_, HasSubstr("did you mean \"report\"?"));
  record([](std::uint64_t) {});
  EXPECT_EQ(run({"report", trace_, "-o", folder_ + "/no/such/folder/page.html"}), 1);
}

TEST_F(ReportCommand, WrongMomentsAndStepsAreFaultsOfTheCommandLine) {
  record([](std::uint64_t) { zeros({64}); });
  const std::string out = folder_ + "/run.pb";
  const auto refused = [&](const char* option, const char* value) {
    EXPECT_EQ(run({"export", trace_, "--format", "pprof", "-o", out, option, value}), 2) << option << " " << value;
    EXPECT_FALSE(std::filesystem::exists(out));
    return error_;
  };
  EXPECT_THAT(refused("--steps", "5:2"), HasSubstr("plimsoll export: --steps: \"5:2\" are not A:B with A <= B"));
  EXPECT_THAT(refused("--steps", "50:60"), HasSubstr("--steps: 50:60 are not in the trace; it has 0:19"));
  EXPECT_THAT(refused("--at", "step:99999"),
              HasSubstr("--at: \"step:99999\" is not an exported step; use step:0 to step:19"));
  EXPECT_THAT(refused("--at", "3600"), HasSubstr("--at: \"3600\" is outside of what is exported; use 0 to "));
  EXPECT_THAT(refused("--at", "soon"), HasSubstr("--at: \"soon\" is not a moment; use peak, end, step:N or seconds"));
  EXPECT_EQ(run({"export", trace_, "--format", "heaptrack", "-o", out, "--at", "end"}), 2);
  EXPECT_THAT(error_, HasSubstr("--at: \"end\" chooses a moment, and the format heaptrack shows the whole run"));
  EXPECT_EQ(run({"export", folder_ + "/none", "--format", "pprof", "-o", out}), 1);  // Data, not usage.
  EXPECT_EQ(run({"export", folder_ + "/none", "--format", "pprof", "-o", out, "--steps", "5:2"}), 2);
  EXPECT_EQ(run({"export", trace_, "--format", "pprof", "-o", out, "--steps", "18:99", "--at", "step:19"}), 0)
      << error_;
}

}  // namespace
}  // namespace plimsoll
