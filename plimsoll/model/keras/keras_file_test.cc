#include "plimsoll/model/keras/keras_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/io/archive.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::string fixture(const std::string& name) { return fmt::format("{}/keras/{}", TEST_DATA, name); }

// As tools/golden_keras3 makes them.
Tensor input(const std::vector<std::int64_t>& sizes, int which, bool whole) {
  const Shape shape(sizes);
  std::vector<float> values;
  for (std::size_t i = 0; i < shape.size(); ++i)
    values.push_back(
        whole ? static_cast<float>(i * 7 % 5)
              : static_cast<float>((static_cast<double>((i * 7919 + which * 104729u) % 2003) - 1001) / 1001));
  return from_vector(values, shape);
}

class KerasFile : public testing::Test {
 protected:
  KerasFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "plimsoll_keras_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~KerasFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // An archive with this configuration, and weights of one layer.
  std::string with_config(const std::string& config) const {
    Hdf5Writer writer("test");
    writer.add("layers/dense/vars/0", zeros({3, 2}));
    std::vector<std::pair<std::string, std::string>> texts;
    texts.emplace_back("config.json", config);
    save_archive(path("made.keras"), texts, "model.weights.h5", writer);
    return path("made.keras");
  }
  template <class E>
  std::string message(const std::string& file, const LoadKerasOptions& options = {}) const {
    try {
      load_keras(file, options);
    } catch (const E& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  std::string folder_;
};

struct Expected {
  std::string name;
  Json json;
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> result;
    for (std::size_t i = 0; i < json["inputs"].size(); ++i)
      result.push_back(input(json["inputs"][i], static_cast<int>(i) + 1, json["whole"].get<bool>()));
    return result;
  }
};

std::vector<Expected> all_expected() {
  const Json all = parse_json(read_file(fixture("expected.json"), 16_MiB));
  std::vector<Expected> result;
  for (const auto& [name, json] : all.items()) result.push_back({name, json});
  return result;
}

void expect_answers(const Model& model, const Expected& expected) {
  const std::vector<Tensor> answers = model.predict_all(expected.inputs());
  ASSERT_EQ(answers.size(), expected.json["answers"].size());
  for (std::size_t k = 0; k < answers.size(); ++k) {
    const std::vector<double> wanted = expected.json["answers"][k];
    ASSERT_EQ(answers[k].size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(answers[k].data<float>()[i], wanted[i], 2e-6) << i;
  }
}

void expect_losses(Model& model, const Expected& expected) {
  const std::vector<double> wanted = expected.json["losses"];
  EXPECT_EQ(model.is_compiled(), !wanted.empty());
  std::vector<Tensor> targets;
  for (const Json& shape : expected.json["shapes"]) {
    std::vector<float> values;
    const Shape sizes(shape.get<std::vector<std::int64_t>>());
    for (std::size_t i = 0; i < sizes.size(); ++i)
      values.push_back(static_cast<float>(0.3 * std::sin(static_cast<double>(i))));
    targets.push_back(from_vector(values, sizes));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Logs logs = model.train_on_batch({expected.inputs(), targets});
    ASSERT_NEAR(logs["loss"], wanted[i], 2e-5 * std::max(1.0, std::abs(wanted[i]))) << "step " << i;
  }
}

TEST_F(KerasFile, PredictsAndTrainsAsKerasDoes) {
  for (const Expected& expected : all_expected()) {
    SCOPED_TRACE(expected.name);
    Model model = load_keras(fixture(expected.name));
    expect_answers(model, expected);
    expect_losses(model, expected);
  }
}

TEST_F(KerasFile, RestoresWhatItSaved) {
  for (const Expected& expected : all_expected()) {
    SCOPED_TRACE(expected.name);
    save_keras(load_keras(fixture(expected.name)), path("saved.keras"));
    Model again = load_keras(path("saved.keras"));
    expect_answers(again, expected);
    expect_losses(again, expected);
  }
}

TEST_F(KerasFile, ModelsMadeHereWithoutAnInputAreSavedUnderKerasNames) {
  Sequential made({layers::Dense(4, {.activation = "relu", .input_shape = {3}}), layers::Dense(2)});
  save_keras(made, path("made.keras"));
  const Hdf5File weights = Archive(path("made.keras")).hdf5("model.weights.h5");
  for (const char* name : {"layers/dense/vars/0", "layers/dense/vars/1", "layers/dense_1/vars/0"})
    EXPECT_TRUE(weights.has(name)) << name;
  Model again = load_keras(path("made.keras"));
  const Tensor x = input({5, 3}, 0, false);
  EXPECT_EQ(again.predict(x).to_vector<float>(), made.predict(x).to_vector<float>());
}

TEST_F(KerasFile, WeightsStayOnTheFilesPagesUntilTheyChange) {
  Sequential made({layers::Dense(256, {.input_shape = {64}}), layers::Dense(1)});
  made.compile({.optimizer = "sgd", .loss = "mse"});
  save_keras(made, path("mapped.keras"));
  const std::size_t before = memory().num_bytes;
  Model model = load_keras(path("mapped.keras"));
  EXPECT_EQ(memory().num_bytes, before);
  const Tensor x = ones({2, 64}), y = zeros({2, 1});
  const Tensor first = model.predict(x), same = made.predict(x);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(first.data<float>()[i], same.data<float>()[i]);
  const std::string bytes = read_file(path("mapped.keras"), 1_MiB);
  const std::size_t asked = memory().num_bytes;
  model.train_on_batch(x, y);
  EXPECT_GE(memory().num_bytes, asked + 64 * 256 * 4);  // Charged now.
  EXPECT_EQ(read_file(path("mapped.keras"), 1_MiB), bytes);
  EXPECT_NE(model.predict(x).data<float>()[0], first.data<float>()[0]);
}

TEST_F(KerasFile, TakesNoMemoryForWeightsThatAreNotAskedFor) {
  const std::size_t before = memory().num_bytes;
  const Model model = load_keras(fixture("recurrent.keras"), {.weights = false, .compile = false});
  EXPECT_EQ(memory().num_bytes, before);
  EXPECT_FALSE(model.is_compiled());
  EXPECT_EQ(model.output_shapes()[0], Shape({-1, 1}));
}

TEST_F(KerasFile, LoadsWhateverTheFileIs) {
  EXPECT_TRUE(is_keras_file(fixture("dense.keras")));
  EXPECT_TRUE(is_keras_file(fixture("legacy.h5")));
  EXPECT_FALSE(is_keras_file(fixture("expected.json")));
  EXPECT_FALSE(is_keras_file(path("missing")));
  EXPECT_TRUE(load_model(fixture("legacy.h5")).is_compiled());
  EXPECT_EQ(load_model(fmt::format("{}/tfjs/iris-dense/model.json", TEST_DATA)).output_shapes().size(), 1u);
  EXPECT_THAT(keras_file_config(fixture("legacy.h5")), HasSubstr("Sequential"));
  EXPECT_THAT(keras_file_config(fixture("dense.keras")), HasSubstr("Sequential"));
}

TEST_F(KerasFile, RefusesWhatIsNone) {
  EXPECT_THROW(load_keras(path("missing")), NotFound);
  EXPECT_THROW(load_keras(folder_), InvalidArgument);
  EXPECT_THAT(message<Corruption>(fixture("expected.json")), HasSubstr("neither an archive"));
  EXPECT_THAT(message<Unsupported>(fmt::format("{}/hdf5/plain.h5", TEST_DATA)), HasSubstr("no model_config"));
  std::ofstream(path("cut.keras")) << read_file(fixture("dense.keras"), 1_MiB).substr(0, 2000);
  EXPECT_THAT(message<Corruption>(path("cut.keras")), HasSubstr("not a zip archive"));
}

TEST_F(KerasFile, NamesWhatIsWrongInTheConfiguration) {
  EXPECT_THAT(message<Corruption>(with_config("{")), HasSubstr("not valid JSON at offset"));
  EXPECT_THAT(message<Corruption>(with_config("{}")), HasSubstr("expected class_name and config"));
  EXPECT_THAT(message<Unsupported>(with_config(R"({"class_name": "Mine", "config": {}})")),
              HasSubstr("a model of class \"Mine\""));
  const auto sequential = [&](const std::string& layers, const std::string& more = "") {
    return with_config(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [)" + layers + "]}" + more +
                       "}");
  };
  const std::string in = R"({"class_name": "InputLayer", "config": {"batch_shape": [null, 3], "name": "i"}})";
  const std::string dense = R"(, {"class_name": "Dense", "config": {"name": "d", "units": 2)";
  EXPECT_THAT(message<Corruption>(sequential(R"({"class_name": "Dense", "config": {"units": 2}})")),
              HasSubstr("shape of the input is not known"));
  EXPECT_THAT(message<Corruption>(sequential(in + dense + "}}")),
              HasSubstr("1 weight of the model is not in the file"));
  EXPECT_THAT(message<Corruption>(sequential(in + R"(, {"class_name": "Dense", "config": {"name": "d", "units": 4}})")),
              HasSubstr("weight \"layers/dense/vars/0\" is float of 4 bytes [3, 2]"));
  EXPECT_THAT(message<Unsupported>(
                  sequential(in + R"(, {"module": "keras.src.ops.numpy", "class_name": "Add", "config": {}})")),
              HasSubstr("is an operation"));
  const std::string good = in + dense + R"(, "use_bias": false}})";
  EXPECT_EQ(load_keras(sequential(good)).weights().size(), 1u);
  const auto compiled = [&](const std::string& config) { return sequential(good, R"(, "compile_config": )" + config); };
  EXPECT_FALSE(load_keras(compiled(R"({"optimizer": null, "loss": null})")).is_compiled());
  EXPECT_TRUE(load_keras(compiled(R"({"optimizer": "adam", "loss": "mse", "metrics": ["mae"]})")).is_compiled());
  for (const char* config :
       {R"({"optimizer": {"class_name": "Lion", "config": {}}, "loss": "mse"})",
        R"({"optimizer": {"class_name": "Adam", "config": {"amsgrad": true}}, "loss": "mse"})",
        R"({"optimizer": {"class_name": "SGD", "config": {"weight_decay": 0.1}}, "loss": "mse"})",
        R"({"optimizer": {"class_name": "SGD", "config": {"decay": 0.1}}, "loss": "mse"})",
        R"({"optimizer": {"class_name": "SGD", "config": {"learning_rate": {}}}, "loss": "mse"})",
        R"({"optimizer": [], "loss": "mse"})", R"({"optimizer": "adam", "loss": "mine"})",
        R"({"optimizer": "adam", "loss": {"class_name": "MeanSquaredError", "config": {"reduction": "sum"}}})",
        R"({"optimizer": "adam", "loss": {"class_name": "BinaryCrossentropy", "config": {"axis": 1}}})",
        R"({"optimizer": "adam", "loss": "mse", "metrics": ["mine"]})"}) {
    EXPECT_NE(message<Unsupported>(compiled(config)), "nothing was thrown") << config;
    EXPECT_FALSE(load_keras(path("made.keras"), {.compile = false}).is_compiled());
  }
  for (const char* config : {R"({"optimizer": "adam", "loss": {"other": "mse"}})",
                             R"({"optimizer": "adam", "loss": "mse", "loss_weights": ["x"]})",
                             R"({"optimizer": "adam", "loss": ["mse", "mse"]})"})
    EXPECT_NE(message<Corruption>(compiled(config)), "nothing was thrown") << config;
}

TEST_F(KerasFile, NamesWhatIsWrongInCalls) {
  const auto called = [&](const std::string& node) {
    return with_config(R"({"class_name": "Functional", "config": {"name": "f", "layers": [
      {"class_name": "InputLayer", "name": "i", "config": {"batch_shape": [null, 3], "name": "i"}, "inbound_nodes": []},
      {"class_name": "Dense", "name": "d", "config": {"name": "d", "units": 2, "use_bias": false}, "inbound_nodes": [)" +
                       node + R"(]}], "input_layers": [["i", 0, 0]], "output_layers": [["d", 0, 0]]}})");
  };
  const std::string x =
      R"({"class_name": "__keras_tensor__", "config": {"shape": [null, 3], "dtype": "float32", "keras_history": ["i", 0, 0]}})";
  EXPECT_EQ(
      load_keras(called(R"({"args": [)" + x + R"(], "kwargs": {"training": false, "mask": null}})")).weights().size(),
      1u);
  EXPECT_THAT(message<Corruption>(called(R"({"args": []})")), HasSubstr("expected args and kwargs"));
  EXPECT_THAT(message<Corruption>(called(R"({"args": [], "kwargs": {}})")), HasSubstr("a call without tensors"));
  EXPECT_THAT(message<Unsupported>(called(R"({"args": [)" + x + R"(, 2.0], "kwargs": {}})")),
              HasSubstr("neither a tensor"));
  EXPECT_THAT(message<Unsupported>(called(R"({"args": [)" + x + R"(], "kwargs": {"training": true}})")),
              HasSubstr("a call with \"training\""));
}

TEST_F(KerasFile, RefusesToSaveWhatKerasDoesNotHave) {
  Sequential unbuilt({layers::Dense(2)});
  EXPECT_THROW(save_keras(unbuilt, path("no.keras")), FailedPrecondition);
  Sequential model({layers::Dense(2, {.input_shape = {3}})});
  model.compile({.optimizer = "adam", .loss = Loss("mine", [](const Tensor& y, const Tensor& p) { return y - p; })});
  EXPECT_THROW(save_keras(model, path("no.keras")), Unsupported);
  EXPECT_FALSE(std::filesystem::exists(path("no.keras")));
  save_keras(model, path("yes.keras"), {.include_optimizer = false});
  EXPECT_FALSE(load_keras(path("yes.keras")).is_compiled());
}

// A real file of Keras' own tests, where it is at hand.
TEST_F(KerasFile, ReadsTheWeightsOfAPublicFile) {
  const std::string file = std::string(SHARED_DATA) +
                           "/fetched/keras_v3/keras/keras/src/saving/test_data/pre_pr22362_nested_container.keras";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "the public file is not here";
  const Hdf5File weights = Archive(file).hdf5("model.weights.h5");
  for (const Hdf5Entry& entry : weights.entries()) EXPECT_EQ(weights.read(entry.name).nbytes(), entry.size);
  EXPECT_THROW(load_keras(file), Unsupported);  // A model of a class of its own.
}

}  // namespace
}  // namespace plimsoll
