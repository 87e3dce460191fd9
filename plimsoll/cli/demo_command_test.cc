#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.h"
#include "plimsoll/cli/replay_synthetic.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

int run(std::vector<const char*> arguments, std::string& out) {
  arguments.insert(arguments.begin(), "plimsoll");
  testing::internal::CaptureStdout();
  const int code = run_program(static_cast<int>(arguments.size()), arguments.data());
  out = testing::internal::GetCapturedStdout();
  return code;
}

TEST(SyntheticTraining, IsTheSameEveryTimeAndFreesEverything) {
  const std::string text = synthetic_training({});
  EXPECT_EQ(text, synthetic_training({}));
  EXPECT_NE(text, synthetic_training({.seed = 8}));
  const Trace trace = parse_trace("demo", text);
  EXPECT_EQ(trace.never_freed, 0u);
  EXPECT_GT(trace.allocations, 1000u);
}

TEST(DemoCommand, FitsItsBudgetWhereTensorFlowsPolicyDoesNot) {
  std::string out;
  ASSERT_EQ(run({"demo", "--json"}, out), 0);
  const auto json = nlohmann::json::parse(out);
  EXPECT_EQ(json["arena"]["refusals"], 0);
  EXPECT_GT(json["bfc"]["refusals"].get<int>(), 0);
  EXPECT_LE(json["arena"]["peak_reserved"].get<std::size_t>(), json["budget_bytes"].get<std::size_t>());
  EXPECT_LT(json["peak_bytes"].get<std::size_t>(), json["budget_bytes"].get<std::size_t>());
}

TEST(DemoCommand, ShowsBothPoliciesAndLeavesTheTraceWhereAsked) {
  const std::string folder = testing::TempDir() + "/plimsoll_demo_out";
  std::string out;
  EXPECT_EQ(run({"demo", "--out", folder.c_str()}, out), 0);
  EXPECT_THAT(out, HasSubstr("TensorFlow's policy"));
  EXPECT_THAT(out, HasSubstr("####"));
  EXPECT_GT(read_trace(folder + "/demo.csv").allocations, 1000u);
  std::filesystem::remove_all(folder);
}

TEST(DemoCommand, EndsWith3WhenTheBudgetIsTooSmall) {
  std::string out;
  EXPECT_EQ(run({"demo", "--budget", "8MiB", "--json"}, out), 3);
  EXPECT_EQ(run({"demo", "--budget", "nothing"}, out), 2);
}

}  // namespace
}  // namespace plimsoll
