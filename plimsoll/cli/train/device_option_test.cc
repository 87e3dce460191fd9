// --device: the program's commands on an OpenCL device, compared with the processor's results.
#include <gmock/gmock.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/train/train_command_testing.h"
#include "plimsoll/device/opencl/opencl_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class DeviceOption : public TrainCommand {
 protected:
  void SetUp() override {
    config::reset_for_testing();
    if (config::list_physical_devices("OPENCL").empty()) GTEST_SKIP() << "there is no OpenCL device";
    config::reset_for_testing();
  }
  void TearDown() override { config::reset_for_testing(); }

  // As a process of its own: devices are looked for again.
  Json run_on(const std::string& device, std::vector<std::string> arguments) {
    config::reset_for_testing();
    if (!device.empty()) arguments.insert(arguments.end(), {"--device", device});
    return run_json(std::move(arguments));
  }
  static std::size_t launches() { return Runtime::instance().device("OPENCL:0").backend().counters().launches; }
};

TEST_F(DeviceOption, TrainsAndPredictsThere) {
  const auto train = [&](const std::string& device, const char* out) {
    return run_on(device, {"train", model(), "--data", path("train.csv"), "--epochs", "4", "--batch", "10", "--seed",
                           "3", "--budget", "1MiB", "--out", path(out)});
  };
  const Json here = train("", "here"), there = train("opencl:0", "there");
  EXPECT_GT(launches(), 0u);
  EXPECT_NEAR(there["loss"].get<double>(), here["loss"].get<double>(), 1e-4);
  EXPECT_EQ(there["metrics"]["accuracy"], here["metrics"]["accuracy"]);
  EXPECT_LE(there["peak_bytes"], 1_MiB);
  const auto predict = [&](const std::string& device) {
    return run_on(device, {"predict", path("there/model.json"), "--input", path("train.csv")})["outputs"][0];
  };
  const Json a = predict(""), b = predict("OPENCL:0");
  EXPECT_GT(launches(), 0u);
  ASSERT_EQ(a["data"].size(), 120u);
  for (std::size_t i = 0; i < 120; ++i) EXPECT_NEAR(a["data"][i].get<double>(), b["data"][i].get<double>(), 1e-5) << i;
  // Rows without all values get no answer there, either.
  write("gaps.csv", "a,b,label\n0.5,,1\n0.1,0.2,0\n");
  const Json gaps =
      run_on("OPENCL:0", {"predict", path("there/model.json"), "--input", path("gaps.csv"), "--missing", "drop"});
  EXPECT_EQ(gaps["dropped_rows"], 1);
}

// To the byte, data on the host included.
TEST_F(DeviceOption, TakesWhatTheForecastSays) {
  const Json foreseen = run_on("OPENCL:0", {"forecast", model(), "--batch", "20", "--optimizer", "adam", "--loss",
                                            "sparse_categorical_crossentropy"});
  const auto train = [&](std::size_t budget, int code) {
    config::reset_for_testing();
    return run({"train", model(), "--data", path("train.csv"), "--batch", "20", "--epochs", "2", "--budget",
                std::to_string(budget), "--device", "OPENCL:0", "--out", path("trained"), "--json"},
               code);
  };
  const Json trained = parse_json(train(1_MiB, 0));
  const std::size_t held = trained["data_bytes"];
  EXPECT_EQ(foreseen["peak_bytes"].get<std::size_t>() + held, trained["peak_bytes"]);
  const std::size_t smallest = foreseen["smallest_budget_bytes"];
  train(smallest, 0);  // The table is streamed.
  train(smallest - 1, 3);
}

TEST_F(DeviceOption, TrainsAModelThatIsMadeForTheTableThere) {
  const Json json = run_on("OPENCL:0", {"train", "--data", path("train.csv"), "--epochs", "1", "--out", path("made")});
  EXPECT_EQ(json["epochs"], 1);
  EXPECT_GT(launches(), 0u);
}

TEST_F(DeviceOption, ForecastsWhatItTakesThere) {
  const auto forecast = [&](const std::string& device) {
    return run_on(device, {"forecast", model(), "--batch", "16"});
  };
  const Json here = forecast(""), there = forecast("OPENCL:0");
  EXPECT_GT(there["peak_bytes"], here["peak_bytes"]);  // The batch is on the host, too.
  EXPECT_GT(there["max_batch_size"], 0);
  EXPECT_EQ(launches(), 0u);  // Nothing runs.
}

TEST_F(DeviceOption, TheDemoTrainsThere) {
  const Json json = run_on("OPENCL:0", {"demo", "--epochs", "2", "--out", path("demo")});
  EXPECT_GT(launches(), 0u);
  EXPECT_LT(json["loss"], 0.1);
  EXPECT_LE(json["peak_bytes"], json["budget_bytes"]);
  std::size_t peak = 0;
  const Json report = run_json({"doctor", path("demo/run.trace")});
  for (const Json& device : report["devices"])
    if (device["name"] == "OPENCL:0") peak = device["peak_bytes"];
  EXPECT_GT(peak, json["peak_bytes"].get<std::size_t>() / 2);
}

TEST_F(DeviceOption, RefusesADeviceThatIsNotThere) {
  for (const char* command : {"train", "forecast"}) {
    config::reset_for_testing();
    std::vector<std::string> arguments = {command, model(), "--device", "OPENCL:77"};
    if (command == std::string("train")) arguments.insert(arguments.end(), {"--data", path("train.csv")});
    run(arguments, 1);
    EXPECT_THAT(errors_, HasSubstr("OPENCL:77")) << command;
    EXPECT_THAT(errors_, HasSubstr("CPU:0, OPENCL:0")) << command;
  }
}

}  // namespace
}  // namespace plimsoll
