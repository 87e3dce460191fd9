// TrainCommand: a folder with a small model and a table to train it with; the program is run in it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/layers/core_layers.h"

namespace plimsoll {

namespace fs = std::filesystem;

class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    std::string pattern = (fs::temp_directory_path() / "train_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    fs::current_path(directory_);  // Where models lie that are saved without a name.
    Sequential model({layers::Dense(8, {.activation = "tanh", .input_shape = {2}, .seed = 1}),
                      layers::Dense(2, {.activation = "softmax", .seed = 2})});
    save_layers_model(model, (directory_ / "model").string());
    std::string text = "a,b,label\n";
    for (int i = 0; i < 60; ++i) {
      const double a = std::sin(i * 1.7), b = std::cos(i * 2.3);
      text += std::to_string(a) + "," + std::to_string(b) + "," + (a > b ? "1" : "0") + "\n";
    }
    std::ofstream(path("train.csv")) << text;
  }
  ~TrainCommand() override {
    fs::current_path(before_);
    fs::remove_all(directory_);
  }
  std::string path(const char* name) const { return (directory_ / name).string(); }
  std::string model() const { return path("model/model.json"); }

  static nlohmann::json run_json(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    return parse_json(run(arguments));
  }
  static std::string run(const std::vector<std::string>& arguments, int expected_code = 0) {
    const CliResult result = run_cli(arguments);
    EXPECT_EQ(result.code, expected_code) << result.errors;
    errors_ = result.errors;
    return result.out;
  }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  inline static std::string errors_;
  const fs::path before_ = fs::current_path();
  fs::path directory_;
};

}  // namespace plimsoll
