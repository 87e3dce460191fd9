// Models of the real Keras with layers and options that TensorFlow.js has not: the same answers, the same training.
// testdata/golden/keras.json is written by tools/golden_keras, which says what is in it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "plimsoll/base/json.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;

Tensor filled(const Shape& shape, const std::function<double(std::int64_t)>& at) {
  std::vector<float> values(shape.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(at(static_cast<std::int64_t>(i)));
  return from_vector(values, shape);
}

double pattern(std::int64_t i, std::int64_t which) {
  return static_cast<double>((i * 7919 + which * 104729) % 2003 - 1001) / 1001.0;
}

Shape shape_of(const Json& json) { return Shape(json.get<std::vector<std::int64_t>>()); }

void set_weights(const Model& model, const Json& names) {
  std::map<std::string, Variable> weights;
  for (const Variable& weight : model.weights()) weights.emplace(weight.name(), weight);
  ASSERT_EQ(weights.size(), names.size());
  for (std::size_t s = 0; s < names.size(); ++s) {
    const auto name = names[s].get<std::string>();
    const auto found = weights.find(name);
    ASSERT_NE(found, weights.end()) << name << " is not there, but " << weights.begin()->first;
    const bool scales = name.find("gamma") != std::string::npos || name.find("variance") != std::string::npos;
    found->second.assign(filled(found->second.shape(), [&](std::int64_t i) {
      return (scales ? 1 : 0) + pattern(i, 11 + static_cast<std::int64_t>(s)) / 2;
    }));
  }
}

void expect_answers(const Json& one, const std::vector<Tensor>& answers) {
  ASSERT_EQ(answers.size(), one["answers"].size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].shape(), shape_of(one["shapes"][i]));
    const auto ours = answers[i].to_vector<float>();
    const auto theirs = one["answers"][i].get<std::vector<double>>();
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t k = 0; k < ours.size(); ++k)
      EXPECT_NEAR(ours[k], theirs[k], 2e-6 + 2e-6 * std::abs(theirs[k])) << "answer " << i << ", element " << k;
  }
}

TEST(KerasGolden, AnswersAndTrainsAsKerasDoes) {
  std::ifstream file(TEST_DATA "/golden/keras.json");
  const Json cases = parse_json(file);
  ASSERT_GE(cases.size(), 18u);
  const auto path = std::filesystem::temp_directory_path() / ("plimsoll_keras_golden_" + std::to_string(getpid()));
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    std::ofstream(path) << json_text(one["model"]);
    Model model = load_layers_model(path.string());
    set_weights(model, one["weights"]);
    Example batch;
    for (std::size_t i = 0; i < one["inputs"].size(); ++i)
      batch.inputs.push_back(filled(shape_of(one["inputs"][i]), [&](std::int64_t k) {
        return one["whole"] ? static_cast<double>(k * 7 % 5) : pattern(k, 1 + static_cast<std::int64_t>(i));
      }));
    const std::vector<Tensor> answers = model.predict_all(batch.inputs);
    expect_answers(one, answers);
    for (const Tensor& answer : answers)
      batch.targets.push_back(filled(answer.shape(), [](std::int64_t k) { return 0.3 * std::sin(k); }));
    model.compile({.optimizer = optimizers::Adam({.learning_rate = 0.01f}), .loss = "mse"});
    for (const Json& loss : one["losses"]) {
      const double theirs = loss.get<double>();
      EXPECT_NEAR(model.train_on_batch(batch)["loss"], theirs, 5e-6 + 2e-5 * std::abs(theirs));
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace plimsoll
