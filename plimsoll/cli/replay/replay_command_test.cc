#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/json.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/cli/cli_testing.h"

namespace plimsoll::internal {
namespace {

using testing::HasSubstr;

constexpr const char* kMlp = TEST_DATA "/traces/mlp_mnist_train.csv.gz";

TEST(ReplayCommand, PrintsOneJsonDocumentAndNothingElse) {
  const CliResult result = run_cli({"replay", kMlp, "--policy", "bfc", "--growth", "--json", "--repeat", "2"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.errors, "");
  const auto json = parse_json(result.out);
  EXPECT_EQ(json["trace"], "mlp_mnist_train.csv.gz");
  EXPECT_EQ(json["policy"], "bfc");
  EXPECT_EQ(json["ops"], 4208);
  EXPECT_EQ(json["peak_live"], 12186824);
  EXPECT_EQ(json["peak_reserved"], 30 << 20);
  EXPECT_EQ(json["refusals"], 0);
  EXPECT_GT(json["ns_per_op"].get<double>(), 0);
  EXPECT_LE(json["ns_per_op"].get<double>(), json["ns_per_op_mean"].get<double>());
  EXPECT_GT(json["limit"].get<std::size_t>(), 0u);
}

TEST(ReplayCommand, EndsSoonWhenARequestIsLargerThanAllAddresses) {
  if (kSanitized) GTEST_SKIP() << "without a limit the arena reserves more addresses than a sanitizer leaves";
  const auto path = std::filesystem::temp_directory_path() / "plimsoll_replay_huge.csv";
  std::ofstream(path) << "a,1,100000000000000\nf,1\n";
  const CliResult result = run_cli({"replay", path.string(), "--repeat", "1"});
  std::filesystem::remove(path);
  EXPECT_NE(result.code, 2);
  EXPECT_THAT(result.out + result.errors, HasSubstr("90.9 TiB"));
}

TEST(ReplayCommand, EndsWith3AfterARefusalAndCountsIt) {
  const CliResult result = run_cli({"replay", kMlp, "--policy", "bfc", "--limit", "13MiB", "--json", "--repeat", "1"});
  EXPECT_EQ(result.code, 3);
  const auto json = parse_json(result.out);
  EXPECT_GT(json["refusals"].get<int>(), 0);
  EXPECT_EQ(json["limit"], 13 << 20);
  EXPECT_LE(json["peak_reserved"].get<std::size_t>(), std::size_t{13} << 20);
}

TEST(ReplayCommand, ShowsATableAndThePictureOfMemory) {
  const CliResult result = run_cli({"replay", kMlp, "--policy", "bfc", "--limit", "24MiB", "--touch", "--repeat", "1"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.out, HasSubstr("peak live"));
  EXPECT_THAT(result.out, HasSubstr("11.6 MiB"));
  EXPECT_THAT(result.out, HasSubstr("time per operation"));
  EXPECT_THAT(result.out, HasSubstr("####"));
  EXPECT_THAT(result.out, HasSubstr("# used   x rounding"));
}

TEST(ReplayCommand, ComparesTheArenaWithTensorFlowsPolicy) {
  const CliResult result = run_cli({"replay", kMlp, "--limit", "12700000", "--repeat", "1"});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.out, HasSubstr("pages moved"));
  EXPECT_THAT(result.out, HasSubstr("The same trace under TensorFlow's policy would reserve 30.0 MiB (2.581 x live)"));
  EXPECT_THAT(result.out, HasSubstr("needs a fixed pool of at least 13.9 MiB"));
}

TEST(ReplayCommand, EndsWith1AndTheLineOfAMalformedTrace) {
  const std::string path = testing::TempDir() + "/replay_command_bad.csv";
  std::ofstream(path) << "a,1,5\nf,2\n";
  const CliResult result = run_cli({"replay", path, "--policy", "bfc", "--json"});
  std::filesystem::remove(path);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("\"kind\": \"corruption\""));
  EXPECT_THAT(result.errors, HasSubstr("replay_command_bad.csv\": line 2: free of id 2, which is not live"));
}

TEST(ReplayCommand, EndsWith1WhenThereIsNoSuchFile) {
  const CliResult result = run_cli({"replay", "/nonexistent.csv"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.errors, HasSubstr("cannot be opened"));
}

TEST(ReplayCommand, EndsWith2ForWrongUsage) {
  EXPECT_EQ(run_cli({"replay"}).code, 2);
  EXPECT_EQ(run_cli({"replay", kMlp, "--policy", "slab"}).code, 2);
  EXPECT_EQ(run_cli({"replay", kMlp, "--limit", "much"}).code, 2);
  EXPECT_EQ(run_cli({"replay", kMlp, "--limit", "0"}).code, 2);
  EXPECT_EQ(run_cli({"replay", kMlp, "--limit", "1"}).code, 2);
  EXPECT_EQ(run_cli({"replay", kMlp, "--repeat", "0"}).code, 2);
  EXPECT_EQ(run_cli({"replay", kMlp, "--unknown"}).code, 2);
}

TEST(ReplayCommand, TeachesInItsHelp) {
  const CliResult result = run_cli({"replay", "--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("peak reserved  most bytes taken from the system"));
  EXPECT_THAT(result.out, HasSubstr("--limit 300MiB"));
}

TEST(ReplayCommand, ReplaysAnEmptyTrace) {
  const std::string path = testing::TempDir() + "/replay_command_empty.csv";
  std::ofstream(path) << "# nothing\n";
  const CliResult result = run_cli({"replay", path, "--policy", "bfc", "--json"});
  std::filesystem::remove(path);
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_EQ(parse_json(result.out)["peak_reserved"], 0);
}

}  // namespace
}  // namespace plimsoll::internal
