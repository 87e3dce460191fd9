#include "plimsoll/model/keras/layers_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/leak_check.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

const fs::path kPublished = fs::path(SHARED_DATA) / "fetched/tfjs-published";

std::vector<fs::path> fixtures(const fs::path& root = fs::path(TEST_DATA) / "tfjs") {
  std::vector<fs::path> result;
  for (const auto& entry : fs::directory_iterator(root))
    if (fs::exists(entry.path() / "model.json") && fs::exists(entry.path() / "inputs.json"))
      result.push_back(entry.path());
  return result;
}

// The largest difference to what TF.js gave, in units of what is allowed.
double worst_of(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double worst = got.size() == want.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < got.size() && i < want.size(); ++i) {
    const auto a = got[i].cast(f32).to_vector<float>(), b = want[i].cast(f32).to_vector<float>();
    if (a.size() != b.size()) return INFINITY;
    for (std::size_t k = 0; k < a.size(); ++k)
      worst = std::max(worst, std::abs(double{a[k]} - b[k]) / (1e-5 + 1e-5 * std::abs(b[k])));
  }
  return worst;
}

bool is_graph_model(const fs::path& directory) {
  std::ifstream in(directory / "model.json");
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  return text.find("graph-model") != std::string::npos || text.find("\"node\":") != std::string::npos;
}

void expect_predictions(const std::vector<fs::path>& directories) {
  for (const fs::path& directory : directories) {
    SCOPED_TRACE(directory.filename().string());
    const std::string path = (directory / "model.json").string();
    if (is_graph_model(directory)) {
      EXPECT_THROW(load_layers_model(path), Unsupported);
      continue;
    }
    LeakCheck check;
    try {
      Model model = load_layers_model(path);
      const auto inputs = load_json_tensors((directory / "inputs.json").string());
      const auto outputs = load_json_tensors((directory / "outputs.json").string());
      EXPECT_LE(worst_of(model.predict_all(inputs), outputs), 1.0);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    check.expect_none();
  }
}

void expect_same_after_saving(const std::vector<fs::path>& directories) {
  const fs::path saved = fs::temp_directory_path() / ("plimsoll_layers_model_test_" + std::to_string(getpid()));
  for (const fs::path& fixture : directories) {
    if (is_graph_model(fixture)) continue;
    SCOPED_TRACE(fixture.filename().string());
    Model first = load_layers_model((fixture / "model.json").string());
    save_layers_model(first, saved.string());
    Model second = load_layers_model((saved / "model.json").string());
    const auto inputs = load_json_tensors((fixture / "inputs.json").string());
    const auto a = first.predict_all(inputs), b = second.predict_all(inputs);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].to_vector<float>(), b[i].to_vector<float>());
  }
  fs::remove_all(saved);
}

TEST(LayersModel, PredictsWhatTensorFlowJsPredicts) {
  const auto directories = fixtures();
  ASSERT_GT(directories.size(), 60u);
  expect_predictions(directories);
}

TEST(LayersModel, SavesWhatItLoadsAgain) { expect_same_after_saving(fixtures()); }

TEST(LayersModel, OfPublishedModelsPredictsAndSavesTheSame) {
  if (!fs::exists(kPublished)) GTEST_SKIP() << "not at hand: " << kPublished;
  const auto directories = fixtures(kPublished);
  ASSERT_FALSE(directories.empty());
  expect_predictions(directories);
  expect_same_after_saving(directories);
}

TEST(LayersModel, GoesOnTrainingWhereItStood) {
  const fs::path fixture = fs::path(TEST_DATA) / "tfjs/iris-dense-with-optimizer";
  const fs::path directory =
      fs::temp_directory_path() / ("plimsoll_layers_model_optimizer_test_" + std::to_string(getpid()));
  Model first = load_layers_model((fixture / "model.json").string());
  EXPECT_GT(first.optimizer().step(), 0);
  EXPECT_EQ(first.optimizer().slots(first.trainable_weights()[0]).size(), 2u);
  save_layers_model(first, directory.string(), {.include_optimizer = true});
  Model second = load_layers_model((directory / "model.json").string());
  EXPECT_EQ(second.optimizer().step(), first.optimizer().step());
  const Tensor x = load_json_tensors((fixture / "inputs.json").string())[0];
  const Tensor y = load_json_tensors((fixture / "outputs.json").string())[0];
  for (int step = 0; step < 3; ++step)
    EXPECT_EQ(first.train_on_batch(x, y)["loss"], second.train_on_batch(x, y)["loss"]);
  fs::remove_all(directory);
}

TEST(LayersModel, EveryOptimizerLossAndClippingComesBack) {
  const fs::path directory = fs::temp_directory_path() / "plimsoll_layers_model_training_test";
  const Tensor x = random_normal({8, 3}, {.seed = 1}), y = random_normal({8, 2}, {.seed = 2});
  const OptimizerChoice kinds[] = {"sgd",
                                   "adam",
                                   "adamw",
                                   "adamax",
                                   "adagrad",
                                   "adadelta",
                                   "rmsprop",
                                   optimizers::SGD({.momentum = 0.9}),
                                   optimizers::SGD({.momentum = 0.9, .tfjs = true}),
                                   optimizers::RMSprop({.momentum = 0.5, .centered = true})};
  for (const OptimizerChoice& kind : kinds) {
    Sequential first({layers::Dense(2, {.input_shape = {3}, .seed = 1})});
    first.compile({.optimizer = kind, .loss = losses::Huber(0.7), .metrics = {"auc"}, .global_clip_norm = 0.5});
    for (int i = 0; i < 3; ++i) first.train_on_batch(x, y);
    save_layers_model(first, directory.string(), {.include_optimizer = true});
    Model second = load_layers_model((directory / "model.json").string());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(second.train_on_batch(x, y)["loss"], first.train_on_batch(x, y)["loss"]);
  }
  Sequential own({layers::Dense(2, {.input_shape = {3}})});
  own.compile({.optimizer = "sgd", .loss = Loss("own", [](const Tensor& a, const Tensor& b) { return a - b; })});
  EXPECT_THROW(save_layers_model(own, directory.string(), {.include_optimizer = true}), Unsupported);
  fs::remove_all(directory);
}

TEST(LayersModel, BeginsAnewWithoutWeights) {
  const fs::path directory = fs::temp_directory_path() / "plimsoll_layers_model_bare_test";
  fs::create_directories(directory);
  std::ofstream(directory / "model.json")
      << R"({"class_name": "Sequential", "config": {"name": "s", "layers": [{"class_name": "Dense", "config":
         {"units": 2, "batch_input_shape": [null, 3], "name": "d"}}]}, "keras_version": "2.15.0"})";
  Model model = load_layers_model((directory / "model.json").string());
  EXPECT_NE(model.weights()[0].value().to_vector<float>(), std::vector<float>(6, 0.f));
  fs::remove_all(directory);
}

TEST(LayersModel, NestedModelsComeBack) {
  const fs::path directory = fs::temp_directory_path() / "plimsoll_layers_model_nested_test";
  Sequential inner({layers::Dense(3, {.input_shape = {4}, .seed = 1})});
  const Input a({.shape = {4}}), b({.shape = {4}});
  Model first({a, b}, {layers::Dense(2, {.seed = 2})(inner(a)), inner(b)});
  save_layers_model(first, directory.string());
  Model second = load_layers_model((directory / "model.json").string());
  const Tensor x = random_normal({2, 4}, {.seed = 1}), z = random_normal({2, 4}, {.seed = 2});
  const auto one = first.predict_all({x, z}), two = second.predict_all({x, z});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(one[i].to_vector<float>(), two[i].to_vector<float>());
  fs::remove_all(directory);
}

class Damaged : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("plimsoll_damaged_model_test_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    Sequential model({layers::Dense(2, {.input_shape = {3}, .name = "only"})});
    save_layers_model(model, directory_.string());
    std::ifstream in(directory_ / "model.json");
    text_.assign(std::istreambuf_iterator<char>(in), {});
  }
  void TearDown() override { fs::remove_all(directory_); }
  void write(const std::string& text) const { std::ofstream(directory_ / "model.json") << text; }
  std::string replaced(const std::string& from, const std::string& to) const {
    std::string text = text_;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  std::string path() const { return (directory_ / "model.json").string(); }

  fs::path directory_;
  std::string text_;
};

TEST_F(Damaged, FilesAreRefusedByKindAndLeaveNothing) {
  LeakCheck check;
  const std::pair<std::string, std::string> changes[] = {
      {"\"units\":2", "\"units\":0"},
      {"\"units\":2", "\"units\":-3"},
      {"\"units\":2", "\"units\":\"2\""},
      {"\"units\":2", "\"units\":99999999999999"},
      {"\"shape\":[3,2]", "\"shape\":[2,3]"},
      {"\"shape\":[3,2]", "\"shape\":[3,2,1000000]"},
      {"only/kernel", "only/other"},
      {"weights.bin", "../weights.bin"},
      {"weights.bin", "/etc/passwd"},
      {"\"shape\":[2],\"dtype\":\"float32\"", "\"shape\":[2],\"dtype\":\"float31\""},
      {"\"layers\":[", "\"layers\":3,\"x\":["},
      {"\"use_bias\":true", "\"use_bias\":7"},
      {"\"activation\":\"linear\"", "\"activation\":\"none\""},
      {"VarianceScaling", "NoSuchThing"},
  };
  for (const auto& [from, to] : changes) {
    write(replaced(from, to));
    EXPECT_THROW(load_layers_model(path()), Corruption) << to;
  }
  write(text_.substr(0, text_.size() / 2));
  EXPECT_THROW(load_layers_model(path()), Corruption);
  write(std::string(100000, '['));
  EXPECT_THROW(load_layers_model(path()), Corruption);
  write(replaced("\"class_name\":\"Dense\"", "\"class_name\":\"Dance\""));
  EXPECT_THROW(load_layers_model(path()), Unsupported);
  write(replaced("layers-model", "graph-model"));
  EXPECT_THROW(load_layers_model(path()), Unsupported);
  EXPECT_THROW(load_layers_model((directory_ / "absent.json").string()), NotFound);
  write(text_);
  fs::resize_file(directory_ / "weights.bin", 8);
  EXPECT_THROW(load_layers_model(path()), Corruption);
  fs::remove(directory_ / "weights.bin");
  EXPECT_THROW(load_layers_model(path()), NotFound);
  check.expect_none();
}

TEST_F(Damaged, TensorsInJsonAreChecked) {
  for (const char* text : {"{}", "[{}]", "[{\"shape\":[2],\"dtype\":\"float32\",\"data\":[1]}]",
                           "[{\"shape\":[1],\"dtype\":\"float33\",\"data\":[1]}]",
                           "[{\"shape\":[1],\"dtype\":\"float32\",\"data\":[\"a\"]}]",
                           "[{\"shape\":[-5],\"dtype\":\"float32\",\"data\":[1]}]"}) {
    write(text);
    EXPECT_THROW(load_json_tensors(path()), Corruption) << text;
  }
  write("[{\"shape\":[2],\"dtype\":\"int32\",\"data\":[1,-2]}]");
  EXPECT_EQ(load_json_tensors(path())[0].to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, -2}));
}

}  // namespace
}  // namespace plimsoll
