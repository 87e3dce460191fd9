// What a refusal of `plimsoll train` and `plimsoll predict` advises works at once, and a byte less does not.
#include <gmock/gmock.h>

#include "plimsoll/cli/train/train_command_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

class TrainBudget : public TrainCommand {
 protected:
  std::string table(int rows, int columns) const {
    std::string text = "date,";
    for (int c = 0; c < columns; ++c) text += "c" + std::to_string(c) + ",";
    text += "y\n";
    for (int i = 0; i < rows; ++i) {
      text += "2026-01-" + std::string(i % 28 < 9 ? "0" : "") + std::to_string(i % 28 + 1) + ",";
      for (int c = 0; c < columns; ++c) text += std::to_string(std::sin(i * (c + 1.3))) + ",";
      text += std::to_string(std::cos(i * 0.7)) + "\n";
    }
    return write("table.csv", text);
  }
  // 0 when it is not refused.
  static std::size_t advice(std::vector<std::string> command, std::size_t budget) {
    command.insert(command.end(), {"--budget", std::to_string(budget), "--json"});
    const CliResult result = run_cli(command);
    if (result.code == 0) return 0;
    EXPECT_EQ(result.code, 3) << result.errors;
    return parse_json(result.out)["error"]["smallest_sufficient_bytes"].get<std::size_t>();
  }
  static void expect_exact(const std::vector<std::string>& command) {
    SCOPED_TRACE(testing::PrintToString(command));
    const std::size_t enough = advice(command, 1024);
    ASSERT_GT(enough, 1024u);
    EXPECT_EQ(advice(command, enough), 0u);
    EXPECT_EQ(advice(command, enough - 1), enough);
  }
};

TEST_F(TrainBudget, IsExactForTablesThatAreStreamed) {
  for (const int rows : {8, 33, 50})
    for (const char* batch : {"16", "32"})
      for (const bool split : {false, true}) {
        std::vector<std::string> command = {"train",    "--data", table(rows, 3), "--ignore", "date", "--batch", batch,
                                            "--epochs", "1",      "--out",        path("out")};
        if (split) command.insert(command.end(), {"--validation-split", "0.25"});
        expect_exact(command);
      }
}

// The last batch of a pass recomputes less than a whole one, so that it may need more.
TEST_F(TrainBudget, IsExactForSeriesAndTheirLastBatch) {
  for (const int rows : {50, 90})
    for (const bool split : {false, true}) {
      std::vector<std::string> command = {"train",   "--data", table(rows, 5), "--ignore", "date",  "--look-back", "20",
                                          "--batch", "16",     "--epochs",     "1",        "--out", path("series")};
      if (split) command.insert(command.end(), {"--validation-split", "0.3"});
      expect_exact(command);
    }
}

TEST_F(TrainBudget, IsExactForPredictions) {
  const std::string data = table(90, 5);
  run({"train", "--data", data, "--ignore", "date", "--look-back", "20", "--epochs", "1", "--out", path("series")});
  expect_exact({"predict", path("series/model.json"), "--input", data, "--out", path("answers.csv")});
}

TEST_F(TrainBudget, NewModelsTakeNoMemory) {
  const std::string out = run({"new", path("huge.json"), "--inputs", "99999999", "--outputs", "99999999"});
  EXPECT_THAT(out, HasSubstr("12900004095 parameters"));
}

}  // namespace
}  // namespace plimsoll
