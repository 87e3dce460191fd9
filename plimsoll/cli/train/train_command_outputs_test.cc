#include "plimsoll/cli/train/train_command_outputs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/train/train_command_testing.h"
#include "plimsoll/io/checkpoint_state.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(TrainCommand, RefusesOutputsThatCannotBeWrittenBeforeTheFirstStep) {
  const std::string file = write("file", "text"), below = file + "/folder";
  for (const char* option : {"--out", "--checkpoint", "--logdir", "--report"}) {
    const std::string out = run({"train", model(), "--data", path("train.csv"), option, below}, 1);
    EXPECT_THAT(out, Not(HasSubstr("Epoch"))) << option;
    EXPECT_THAT(errors_, HasSubstr(std::string(option) + " " + below)) << option;
    EXPECT_THAT(errors_, HasSubstr("Not a directory")) << option;
  }
  run({"train", model(), "--data", path("train.csv"), "--report", path("model")}, 1);
  EXPECT_THAT(errors_, HasSubstr("is a folder"));
  run({"train", model(), "--data", path("train.csv"), "--out", path("new/deep"), "--budget", "1KiB"}, 3);
  EXPECT_FALSE(fs::exists(path("new")));  // Nothing is left of what was tried.
}

TEST_F(TrainCommand, NeverDropsWhatItTrained) {
  EXPECT_EQ(run_json({"train", model(), "--data", path("train.csv"), "--epochs", "1"})["out"], "model-trained");
  EXPECT_THAT(run({"train", model(), "--data", path("train.csv"), "--epochs", "1"}),
              HasSubstr("The model is in model-trained-2."));
  fs::copy_file(model(), path("net.json"));
  fs::copy_file(path("model/weights.bin"), path("weights.bin"));
  EXPECT_EQ(run_json({"train", "net.json", "--data", path("train.csv"), "--epochs", "1"})["out"], "net-trained");
  EXPECT_EQ(trained_name("/data/a.b.csv.gz"), "a.b-trained");
  run({"predict", "model-trained-2/model.json", "--input", path("train.csv")});
}

TEST_F(TrainCommand, PredictNamesABudgetThatIsEnoughToLoadTheModel) {
  run({"train", "--data", path("train.csv"), "--target", "label", "--epochs", "1", "--out", path("made")});
  const auto predict = [&](const std::string& budget, int code) {
    return run({"predict", path("made/model.json"), "--input", path("train.csv"), "--budget", budget, "--json"}, code);
  };
  const auto enough = parse_json(predict("10", 3))["error"]["smallest_sufficient_bytes"].get<std::size_t>();
  EXPECT_THAT(errors_, HasSubstr("limits are in bytes: did you mean 10MiB?"));
  predict(std::to_string(enough), 0);
  predict(std::to_string(enough - 1), 3);
}

// An error in the last line comes up when most of an epoch is done.
TEST_F(TrainCommand, SavesTheModelWhenTrainingFails) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < 4000; ++i) text += "0.5,0.25,1\n";
  const std::string data = write("late.csv", text + "0.5,oops,1\n");
  run({"train", model(), "--data", data, "--budget", "20KiB"}, 1);
  EXPECT_THAT(errors_, HasSubstr("line 4002: column 2 (\"b\"): \"oops\" is not a number"));
  EXPECT_THAT(errors_, HasSubstr("training failed after 0 epochs; the model is in model-trained"));
  EXPECT_NE(bytes_of("model-trained/weights.bin"), bytes_of(path("model/weights.bin")));
}

TEST_F(TrainCommand, CheckpointsGoOnNumbering) {
  const std::string cp = path("cp");
  run({"train", model(), "--data", path("train.csv"), "--epochs", "2", "--checkpoint", cp, "--json"});
  const std::string first = bytes_of(cp + "/cp-0001.ckpt.data-00000-of-00001");
  ASSERT_FALSE(first.empty());
  const Json json = run_json({"train", model(), "--weights", cp + "/cp-0002.ckpt", "--checkpoint", cp, "--data",
                              path("train.csv"), "--epochs", "1"});
  EXPECT_EQ(json["checkpoint"], cp + "/cp-0003.ckpt");
  EXPECT_EQ(latest_checkpoint(cp), cp + "/cp-0003.ckpt");
  EXPECT_EQ(bytes_of(cp + "/cp-0001.ckpt.data-00000-of-00001"), first);
}

TEST_F(TrainCommand, ResumedTrainingIsTheSameAsTrainingOn) {
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.begin(), "train");
    more.insert(more.end(), {"--data", path("train.csv"), "--no-shuffle", "--json"});
    return parse_json(run(more));
  };
  const std::string cp = path("cp");
  train({model(), "--epochs", "5", "--out", path("whole")});
  train({model(), "--epochs", "2", "--checkpoint", cp});
  const Json json = train({"--resume", cp, "--epochs", "5", "--out", path("resumed")});
  EXPECT_EQ(json["epochs"], 3);
  EXPECT_EQ(json["first_epoch"], 3);
  EXPECT_EQ(json["checkpoint"], cp + "/cp-0005.ckpt");
  const auto answers = [&](const char* folder) {
    return run({"predict", path(folder) + "/model.json", "--input", path("train.csv")});
  };
  EXPECT_EQ(answers("resumed"), answers("whole"));  // Also what the optimizer holds.
  EXPECT_EQ(train({"--resume", cp, "--epochs", "5"})["epochs"], 0);
  run({"train", "--resume", path("absent"), "--data", path("train.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("--resume"));
  run({"train", "--resume", path("model"), "--data", path("train.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("no checkpoint"));
  // A checkpoint's model alone has no weights to ask.
  run({"predict", cp + "/model.json", "--input", path("train.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("has no weights"));
}

// model.json and columns.json beside checkpoints belong to them.
TEST_F(TrainCommand, LeavesFoldersOfOtherTrainingsAlone) {
  const std::string cp = path("cp"), data = path("train.csv");
  run({"train", "--data", data, "--epochs", "2", "--checkpoint", cp, "--out", path("out")});
  const std::string model = bytes_of(cp + "/model.json"), columns = bytes_of(cp + "/columns.json");
  for (const char* option : {"--checkpoint", "--out"}) {
    run({"train", path("model/model.json"), "--data", data, "--epochs", "1", option, cp}, 1);
    EXPECT_THAT(errors_, HasSubstr(std::string(option) + " " + cp + ": it belongs to a training of another model"));
    run({"train", "--data", data, "--epochs", "1", "--features", "b", "a", option, cp}, 1);
    EXPECT_THAT(errors_, HasSubstr("of another table (columns.json there differs)")) << option;
  }
  EXPECT_EQ(bytes_of(cp + "/model.json"), model);
  EXPECT_EQ(bytes_of(cp + "/columns.json"), columns);
  EXPECT_EQ(run_json({"train", "--data", data, "--epochs", "1", "--checkpoint", cp})["checkpoint"],
            cp + "/cp-0003.ckpt");
  EXPECT_EQ(run_json({"train", "--resume", cp, "--data", data, "--epochs", "4", "--out", cp})["epochs"], 1);
  EXPECT_EQ(run_json({"train", "--resume", cp, "--data", data, "--epochs", "5"})["epochs"], 1);
}

TEST_F(TrainCommand, OneProcessTrainsInAFolderAndClearsWhatKilledOnesLeft) {
  const std::string cp = path("cp"), stale = cp + "/cp-0007.ckpt.index.tmp-1-2";
  {
    const TrainingFolderLock other("--checkpoint", cp);
    run({"train", model(), "--data", path("train.csv"), "--epochs", "1", "--checkpoint", cp}, 1);
    EXPECT_THAT(errors_, HasSubstr("another process is training there; name another folder"));
  }
  EXPECT_FALSE(fs::exists(cp));  // It was made for a training that wrote nothing.
  fs::create_directory(cp);
  std::ofstream(stale) << "half";
  run({"train", model(), "--data", path("train.csv"), "--epochs", "1", "--checkpoint", cp});
  EXPECT_FALSE(fs::exists(stale));
}

TEST_F(TrainCommand, ResumingRefusesWhatItWouldIgnore) {
  const std::string cp = path("cp");
  run({"train", "--data", path("train.csv"), "--epochs", "1", "--checkpoint", cp});
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{{"--target", "a"},
                                                                                      {"--features", "a"},
                                                                                      {"--ignore", "b"},
                                                                                      {"--categorical", "a"},
                                                                                      {"--look-back", "3"},
                                                                                      {"--standardize", "no"},
                                                                                      {"--optimizer", "sgd"}}) {
    run({"train", "--resume", cp, "--data", path("train.csv"), "--epochs", "2", option[0], option[1]}, 2);
    EXPECT_THAT(errors_, HasSubstr(option[0] + ": --resume continues with the training's own"));
  }
  run({"train", "--resume", cp, "--data", path("train.csv"), "--epochs", "2", "--target", "label", "--features", "2",
       "1", "--standardize", "yes", "--optimizer", "adam"});
}

TEST_F(TrainCommand, WarnsOfALossThatIsNotANumber) {
  run({"train", "--data", path("train.csv"), "--target", "a", "--epochs", "3", "--optimizer", "sgd", "--learning-rate",
       "1e38"});
  EXPECT_THAT(errors_, HasSubstr("warning: the loss of epoch 1 is not a finite number"));
}

TEST_F(TrainCommand, SignalsSaveTheModel) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const std::string out = path(fmt::format("ended-{}", signal).c_str()), log = path("log");
    fs::remove(log);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::freopen(log.c_str(), "w", stdout);
      ::freopen("/dev/null", "w", stderr);
      const std::string file = model(), data = path("train.csv");
      const char* arguments[] = {"plimsoll", "train",     file.c_str(), "--data",   data.c_str(),
                                 "--epochs", "100000000", "--out",      out.c_str()};
      ::_exit(run_program(9, arguments));
    }
    for (int i = 0; i < 2000 && bytes_of(log).find("Epoch 3/") == std::string::npos; ++i) {
      ::usleep(5000);
    }
    ::kill(child, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    EXPECT_NO_THROW(load_layers_model(out + "/model.json"));
    EXPECT_NE(bytes_of(out + "/weights.bin"), bytes_of(path("model/weights.bin")));
  }
}

}  // namespace
}  // namespace plimsoll
