#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/cli/train/demo_series.h"
#include "plimsoll/device/config.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;

class DemoCommand : public testing::Test {
 protected:
  ~DemoCommand() override { std::filesystem::remove_all(folder_); }

  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"demo", "--out", folder_, "--epochs", "1"});
    const CliResult result = run_cli(arguments);
    out_ = result.out;
    error_ = result.errors;
    return result.code;
  }

  const std::string folder_ = testing::TempDir() + "/plimsoll_demo_" + std::to_string(getpid());
  std::string out_, error_;
};

TEST(HarbourLevels, AreTheSameEveryTimeAndLookLikeTides) {
  const std::vector<float> levels = harbour_levels(1000);
  EXPECT_EQ(levels, harbour_levels(1000));
  for (const float level : levels) EXPECT_LT(std::abs(level), 2.1f);
  EXPECT_NEAR(levels[100], levels[125], 0.6);  // Two tides later.
}

TEST_F(DemoCommand, TrainsInsideItsBudgetAndLeavesItsFiles) {
  ASSERT_EQ(run({"--json"}), 0) << error_;
  const auto json = parse_json(out_);
  EXPECT_EQ(json["epochs"], 1);
  EXPECT_LE(json["peak_bytes"].get<std::size_t>(), json["budget_bytes"].get<std::size_t>());
  EXPECT_GT(json["peak_bytes"].get<std::size_t>(), 1u << 20);
  EXPECT_TRUE(std::filesystem::exists(json["trace"].get<std::string>()));
  EXPECT_TRUE(std::filesystem::exists(json["logs"].get<std::string>()));
  EXPECT_TRUE(std::filesystem::exists(json["checkpoint"].get<std::string>() + ".index")) << json["checkpoint"];
  EXPECT_EQ(has_report_page(), std::filesystem::exists(json["report"].get<std::string>()));
}

TEST_F(DemoCommand, TellsItsStoryWithoutColoursWhereNobodyLooks) {
  ASSERT_EQ(run({}), 0) << error_;
  std::smatch epoch, last;  // Both say the same.
  ASSERT_TRUE(std::regex_search(out_, epoch, std::regex(", peak ([0-9.]+)\n"))) << out_;
  ASSERT_TRUE(std::regex_search(out_, last, std::regex("real peak +([0-9.]+) MiB"))) << out_;
  EXPECT_EQ(epoch[1], last[1]);
  EXPECT_THAT(out_, HasSubstr("s per epoch"));
  EXPECT_THAT(out_, HasSubstr("tensorboard --logdir"));
  EXPECT_EQ(out_.find('\033'), std::string::npos);
}

TEST_F(DemoCommand, ARefusalIsTheFirstThatDoctorAndReportSay) {
  ASSERT_EQ(run({"--budget", "300KiB"}), 3);  // Not even the weights fit.
  const CliResult early = run_cli({"doctor", folder_ + "/run.trace"});
  std::smatch advice;  // The doctor advises what the program did.
  ASSERT_TRUE(std::regex_search(error_, advice, std::regex("give that budget ([0-9]+) bytes"))) << error_;
  EXPECT_THAT(early.out, HasSubstr("(" + advice[1].str() + " bytes)"));
  EXPECT_THAT(early.out, HasSubstr("\n\nproblem: Budget \"demo\" refused a request for "));
  EXPECT_THAT(early.out, Not(HasSubstr("still fit")));
  ASSERT_EQ(run({"--budget", "1MiB"}), 3);  // By the plan of a step.
  ASSERT_THAT(error_, HasSubstr("budget \"demo\" of 1.0 MiB"));
  const CliResult told = run_cli({"doctor", folder_ + "/run.trace"});
  EXPECT_EQ(told.code, 0);
  EXPECT_THAT(told.out, HasSubstr("\n\nproblem: Budget \"demo\" refused a request for "));
  EXPECT_THAT(told.out, HasSubstr("a batch of about "));
  EXPECT_THAT(told.out, Not(HasSubstr("othing was refused")));
  EXPECT_THAT(told.out, Not(HasSubstr("still fit")));
  const auto json = parse_json(run_cli({"doctor", folder_ + "/run.trace", "--json"}).out);
  EXPECT_EQ(json["refusals"], 1);
  EXPECT_EQ(json["findings"][0]["kind"], "refused");
  EXPECT_EQ(json["findings"][0]["level"], "problem");
  EXPECT_EQ(has_report_page(), std::filesystem::exists(folder_ + "/report.html"));
}

TEST_F(DemoCommand, EndsWith3WhenTheBudgetIsTooSmall) {
  EXPECT_EQ(run({"--budget", "1MiB", "--json"}), 3);
  EXPECT_THAT(error_, HasSubstr("budget \"demo\" of 1.0 MiB"));
  const auto json = parse_json(out_);
  EXPECT_EQ(json["error"]["kind"], "out_of_memory");
  EXPECT_THAT(error_, HasSubstr(json["error"]["message"].get<std::string>()));
  EXPECT_GT(json["error"]["smallest_sufficient_bytes"].get<std::size_t>(), 1u << 20);
  EXPECT_EQ(run({"--budget", "nothing"}), 2);
  EXPECT_EQ(run({"--budget", "1"}), 2);
}

TEST_F(DemoCommand, WritesItsTraceAndReportWhenItIsInterrupted) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::freopen("/dev/null", "w", stdout);
    ::freopen("/dev/null", "w", stderr);
    const char* arguments[] = {"plimsoll", "demo", "--epochs", "1000", "--out", folder_.c_str()};
    ::_exit(run_program(6, arguments));
  }
  const auto has_begun = [&] {
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_ + "/checkpoints", none))
      if (file.path().extension() == ".index") return true;
    return false;
  };
  for (int i = 0; i < 4000 && !has_begun(); ++i) ::usleep(5000);
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
  EXPECT_EQ(run_cli({"doctor", folder_ + "/run.trace"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run.trace.partial"));
  EXPECT_EQ(has_report_page(), std::filesystem::exists(folder_ + "/report.html"));
}

TEST_F(DemoCommand, AdvisesTheSmallestBudgetAtOnce) {
  config::list_logical_devices("CPU");  // Starts the devices; else the first budget would become their limit.
  const auto advised = [&](const std::string& budget) {
    EXPECT_EQ(run({"--budget", budget, "--json"}), 3) << budget;
    const std::size_t at = error_.find("give that budget ");
    EXPECT_NE(at, std::string::npos) << error_;
    return std::stoull(error_.substr(at + 17));
  };
  const auto enough = advised("100KiB");
  EXPECT_EQ(advised("300KiB"), enough);
  EXPECT_EQ(advised("2MiB"), enough);
  EXPECT_EQ(advised(std::to_string(enough - 1)), enough);
  EXPECT_EQ(run({"--budget", std::to_string(enough), "--json"}), 0) << error_;
}

}  // namespace
}  // namespace plimsoll
