#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/atomic_file.h"
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

TEST_F(ForecastCommand, TellsWhatBudgetsBelowThePeakCost) {
  Sequential deep;
  for (std::uint64_t i = 0; i < 8; ++i)
    deep.add(layers::Dense(16, {.activation = "tanh", .input_shape = {16}, .seed = i + 1}));
  save_layers_model(deep, folder_ + "/deep");
  path_ = folder_ + "/deep/model.json";
  ASSERT_EQ(run({"--batch", "64", "--loss", "mean_squared_error", "--json", "--svg", folder_ + "/front.svg"}), 0);
  const auto json = parse_json(out_);
  ASSERT_GT(json["front"].size(), 1u);
  EXPECT_EQ(json["front"][0]["bytes"], json["peak_bytes"]);
  EXPECT_EQ(json["front"][0]["slowdown"], 1);
  EXPECT_EQ(json["front"].back()["bytes"], json["smallest_budget_bytes"]);
  EXPECT_GT(json["front"].back()["slowdown"], 1);
  EXPECT_LE(json["floor_bytes"], json["smallest_budget_bytes"]);
  EXPECT_FALSE(json["floor_step"].get<std::string>().empty());
  const std::string picture = read_file(folder_ + "/front.svg", 1 << 20);
  EXPECT_THAT(picture, HasSubstr("predicted time of a step"));
  EXPECT_THAT(picture, HasSubstr("smallest budget"));

  const std::string peak = std::to_string(json["peak_bytes"].get<std::size_t>());
  ASSERT_EQ(run({"--batch", "64", "--loss", "mean_squared_error", "--budget", peak, "--json"}), 0);
  const auto sizes = parse_json(out_)["max_batch_sizes"];
  EXPECT_EQ(sizes["1"], 64);
  EXPECT_GT(sizes["1.5"], 64);
  EXPECT_GE(sizes["any"], sizes["1.5"]);
  ASSERT_EQ(run({"--batch", "64", "--loss", "mean_squared_error", "--budget", peak}), 0);
  EXPECT_THAT(out_, HasSubstr("time of a step"));
  EXPECT_THAT(out_, HasSubstr("64 without recomputing"));
  EXPECT_EQ(run({"--batch", "64", "--svg", folder_ + "/absent/front.svg"}), 1);
}

TEST_F(ForecastCommand, PrintsATable) {
  ASSERT_EQ(run({"--batch", "16", "--optimizer", "sgd", "--budget", "1MiB"}), 0);
  EXPECT_THAT(out_, HasSubstr("parameters"));
  EXPECT_THAT(out_, HasSubstr("smallest budget"));
  EXPECT_THAT(out_, HasSubstr("fit 1.0 MiB"));
  EXPECT_EQ(run({"--batch", "16", "--budget", "1"}), 3);
  EXPECT_THAT(out_, HasSubstr("Batches of 16 do not fit 1 B, and no smaller ones do."));
}

TEST_F(ForecastCommand, RefusesWrongUse) {
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

// Also the train and predict commands take such files, with the same loader.
TEST_F(ForecastCommand, TakesKerasFiles) {
  for (const char* name : {"dense.keras", "legacy.h5"}) {
    path_ = std::string(TEST_DATA) + "/keras/" + name;
    EXPECT_EQ(run({"--batch", "4"}), 0) << errors_;
    EXPECT_THAT(out_, HasSubstr("Batches of 4 fit"));
  }
}

}  // namespace
}  // namespace plimsoll
