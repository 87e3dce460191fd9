#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/train/train_command_testing.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/observe/report_page.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TEST_F(TrainCommand, LearnsSavesAndPredicts) {
  const Json json = parse_json(run({"train",           model(),
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
  const Json from_weights = parse_json(
      run({"predict", model(), "--weights", path("cp/cp-0060.ckpt"), "--input", path("train.csv"), "--json"}));
  const Json from_model =
      parse_json(run({"predict", path("trained/model.json"), "--input", path("train.csv"), "--json"}));
  EXPECT_EQ(from_weights["outputs"], from_model["outputs"]);
  EXPECT_EQ(from_model["outputs"][0]["shape"], (Json{60, 2}));
}

TEST_F(TrainCommand, ReadsArraysAndGoesOnWithATrainedModel) {
  save_npz(path("data.npz"), {{"x", zeros({20, 2})}, {"y", zeros({20}, i32)}});
  run({"train", model(), "--data", path("data.npz"), "--epochs", "2", "--out", path("first"), "--json"});
  const Json json =
      parse_json(run({"train", path("first/model.json"), "--data", path("data.npz"), "--epochs", "1", "--json"}));
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
  run({"train", model(), "--data", path("absent.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("absent.csv"));
  run({"train", path("absent.json"), "--data", path("train.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("absent.json"));
  run({"predict", model(), "--input", path("absent.csv")}, 1);
  run({"train", model(), "--data", path("train.csv"), "--loss", "none"}, 2);
  run({"train", model(), "--data", path("train.csv"), "--learning-rate", "-1"}, 2);
  EXPECT_THAT(errors_, HasSubstr("give a number above 0"));
  EXPECT_LT(errors_.size(), 200u);
  run({"train", model(), "--data", path("train.csv"), "--epochs", "-1"}, 2);
  run({"train", model(), "--data", path("train.csv"), "--header", "maybe"}, 2);
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

TEST_F(TrainCommand, KeepsTheNumbersOfTextForTheNextFiles) {
  std::string text = "colour,size,kind\n";
  for (int i = 0; i < 40; ++i) text += i % 2 ? "red,1,pear\n" : "blue,2,apple\n";
  const std::string data = write("fruit.csv", text), other = write("other.csv", "size,colour,kind\n1,red,pear\n");
  const std::string out = path("fruit"), trained = out + "/model.json";
  const Json json =
      parse_json(run({"train",  model(), "--data",   data,           "--validation",    other,   "--categorical",
                      "colour", "kind",  "--epochs", "40",           "--learning-rate", "0.05",  "--seed",
                      "1",      "--out", out,        "--checkpoint", path("cp"),        "--json"}));
  EXPECT_EQ(json["metrics"]["val_accuracy"], 1.0);
  // Red alone, in another order of columns, without the target, without a header: it is number 1 everywhere.
  const Json red = parse_json(run({"predict", trained, "--input", other, "--json"}));
  EXPECT_EQ(red["classes"], (Json{"apple", "pear"}));
  EXPECT_GT(red["outputs"][0]["data"][1], 0.5);
  for (const std::string& same : {write("a.csv", "size,colour\n1,red\n"), write("b.csv", "red,1\n"),
                                  write("c.csv", "red,1,pear\n"), write("d.csv", "id,size,colour\nx,1,red\n")}) {
    EXPECT_EQ(parse_json(run({"predict", trained, "--input", same, "--json"}))["outputs"], red["outputs"]) << same;
    EXPECT_EQ(parse_json(run(
                  {"predict", model(), "--weights", path("cp/cp-0040.ckpt"), "--input", same, "--json"}))["outputs"],
              red["outputs"]);
  }
  fs::rename(out + "/columns.json", path("kept.json"));
  run({"predict", trained, "--input", other}, 1);
  EXPECT_EQ(
      parse_json(run({"predict", trained, "--input", other, "--columns", path("kept.json"), "--json"}))["outputs"],
      red["outputs"]);
  run({"predict", trained, "--columns", path("kept.json"), "--input",
       write("new.csv", "colour,size\nred,1\ngreen,2\n")},
      1);
  EXPECT_THAT(errors_,
              HasSubstr("line 3: column 1 (\"colour\"): \"green\" is not a known category; known are: blue, red"));
  run({"train", model(), "--data", data, "--validation", write("v.csv", "colour,size,kind\nred,1,plum\n"),
       "--categorical", "colour", "kind"},
      1);
  EXPECT_THAT(errors_, HasSubstr("\"plum\" is not a known category; known are: apple, pear"));
  run({"train", model(), "--data", write("latin.csv", "a,b,kind\n1,2,\xE9\n"), "--categorical", "kind", "--out",
       path("o")},
      1);
  EXPECT_THAT(errors_, HasSubstr("not UTF-8"));
  EXPECT_FALSE(fs::exists(path("o")));
  for (const char* damaged : {"{", "[]", "{\"format\": \"other\"}", "{\"format\": \"plimsoll-columns\"}"})
    run({"predict", trained, "--input", other, "--columns", write("damaged.json", damaged)}, 1);
  run({"predict", trained, "--input", write("wide.csv", "1,2,3,4\n"), "--columns", path("kept.json")}, 1);
  EXPECT_THAT(errors_, HasSubstr("has 4 columns, the training data 3"));
}

TEST_F(TrainCommand, ReadsAHeaderAsItIsTold) {
  const std::string plain = write("plain.csv", "1,2,0\n2,1,1\n3,1,1\n");
  const auto rows = [&](const char* header) {
    const std::string out = run({"predict", model(), "--input", plain, "--header", header});
    return std::count(out.begin(), out.end(), '\n');
  };
  EXPECT_EQ(rows("auto"), 3);
  EXPECT_EQ(rows("no"), 3);
  EXPECT_EQ(rows("yes"), 2);
  run({"train", model(), "--data", plain, "--header", "yes", "--epochs", "1", "--json"});
  run({"train", model(), "--data", path("train.csv"), "--header", "no", "--epochs", "1"}, 1);
  EXPECT_THAT(errors_, HasSubstr("line 1: column 1: \"a\" is not a number"));
}

TEST_F(TrainCommand, SaysWhatItLeavesOut) {
  const std::string gaps = write("gaps.csv", "a,b,label\n1,2,0\n,3,1\n2,1,1\n3,NA,0\n");
  const Json json = parse_json(run({"train", model(), "--data", gaps, "--missing", "drop", "--epochs", "1", "--json"}));
  EXPECT_EQ(json["dropped_rows"], 2);
  EXPECT_THAT(run({"train", model(), "--data", gaps, "--missing", "drop", "--epochs", "1"}),
              HasSubstr("Left out 2 lines of " + gaps));
  const std::string csv = run({"predict", model(), "--input", gaps, "--missing", "drop"});
  EXPECT_THAT(errors_, HasSubstr("2 lines of " + gaps));
  std::istringstream lines(csv);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  ASSERT_EQ(rows.size(), 4u);  // In their places.
  EXPECT_EQ(rows[1], "nan,nan");
  EXPECT_EQ(rows[3], "nan,nan");
  const std::string whole = run({"predict", model(), "--input", write("whole.csv", "a,b\n1,2\n2,1\n")});
  EXPECT_EQ(rows[0] + "\n" + rows[2] + "\n", whole);
  run({"train", model(), "--data", write("target.csv", "a,b,label\n1,2,\n"), "--missing", "zero"}, 1);
  EXPECT_THAT(errors_, HasSubstr("a target is not made up"));
  run({"train", model(), "--data", write("one.csv", "1\n2\n")}, 1);
  EXPECT_THAT(errors_, HasSubstr("has one column"));
  run({"train", model(), "--data", write("half.csv", "1,2,0.5\n")}, 1);
  EXPECT_THAT(errors_, HasSubstr("not a whole number"));
}

// The same model and options: one number, before and after.
TEST_F(TrainCommand, TakesWhatTheForecastSays) {
  save_npz(path("wide.npz"), {{"x", zeros({60, 2})}, {"y", zeros({60}, i64)}});
  Sequential regression({layers::Dense(4, {.input_shape = {2}, .seed = 1}), layers::Dense(1, {.seed = 2})});
  save_layers_model(regression, path("regression"));
  struct Case {
    std::string model, data;
    std::vector<std::string> options;
  };
  const std::string regressing = path("regression/model.json");
  for (const Case& c :
       {Case{model(), path("train.csv"), {}}, Case{model(), path("wide.npz"), {}},
        Case{model(), path("train.csv"), {"--optimizer", "sgd"}}, Case{regressing, path("train.csv"), {}},
        Case{regressing, path("train.csv"), {"--loss", "mae", "--metrics", "mse"}}}) {
    std::vector<std::string> forecast = {"forecast", c.model, "--batch", "20", "--json"},
                             train = {"train", c.model, "--data", c.data, "--batch", "20", "--epochs", "2", "--json"};
    for (auto* arguments : {&forecast, &train}) arguments->insert(arguments->end(), c.options.begin(), c.options.end());
    const Json foreseen = parse_json(run(forecast));
    const Json trained = parse_json(run(train));
    const auto held = trained["data_bytes"].get<std::size_t>();
    EXPECT_GT(held, 0u);
    EXPECT_EQ(foreseen["peak_bytes"].get<std::size_t>() + held, trained["peak_bytes"]);
    // A table that has no room is streamed; arrays are not.
    const bool streams = c.data.ends_with(".csv");
    const auto budget = foreseen["smallest_budget_bytes"].get<std::size_t>() + (streams ? 0 : held);
    train.insert(train.end(), {"--budget", std::to_string(budget)});
    EXPECT_EQ(parse_json(run(train))["streamed"], streams);
    train.back() = std::to_string(budget - 1);
    run(train, 3);
    EXPECT_THAT(errors_, HasSubstr("budget of " + std::to_string(budget) + " bytes"));
  }
}

TEST_F(TrainCommand, RecomputesInsideABudgetBelowThePeak) {
  Sequential deep;
  for (std::uint64_t i = 0; i < 12; ++i)
    deep.add(layers::Dense(12, {.activation = "tanh", .input_shape = {2}, .seed = i + 1}));
  deep.add(layers::Dense(2, {.activation = "softmax", .seed = 99}));
  save_layers_model(deep, path("deep"));
  const std::vector<std::string> common = {path("deep/model.json"), "--batch", "60"};
  const auto with = [&](const char* command, std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    more.insert(more.begin(), command);
    return more;
  };
  const auto forecast = run_json(with("forecast", {}));
  const std::size_t gate = forecast["smallest_budget_bytes"], peak = forecast["peak_bytes"];
  const std::vector<std::string> train = {"--data", path("train.csv"), "--epochs", "2", "--no-shuffle"};
  const auto natural = run_json(with("train", train));
  EXPECT_EQ(natural["recomputed"], 0);
  std::vector<std::string> tight = train;
  tight.insert(tight.end(), {"--budget", std::to_string((gate + peak) / 2)});
  const auto within = run_json(with("train", tight));
  EXPECT_GT(within["recomputed"], 0);
  EXPECT_EQ(within["spilled_bytes"], 0);
  EXPECT_LE(within["peak_bytes"], within["budget_bytes"]);
  EXPECT_EQ(within["loss"], natural["loss"]);
  EXPECT_THAT(run(with("train", tight)), HasSubstr("of the work was recomputing"));
  tight.insert(tight.end(), {"--max-slowdown", "1"});
  run(with("train", tight), 3);
  EXPECT_THAT(errors_, HasSubstr("max_slowdown 1"));
  tight.back() = "0.5";
  run(with("train", tight), 2);
}

TEST_F(TrainCommand, SpillsToTheFolderThatIsNamed) {
  const std::vector<std::string> train = {"train", model(), "--data", path("train.csv"), "--epochs", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), train.begin(), train.end());
    return more;
  };
  run(with({"--spill", "."}), 2);
  EXPECT_THAT(errors_, HasSubstr("--budget"));
  run(with({"--budget", "64MiB", "--spill", path("not/there")}), 1);
  EXPECT_THAT(errors_, HasSubstr("not/there"));
  run({"predict", model(), "--input", path("train.csv"), "--spill", "."}, 2);
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
  Model again = load_layers_model(model());
  EXPECT_NO_THROW(again.load_weights(latest_checkpoint(path("cp"))));
}

}  // namespace
}  // namespace plimsoll
