#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/layers/core_layers.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

class ForecastCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/plimsoll_forecast_command_" + std::to_string(getpid());
    Sequential model(
        {layers::Dense(32, {.activation = "relu", .input_shape = {8}, .seed = 1}), layers::Dense(1, {.seed = 2})});
    save_layers_model(model, folder_);
    path_ = folder_ + "/model.json";
    model.compile({.optimizer = "adam", .loss = "mse"});
    forecast_ = model.forecast({.batch_size = 16});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"forecast", path_});
    const CliResult result = run_cli(arguments);
    out_ = result.out;
    errors_ = result.errors;
    return result.code;
  }

  std::string folder_, path_, out_, errors_;
  MemoryForecast forecast_;
};

TEST_F(ForecastCommand, PrintsOneJsonDocument) {
  ASSERT_EQ(run({"--batch", "16", "--optimizer", "adam", "--json"}), 0);
  const auto json = parse_json(out_);
  EXPECT_EQ(json["peak_bytes"], forecast_.peak_bytes);
  EXPECT_EQ(json["smallest_budget_bytes"], forecast_.smallest_budget);
  EXPECT_EQ(json["lower_bound_bytes"], forecast_.lower_bound_bytes);
  EXPECT_EQ(json["by_category"]["optimizer"], forecast_.by_category.at("optimizer"));
  EXPECT_EQ(json["fits"], true);
  EXPECT_GT(json["max_batch_size"].get<std::size_t>(), 1000u);
}

TEST_F(ForecastCommand, EndsWith3WhenItDoesNotFit) {
  EXPECT_EQ(run({"--batch", "16", "--budget", std::to_string(forecast_.smallest_budget), "--json"}), 0);
  EXPECT_EQ(parse_json(out_)["max_batch_size"], 16);
  EXPECT_EQ(run({"--batch", "16", "--budget", std::to_string(forecast_.smallest_budget - 1), "--json"}), 3);
  const auto json = parse_json(out_);
  EXPECT_EQ(json["fits"], false);
  EXPECT_LT(json["max_batch_size"].get<std::size_t>(), 16u);
}

TEST_F(ForecastCommand, PrintsATable) {
  ASSERT_EQ(run({"--batch", "16", "--optimizer", "sgd", "--budget", "1MiB"}), 0);
  EXPECT_THAT(out_, HasSubstr("parameters"));
  EXPECT_THAT(out_, HasSubstr("smallest budget"));
  EXPECT_THAT(out_, HasSubstr("fit 1MiB"));
}

TEST_F(ForecastCommand, RefusesWrongUse) {
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"--batch", "0"}), 2);
  EXPECT_THAT(errors_, HasSubstr("give a whole number, 1 or more"));
  EXPECT_LT(errors_.size(), 200u);
  EXPECT_EQ(run({"--batch", "4", "--optimizer", "guess"}), 2);
  EXPECT_EQ(run({"--batch", "4", "--loss", "guess"}), 2);
  EXPECT_EQ(run({"--batch", "4", "--metrics", "guess"}), 2);
  EXPECT_EQ(run({"--batch", "4", "--budget", "much"}), 2);
  EXPECT_EQ(run({"--batch", "4", "--learning-rate", "-1"}), 2);
  path_ = folder_ + "/absent.json";
  EXPECT_EQ(run({"--batch", "4"}), 1);
}

}  // namespace
}  // namespace plimsoll
