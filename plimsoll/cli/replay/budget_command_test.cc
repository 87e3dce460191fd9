#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/cli/replay/budget_run.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

const std::string kTransformer = TEST_DATA "/oplogs/transformer_6x256_b8.csv.gz";
const std::string kResnet = TEST_DATA "/oplogs/resnet18_train.csv.gz";

nlohmann::json budget(std::vector<std::string> arguments, int code = 0) {
  arguments.insert(arguments.begin(), "budget");
  arguments.push_back("--json");
  const CliResult result = run_cli(arguments);
  EXPECT_EQ(result.code, code) << result.errors;
  return parse_json(result.out);
}

TEST(BudgetCommand, PrintsOneJsonDocument) {
  const auto json = budget({kResnet, "--slack", "0.5"});
  EXPECT_EQ(json["trace"], "resnet18_train.csv.gz");
  EXPECT_EQ(json["completed"], true);
  EXPECT_EQ(json["floor_bytes"], 247852996);
  EXPECT_EQ(json["budget_bytes"], 247852996 + (308932040 - 247852996) / 2);
  EXPECT_LE(json["peak_bytes"], json["budget_bytes"]);
  EXPECT_GT(json["recompute_us"], 0);
  EXPECT_EQ(json["stall_us"], 0);
  EXPECT_EQ(json["spilled_bytes"], 0);
  EXPECT_GT(json["evictions"], 0);
  const double base = json["base_us"], again = json["recompute_us"];
  EXPECT_DOUBLE_EQ(json["slowdown"], (base + again) / base);
  EXPECT_LE(json["slowdown"], 1.03);
  EXPECT_LE(json["lower_bound_us"], json["recompute_us"]);
}

TEST(BudgetCommand, RecomputesLessThanItsTargetOnTrainingSteps) {
  EXPECT_LE(budget({kResnet, "--slack", "0.3"})["slowdown"], 1.06);
  EXPECT_LE(budget({kTransformer, "--slack", "0.5"})["slowdown"], 1.15);
  EXPECT_LE(budget({TEST_DATA "/oplogs/mlp_24x256_b1024.csv.gz", "--slack", "0.5"})["slowdown"], 1.20);
  EXPECT_EQ(budget({TEST_DATA "/oplogs/mlp_mnist_train.csv.gz", "--slack", "0"})["slowdown"], 1.0);  // Peak = floor.
}

TEST(BudgetCommand, ALargerBudgetIsNotMuchSlower) {
  double before = 100;
  for (const char* slack : {"0.2", "0.4", "0.6", "0.8", "1"}) {
    const double slowdown = budget({kTransformer, "--slack", slack})["slowdown"];
    EXPECT_LE(slowdown, before + 0.005) << slack;
    before = slowdown;
  }
  EXPECT_EQ(before, 1.0);
}

TEST(BudgetCommand, EndsWithThreeBelowTheFloor) {
  const auto json = budget({kResnet, "--budget", "247852995"}, 3);
  EXPECT_EQ(json["completed"], false);
  EXPECT_TRUE(json["slowdown"].is_null());
  const CliResult result = run_cli({"budget", kResnet, "--budget", "100MiB"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.out, HasSubstr("no schedule in this order needs less"));
}

TEST(BudgetCommand, SpillsBelowTheRecomputeFloor) {
  const auto json = budget({kTransformer, "--slack", "0.1", "--spill", "1500MB"});
  EXPECT_EQ(json["floor_bytes"], json["spill_floor_bytes"]);
  EXPECT_LT(json["budget_bytes"], json["recompute_floor_bytes"]);
  EXPECT_GT(json["spilled_bytes"], 0);
  EXPECT_LE(json["slowdown"], 1.8);
  const double fast = budget({kTransformer, "--slack", "0.3", "--spill", "12GB"})["slowdown"];
  const double slow = budget({kTransformer, "--slack", "0.3", "--spill", "150MB"})["slowdown"];
  EXPECT_LT(fast, slow);
}

TEST(BudgetCommand, ComparesPolicies) {
  const double planned = budget({kResnet, "--slack", "0.3"})["slowdown"];
  for (const char* policy : {"online", "dtr", "lru"}) {
    const auto json = budget({kResnet, "--slack", "0.3", "--policy", policy});
    EXPECT_EQ(json["policy"], policy);
    EXPECT_GE(json["slowdown"], planned);
  }
}

TEST(BudgetCommand, PrintsATable) {
  const CliResult result = run_cli({"budget", kTransformer, "--slack", "0.5"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("natural peak   113.5 MiB (119050304 bytes)\n"));
  EXPECT_THAT(result.out, HasSubstr("made by operator"));
  EXPECT_THAT(result.out, HasSubstr("slowdown       1."));
  EXPECT_THAT(result.out, HasSubstr("at least       1."));
}

TEST(BudgetCommand, RefusesWrongUsageWithTwo) {
  EXPECT_EQ(run_cli({"budget", kResnet}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--budget", "1GiB", "--slack", "0.5"}).code, 2);
  EXPECT_EQ(run_cli({"budget", "--slack", "0.5"}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--slack", "1.5"}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--slack", "nan"}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--slack", "-0.5"}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--slack", "x"}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--budget", "many"}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--slack", "0.5", "--policy", "best"}).code, 2);
  EXPECT_EQ(run_cli({"budget", kResnet, "--slack", "0.5", "--spill", "0"}).code, 2);
}

TEST(BudgetCommand, NamesTheLineOfAFaultAndEndsWithOne) {
  const auto path = std::filesystem::temp_directory_path() / ("plimsoll_budget_" + std::to_string(getpid()) + ".csv");
  std::ofstream(path) << "a,1,10\n# op x.f in=1 out=1 us=-3\n";
  const CliResult result = run_cli({"budget", path.string(), "--slack", "0.5"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, HasSubstr("line 2: time \"-3\" is not a number of microseconds"));
  EXPECT_EQ(result.out, "");
  std::filesystem::remove(path);
  EXPECT_EQ(run_cli({"budget", path.string(), "--slack", "0.5"}).code, 1);
}

// The logs of the DTR authors: fetched, never part of the project.
TEST(BudgetCommand, ReachesItsTargetsOnPublicLogs) {
  const std::filesystem::path folder = SHARED_DATA "/fetched/dtr";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no public operator logs in " << folder;
  for (const auto& [share, median, worst] : {std::tuple{0.5, 1.10, 1.20}, std::tuple{0.3, 1.17, 1.40}}) {
    std::vector<double> slowdowns;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const OperatorLog log = read_operator_log(file.path().string());
      const BudgetRun run =
          run_budget(log, {.limit = static_cast<std::size_t>(share * static_cast<double>(log.peak_bytes))});
      EXPECT_TRUE(run.completed) << file.path() << " at " << share;
      slowdowns.push_back(run.slowdown());
    }
    ASSERT_EQ(slowdowns.size(), 8u);
    std::sort(slowdowns.begin(), slowdowns.end());
    EXPECT_LE((slowdowns[3] + slowdowns[4]) / 2, median) << share;
    EXPECT_LE(slowdowns.back(), worst) << share;
  }
}

}  // namespace
}  // namespace plimsoll
