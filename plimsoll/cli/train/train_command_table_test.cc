#include "plimsoll/cli/train/train_command_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/train/train_command_testing.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string day(int number) {
  return "2024-" + std::string(number / 28 < 9 ? "0" : "") + std::to_string(number / 28 + 1) + "-" +
         (number % 28 < 9 ? "0" : "") + std::to_string(number % 28 + 1);
}

// Prices far from 0, so that what is not standardised is not learned.
std::string prices(int rows) {
  std::string text = "date,volume,close\n";
  for (int i = 0; i < rows; ++i)
    text += day(i) + "," + std::to_string(1000 + i % 7) + "," + std::to_string(20000 + 500 * std::sin(i * 0.4)) + "\n";
  return text;
}

TEST_F(TrainCommand, LearnsATimeSeriesWithoutAModel) {
  const std::string data = write("prices.csv", prices(300));
  const Json json = run_json({"train", "--data", data, "--look-back", "10", "--horizon", "2", "--validation-split",
                              "0.2", "--epochs", "40", "--learning-rate", "0.01", "--seed", "1"});
  EXPECT_EQ(json["out"], "prices-trained");
  EXPECT_LT(json["metrics"]["val_loss"], 0.05);  // Of 1, the variance.
  const Json columns = parse_json(std::ifstream("prices-trained/columns.json"));
  EXPECT_EQ(columns["features"], (Json{"volume", "close"}));
  EXPECT_EQ(columns["targets"], (Json{"close"}));
  EXPECT_EQ(columns["look_back"], 10);
  EXPECT_NEAR(columns["scales"][1]["mean"], 20000, 50);
  const Json answers =
      parse_json(run({"predict", "prices-trained/model.json", "--input", data, "--json"}))["outputs"][0];
  EXPECT_EQ(answers["shape"], (Json{291, 2}));
  double worst = 0;
  for (int window = 0; window < 290; ++window)
    worst = std::max(
        worst, std::abs(answers["data"][2 * window].get<double>() - (20000 + 500 * std::sin((window + 10) * 0.4))));
  EXPECT_LT(worst, 300);  // In the file's own numbers.
  run({"predict", "prices-trained/model.json", "--input", write("few.csv", prices(9))}, 1);
  EXPECT_THAT(errors_, HasSubstr("has 9 rows, the model looks back at 10"));
}

TEST_F(TrainCommand, RefusesASeriesThatIsNotInOrder) {
  const std::string data = write("back.csv", "date,v\n2024-01-03,1\n2024-01-02,2\n2024-01-01,3\n");
  run({"train", "--data", data, "--look-back", "1"}, 1);
  EXPECT_THAT(errors_, HasSubstr("not in the order of time (column \"date\")"));
  run({"train", "--data", data, "--look-back", "1", "--ignore", "date", "--epochs", "1"});
  run({"train", "--data", data, "--look-back", "9"}, 1);
  EXPECT_THAT(errors_, HasSubstr("not in the order"));
  run({"train", "--data", data, "--look-back", "9", "--ignore", "date"}, 1);
  EXPECT_THAT(errors_, HasSubstr("fewer than a look-back of 9"));
}

TEST_F(TrainCommand, LearnsClassesOfTextWithoutAModel) {
  std::string text = "when,colour,size,kind\n";
  for (int i = 0; i < 60; ++i)
    text += day(i) + (i % 3 == 0   ? ",red,1,pear\n"
                      : i % 3 == 1 ? ",blue,2,apple\n"
                                   : (i == 2 ? ",blue,,plum\n" : ",blue,9,plum\n"));
  const std::string data = write("fruit.csv", text);
  const std::string out = run({"train", "--data", data, "--missing", "drop", "--validation-split", "0.25", "--epochs",
                               "60", "--seed", "2", "--learning-rate", "0.01"});
  EXPECT_THAT(out, HasSubstr("inputs: colour, size; target: kind; colour: text, 2 categories"));
  EXPECT_THAT(out, HasSubstr("left out: when (a date)"));
  const Json json = parse_json(
      run({"predict", "fruit-trained/model.json", "--input", write("new.csv", "size,colour\n9,blue\n"), "--json"}));
  EXPECT_EQ(json["classes"], (Json{"apple", "pear", "plum"}));
  EXPECT_GT(json["outputs"][0]["data"][2], 0.8);
}

TEST_F(TrainCommand, ChoosesColumns) {
  std::string text = "x,y,extra,when,t\n";
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + "," + std::to_string(-i) + ",7," + day(i) + ",0.5\n";
  const std::string data = write("wide.csv", text);
  const auto features = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"train", "--data", data, "--epochs", "1", "--out", path("o")});
    run(options);
    return parse_json(std::ifstream(path("o/columns.json")))["features"];
  };
  EXPECT_EQ(features({}), (Json{"x", "y", "extra"}));
  EXPECT_EQ(features({"--ignore", "extra"}), (Json{"x", "y"}));
  EXPECT_EQ(features({"--features", "y", "1"}), (Json{"y", "x"}));  // Numbers count from 1, as in messages.
  EXPECT_EQ(features({"--features", "when", "x"}), (Json{"when", "x"}));
  EXPECT_EQ(parse_json(std::ifstream(path("o/columns.json")))["dates"], (Json{"when"}));
  run({"train", "--data", data, "--target", "z"}, 1);
  EXPECT_THAT(errors_, HasSubstr("there is no column \"z\"; there are: x, y, extra, when, t"));
  EXPECT_THAT(errors_, testing::Not(HasSubstr("header")));
  run({"train", "--data", write("plain.csv", "1,2\n3,4\n"), "--target", "3"}, 1);
  EXPECT_THAT(errors_, HasSubstr("there are: 1, 2 (the file has no header; columns count from 1)"));
  run({"train", "--data", data, "--validation-split", "1"}, 2);
}

TEST_F(TrainCommand, TakesOneHotTargets) {
  Sequential three({layers::Dense(3, {.activation = "softmax", .input_shape = {2}, .seed = 1})});
  save_layers_model(three, path("three"));
  std::string text = "a,b,p,q,r\n";
  for (int i = 0; i < 30; ++i)
    text += std::to_string(i % 3) + "," + std::to_string(i % 2) +
            (i % 3 == 0   ? ",1,0,0\n"
             : i % 3 == 1 ? ",0,1,0\n"
                          : ",0,0,1\n");
  const std::string data = write("hot.csv", text), net = path("three/model.json");
  for (const std::vector<std::string>& targets :
       {std::vector<std::string>{}, std::vector<std::string>{"--target", "p", "q", "r"}}) {
    std::vector<std::string> arguments = {"train", net, "--data", data, "--epochs", "2", "--json"};
    arguments.insert(arguments.end(), targets.begin(), targets.end());
    EXPECT_TRUE(parse_json(run(arguments))["metrics"].contains("accuracy"));
  }
  save_npz(path("hot.npz"), {{"x", zeros({8, 2})}, {"y", ones({8, 3})}});
  run({"train", net, "--data", path("hot.npz"), "--epochs", "1", "--json"});
  run({"train", net, "--data", path("hot.npz"), "--epochs", "1", "--loss", "sparse_categorical_crossentropy"}, 1);
  EXPECT_THAT(errors_, HasSubstr("--loss categorical_crossentropy"));
  run({"train", net, "--data", write("no.csv", "1,2,0,5,0\n1,2,0,0,5\n")}, 1);
  EXPECT_THAT(errors_, HasSubstr("not a share of 0 to 1"));
}

// The table does not fit together with the model: it is streamed, and what is shuffled fits.
TEST_F(TrainCommand, StreamsATableInsideTheBudget) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < 30000; ++i) text += i % 2 ? "1,0,1\n" : "0,1,0\n";
  const std::string data = write("large.csv", text);
  const auto train = [&](const char* budget) {
    return run_json({"train", model(), "--data", data, "--epochs", "2", "--batch", "50", "--validation-split", "0.1",
                     "--budget", budget, "--seed", "1"});
  };
  const Json tight = train("64KiB");
  EXPECT_EQ(tight["streamed"], true);
  EXPECT_LE(tight["peak_bytes"], 64 << 10);
  EXPECT_GT(tight["shuffled_examples"], 1000);
  EXPECT_EQ(tight["data_bytes"], 0);
  EXPECT_GT(tight["metrics"]["val_accuracy"], 0.9);
  const Json wide = train("1MiB");
  EXPECT_EQ(wide["streamed"], false);
  EXPECT_GE(wide["data_bytes"], 30000 * 12);
  EXPECT_LE(wide["peak_bytes"], 1 << 20);
  save_npz(path("large.npz"), {{"x", zeros({30000, 2})}, {"y", zeros({30000}, i32)}});
  run({"train", model(), "--data", path("large.npz"), "--budget", "64KiB"}, 3);
  EXPECT_THAT(errors_, HasSubstr("large.npz takes 351.6 KiB (360000 bytes)"));
  EXPECT_THAT(errors_, HasSubstr("--budget"));
}

TEST_F(TrainCommand, GoesOnWithTheColumnsOfATrainedModel) {
  const std::string data = write("prices.csv", prices(60));
  run({"train", "--data", data, "--look-back", "5", "--epochs", "1", "--checkpoint", path("cp"), "--json"});
  const Json before = parse_json(std::ifstream(path("cp/columns.json")));
  std::string other = prices(60);
  for (std::size_t at = other.find(",20"); at != std::string::npos; at = other.find(",20", at + 1)) other[at + 1] = '9';
  const std::string far = write("far.csv", other);
  run({"train", "--resume", path("cp"), "--data", far, "--epochs", "2", "--out", path("again"), "--json"});
  EXPECT_EQ(parse_json(std::ifstream(path("again/columns.json"))), before);
}

// What would train and teach nothing.
TEST_F(TrainCommand, RefusesTablesThatAreNotWhatTheySeem) {
  const auto refused = [&](const std::string& text, std::vector<std::string> options = {}, int code = 1) {
    options.insert(options.begin(), {"train", "--data", write("odd.csv", text), "--epochs", "1"});
    run(options, code);
    return errors_;
  };
  const auto rows = [](const char* header, auto&& first) {
    std::string text = header;
    for (int i = 0; i < 60; ++i) text += first(i) + "," + std::to_string(i) + "," + std::to_string(2 * i) + "\n";
    return text;
  };
  const auto number = [](int i) { return std::to_string(i); };
  EXPECT_THAT(refused("a,b,y\n"), HasSubstr("has no rows"));
  EXPECT_THAT(refused("a,b,y\r1,2,3\r4,5,6\r"), HasSubstr("line 1: has a carriage return that ends no line"));
  EXPECT_THAT(refused("a;b;y\n1;2;3\n"), HasSubstr("columns are separated by commas"));
  EXPECT_THAT(refused(std::string("a,y\n1,2\n\0,3\n", 12)), HasSubstr("line 3: has a zero byte"));
  const std::string dates =
      rows("date,a,y\n", [](int i) { return fmt::format("{:02}/{:02}/2026", i % 28 + 1, i / 28 + 1); });
  EXPECT_THAT(refused(dates), HasSubstr("column \"date\" has another text in almost every row (\"01/01/2026\")"));
  run({"train", "--data", write("odd.csv", dates), "--epochs", "1", "--ignore", "date"});
  run({"train", "--data", write("odd.csv", dates), "--epochs", "1", "--categorical", "date"});
  const std::string mixed = rows("a,b,y\n", [](int i) {
    return i % 3 == 0 ? std::to_string(i) : i % 3 == 1 ? "\"1,001\"" : "\"2,002\"";
  });
  EXPECT_THAT(refused(mixed), HasSubstr("column \"a\" has 20 numbers and \"1,001\", which is none"));
  const std::string plain = rows("a,b,y\n", number);
  EXPECT_THAT(refused(plain, {"--features", "a", "y", "--target", "y"}), HasSubstr("both an input and a target"));
  EXPECT_THAT(refused(plain, {"--features", "a", "b", "--ignore", "a"}), HasSubstr("--ignore leaves out a column"));
  EXPECT_THAT(refused(plain, {"--horizon", "3"}, 2), HasSubstr("--horizon: it needs --look-back"));
}

TEST_F(TrainCommand, WritesNewModels) {
  const auto make = [&](std::vector<std::string> options, int code = 0) {
    options.insert(options.begin(), {"new", path("new.json"), "--force"});
    run(options, code);
    return code == 0 ? load_layers_model(path("new.json")).output_shapes()[0] : Shape();
  };
  EXPECT_EQ(make({"--inputs", "4", "--outputs", "3", "--classes"}), (Shape{kUnknownSize, 3}));
  EXPECT_EQ(make({"--inputs", "20,3", "--outputs", "1", "--kind", "lstm"}), (Shape{kUnknownSize, 1}));
  EXPECT_EQ(make({"--inputs", "20,3", "--outputs", "2", "--kind", "cnn"}), (Shape{kUnknownSize, 2}));
  EXPECT_EQ(make({"--inputs", "28,28,1", "--outputs", "10", "--kind", "cnn"}), (Shape{kUnknownSize, 10}));
  make({"--inputs", "4", "--outputs", "1", "--kind", "lstm"}, 1);
  EXPECT_THAT(errors_, HasSubstr("--inputs 20,3"));
  make({"--inputs", "0", "--outputs", "1"}, 2);
  run({"new", path("new.json"), "--inputs", "2", "--outputs", "2"}, 1);
  EXPECT_THAT(errors_, HasSubstr("is there already"));
  make({"--inputs", "2", "--outputs", "2", "--classes"});
  run({"predict", path("new.json"), "--input", path("train.csv")}, 1);
  EXPECT_THAT(errors_, HasSubstr("has no weights, its answers would be random"));
  run({"predict", path("new.json"), "--input", path("train.csv"), "--initialize"});
  EXPECT_EQ(run_json({"train", path("new.json"), "--data", path("train.csv"), "--epochs", "1"})["out"], "new-trained");
}

}  // namespace
}  // namespace plimsoll
