#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/cli/replay/plan_compare.h"
#include "plimsoll/cli/replay/plan_report.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

class PlanCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("plimsoll_plan_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(path("in.csv")) << "id,lower,upper,size\na,0,2,64\nb,1,3,32\nc,2,4,64\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plan");
    const CliResult result = run_cli(arguments);
    out_ = result.out;
    err_ = result.errors;
    return result.code;
  }

  std::filesystem::path folder_;
  std::string out_, err_;
};

TEST_F(PlanCommand, PrintsPeakBoundAndProof) {
  EXPECT_EQ(run({path("in.csv")}), 0);
  EXPECT_THAT(out_, HasSubstr("buffers      3\n"));
  EXPECT_THAT(out_, HasSubstr("peak         96 bytes\n"));
  EXPECT_THAT(out_, HasSubstr("lower bound  96 bytes\n"));
  EXPECT_THAT(out_, HasSubstr("proof        optimal"));
}

TEST_F(PlanCommand, PrintsOneJsonDocument) {
  EXPECT_EQ(run({path("in.csv"), "--json", "--capacity", "1KiB"}), 0);
  const auto json = parse_json(out_);
  EXPECT_EQ(json["buffers"], 3);
  EXPECT_EQ(json["peak"], 96);
  EXPECT_EQ(json["lower_bound"], 96);
  EXPECT_EQ(json["proof"], "optimal");
  EXPECT_EQ(json["capacity"], 1024);
  EXPECT_TRUE(json["seconds"].is_number());
}

TEST_F(PlanCommand, EndsWithThreeAndTheBoundWhenItCannotFit) {
  EXPECT_EQ(run({path("in.csv"), "--capacity", "95"}), 3);
  EXPECT_THAT(out_, HasSubstr("infeasible: at least 96 B are needed, 1 B more than the capacity"));
  EXPECT_EQ(run({path("in.csv"), "--capacity", "95", "--json"}), 3);
  EXPECT_EQ(parse_json(out_)["proof"], "infeasible");
}

TEST_F(PlanCommand, NamesLineAndColumnOfAFaultAndEndsWithOne) {
  std::ofstream(path("bad.csv")) << "id,lower,upper,size\na,0,2,big\n";
  EXPECT_EQ(run({path("bad.csv")}), 1);
  EXPECT_THAT(err_, HasSubstr("bad.csv:2:7: size \"big\" is not a whole number"));
  EXPECT_EQ(out_, "");
  EXPECT_EQ(run({path("none.csv")}), 1);
  EXPECT_EQ(run({}), 2);
}

TEST_F(PlanCommand, EndsWith2ForArgumentsItCannotRead) {
  EXPECT_EQ(run({path("in.csv"), "--time", "soon"}), 2);
  EXPECT_EQ(run({path("in.csv"), "--capacity", "a lot"}), 2);
}

TEST_F(PlanCommand, WritesAPlanThatIsValidAndTheSameEachTime) {
  EXPECT_EQ(run({path("in.csv"), "--out", path("one.csv"), "--svg", path("one.svg")}), 0);
  EXPECT_EQ(run({path("in.csv"), "--out", path("two.csv")}), 0);
  const Lifetimes one = read_lifetimes(path("one.csv"));
  EXPECT_EQ(validate_plan(one.buffers, one.offsets, {.capacity = 96}), "");
  EXPECT_EQ(format_lifetimes(one), format_lifetimes(read_lifetimes(path("two.csv"))));
  EXPECT_GT(std::filesystem::file_size(path("one.svg")), 500u);
  EXPECT_EQ(run({path("in.csv"), "--out", path("no/such/folder.csv")}), 1);
}

TEST_F(PlanCommand, SaysWhatChangedAgainstAnOlderPlan) {
  EXPECT_EQ(run({path("in.csv"), "--out", path("old.csv")}), 0);
  std::ofstream(path("in.csv")) << "id,lower,upper,size\na,0,2,64\nb,1,3,48\nd,2,4,64\n";
  EXPECT_EQ(run({path("in.csv"), "--compare", path("old.csv")}), 0);
  EXPECT_THAT(out_, HasSubstr("peak         96 bytes before, 112 bytes now (+16.67 %)"));
  EXPECT_THAT(out_, HasSubstr("added        1: d\n"));
  EXPECT_THAT(out_, HasSubstr("removed      1: c\n"));
  EXPECT_THAT(out_, HasSubstr("resized      1: b\n"));
  EXPECT_EQ(run({path("in.csv"), "--compare", path("in.csv")}), 1);
  EXPECT_THAT(err_, HasSubstr("no offset column"));
  std::ofstream(path("old.csv")) << "id,lower,upper,size,offset\na,0,2,64,0\nb,1,3,48,32\n";
  EXPECT_EQ(run({path("in.csv"), "--compare", path("old.csv")}), 1);
  EXPECT_THAT(err_, HasSubstr("no valid plan"));
}

TEST_F(PlanCommand, NeedsAThread) {
  EXPECT_EQ(run({path("in.csv"), "--threads", "0"}), 2);
  EXPECT_EQ(run({path("in.csv"), "--threads", "1"}), 0);
}

TEST(ParseSeconds, ReadsUnits) {
  EXPECT_DOUBLE_EQ(parse_seconds("10s"), 10);
  EXPECT_DOUBLE_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_seconds("2min"), 120);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5"), 1.5);
  for (const char* text : {"", "s", "-1s", "1h", "nan"}) EXPECT_THROW(parse_seconds(text), InvalidArgument) << text;
}

}  // namespace
}  // namespace plimsoll
