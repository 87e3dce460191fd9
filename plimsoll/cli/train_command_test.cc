#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/model/core_layers.h"
#include "plimsoll/model/layers_model.h"
#include "plimsoll/observe/report_page.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;
using Json = nlohmann::json;

class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    std::string pattern = (fs::temp_directory_path() / "train_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    const Sequential model({layers::Dense(8, {.activation = "tanh", .input_shape = {2}, .seed = 1}),
                            layers::Dense(2, {.activation = "softmax", .seed = 2})});
    save_layers_model(model, (directory_ / "model").string());
    std::string text = "a,b,label\n";
    for (int i = 0; i < 60; ++i) {
      const double a = std::sin(i * 1.7), b = std::cos(i * 2.3);
      text += std::to_string(a) + "," + std::to_string(b) + "," + (a > b ? "1" : "0") + "\n";
    }
    std::ofstream(path("train.csv")) << text;
  }
  ~TrainCommand() override { fs::remove_all(directory_); }
  std::string path(const char* name) const { return (directory_ / name).string(); }
  std::string model() const { return path("model/model.json"); }

  static std::string run(std::vector<std::string> arguments, int expected_code = 0) {
    arguments.insert(arguments.begin(), "plimsoll");
    std::vector<const char*> pointers;
    for (const std::string& each : arguments) pointers.push_back(each.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_program(static_cast<int>(pointers.size()), pointers.data()), expected_code);
    errors_ = testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  }

  inline static std::string errors_;
  fs::path directory_;
};

TEST_F(TrainCommand, LearnsSavesAndPredicts) {
  const Json json = Json::parse(run({"train",           model(),
                                     "--data",          path("train.csv"),
                                     "--validation",    path("train.csv"),
                                     "--epochs",        "60",
                                     "--batch",         "10",
                                     "--learning-rate", "0.05",
                                     "--seed",          "3",
                                     "--checkpoint",    path("cp"),
                                     "--logdir",        path("logs"),
                                     "--out",           path("trained"),
                                     "--report",        path("report.html"),
                                     "--json"}));
  EXPECT_EQ(json["epochs"], 60);
  EXPECT_GT(json["metrics"]["accuracy"], 0.9);
  EXPECT_GT(json["metrics"]["val_accuracy"], 0.9);
  EXPECT_EQ(json["history"]["loss"].size(), 60u);
  EXPECT_GT(json["peak_bytes"], 0);
  EXPECT_TRUE(json["budget_bytes"].is_null());
  EXPECT_EQ(json["checkpoint"], path("cp/cp-0060.ckpt"));
  EXPECT_EQ(latest_checkpoint(path("cp")), path("cp/cp-0060.ckpt"));
  EXPECT_TRUE(fs::exists(path("logs/train")));
  EXPECT_TRUE(fs::exists(path("report.trace")));
  if (has_report_page()) {
    EXPECT_EQ(json["report"], path("report.html"));
    EXPECT_GT(fs::file_size(path("report.html")), 1000u);
  }

  const std::string csv = run({"predict", path("trained/model.json"), "--input", path("train.csv")});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 60);
  const Json from_weights = Json::parse(
      run({"predict", model(), "--weights", path("cp/cp-0060.ckpt"), "--input", path("train.csv"), "--json"}));
  const Json from_model =
      Json::parse(run({"predict", path("trained/model.json"), "--input", path("train.csv"), "--json"}));
  EXPECT_EQ(from_weights["outputs"], from_model["outputs"]);
  EXPECT_EQ(from_model["outputs"][0]["shape"], (Json{60, 2}));
}

TEST_F(TrainCommand, ReadsArraysAndGoesOnWithATrainedModel) {
  save_npz(path("data.npz"), {{"x", zeros({20, 2})}, {"y", zeros({20}, i32)}});
  run({"train", model(), "--data", path("data.npz"), "--epochs", "2", "--out", path("first"), "--json"});
  const Json json =
      Json::parse(run({"train", path("first/model.json"), "--data", path("data.npz"), "--epochs", "1", "--json"}));
  EXPECT_EQ(json["epochs"], 1);
  EXPECT_TRUE(json["checkpoint"].is_null());
  save_npy(path("x.npy"), ones({3, 2}));
  std::ofstream(path("x.json")) << "[[1, 1], [1, 1], [1, 1]]";
  const std::string out = run({"predict", model(), "--input", path("x.npy")});
  EXPECT_EQ(run({"predict", model(), "--input", path("x.json")}), out);
  EXPECT_EQ(run({"predict", model(), "--input", path("x.npy"), "--out", path("y.npy"), "--json"}).substr(0, 1), "{");
  EXPECT_EQ(load_npy(path("y.npy")).shape(), (Shape{3, 2}));
}

TEST_F(TrainCommand, EndsWithTheRightCode) {
  run({"train", model(), "--data", path("train.csv"), "--budget", "1KiB"}, 3);
  EXPECT_THAT(errors_, HasSubstr("budget"));
  run({"predict", model(), "--input", path("train.csv"), "--budget", "100"}, 3);
  run({"train", model()}, 2);
  run({"train", model(), "--data", path("absent.csv")}, 2);
  run({"train", model(), "--data", path("train.csv"), "--loss", "none"}, 2);
  run({"train", model(), "--data", path("train.csv"), "--budget", "much"}, 2);
  run({"train", path("train.csv"), "--data", path("train.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("train.csv"));
  std::ofstream(path("wide.csv")) << "1,2,3,4\n";
  run({"train", model(), "--data", path("wide.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("--target"));
  run({"train", model(), "--data", path("model/model.json")}, 1);
  EXPECT_THAT(errors_, HasSubstr(".npz"));
  run({"train", "--help"}, 0);
}

TEST_F(TrainCommand, SavesACheckpointWhenInterrupted) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::freopen("/dev/null", "w", stdout);
    ::freopen("/dev/null", "w", stderr);
    const std::string file = model(), data = path("train.csv"), to = path("cp");
    const char* arguments[] = {"plimsoll", "train",     file.c_str(),   "--data",  data.c_str(),
                               "--epochs", "100000000", "--checkpoint", to.c_str()};
    ::_exit(run_program(9, arguments));
  }
  for (int i = 0; i < 2000 && latest_checkpoint(path("cp")).empty(); ++i) ::usleep(5000);
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const Model again = load_layers_model(model());
  EXPECT_NO_THROW(again.load_weights(latest_checkpoint(path("cp"))));
}

}  // namespace
}  // namespace plimsoll
