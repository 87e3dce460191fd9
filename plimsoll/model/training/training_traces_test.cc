// Ten steps of each optimizer compared with the real TF.js: losses and final weights.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/json.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Optimizer optimizer_of(const std::string& name, const Json& config) {
  const double rate = config.at("learningRate");
  const auto number = [&](const char* key, double otherwise) { return config.value(key, otherwise); };
  if (name == "sgd") return optimizers::SGD({.learning_rate = rate, .tfjs = true});
  if (name == "momentum" || name == "momentum_nesterov")
    return optimizers::SGD({.learning_rate = rate,
                            .momentum = number("momentum", 0),
                            .nesterov = config.value("useNesterov", false),
                            .tfjs = true});
  if (name == "rmsprop" || name == "rmsprop_centered")
    return optimizers::RMSprop({.learning_rate = rate,
                                .rho = number("decay", 0.9),
                                .momentum = number("momentum", 0),
                                .epsilon = number("epsilon", 1e-7),
                                .centered = config.value("centered", false),
                                .tfjs = true});
  if (name == "adam")
    return optimizers::Adam({.learning_rate = rate,
                             .beta_1 = number("beta1", 0),
                             .beta_2 = number("beta2", 0),
                             .epsilon = number("epsilon", 0),
                             .tfjs = true});
  if (name == "adamax")
    return optimizers::Adamax({.learning_rate = rate,
                               .beta_1 = number("beta1", 0),
                               .beta_2 = number("beta2", 0),
                               .epsilon = number("epsilon", 0)});
  if (name == "adagrad")
    return optimizers::Adagrad(
        {.learning_rate = rate, .initial_accumulator_value = number("initialAccumulatorValue", 0.1)});
  return optimizers::Adadelta(
      {.learning_rate = rate, .rho = number("rho", 0.95), .epsilon = number("epsilon", 1e-7), .tfjs = true});
}

Tensor tensor_of(const Json& in) {
  return from_vector(in.at("data").get<std::vector<float>>(), Shape(in.at("shape").get<std::vector<std::int64_t>>()));
}

// Adadelta's first steps divide by the root of epsilon: begun half a unit in the last place elsewhere and computed in
// f64 throughout, the trace ends 4e-4 apart (median of 20, at most 9e-4).
double tolerance_of(const std::string& optimizer) { return optimizer == "adadelta" ? 3e-3 : 1e-4; }

TEST(TrainingTraces, AreThoseOfTensorFlowJs) {
  const fs::path root = fs::path(TEST_DATA) / "tfjs/training-traces";
  const auto rows = parse_json(std::ifstream(root / "iris.json")).get<std::vector<std::vector<float>>>();
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().filename() == "iris.json") continue;
    const Json trace = parse_json(std::ifstream(entry.path()));
    const std::string name = trace.at("optimizer");
    SCOPED_TRACE(name);
    Sequential model(
        {layers::Dense(6, {.activation = "tanh", .input_shape = {4}}), layers::Dense(3, {.activation = "softmax"})});
    model.compile({.optimizer = optimizer_of(name, trace.at("config")), .loss = "categorical_crossentropy"});
    const auto weights = model.weights();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i].assign(tensor_of(trace.at("initialWeights")[i]));
    for (std::size_t step = 0; step < 10; ++step) {
      std::vector<float> x;
      std::vector<std::int32_t> labels;
      for (std::size_t k = 0; k < 16; ++k) {
        const auto& row = rows[(step * 16 + k * 37) % 150];
        x.insert(x.end(), row.begin(), row.begin() + 4);
        labels.push_back(static_cast<std::int32_t>(row[4]));
      }
      const float loss = model.train_on_batch(from_vector(x, {16, 4}), one_hot(from_vector(labels), 3))["loss"];
      EXPECT_NEAR(loss, trace.at("losses")[step].get<float>(), tolerance_of(name)) << "step " << step;
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto got = weights[i].value().to_vector<float>();
      const auto want = trace.at("finalWeights")[i].at("data").get<std::vector<float>>();
      for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], tolerance_of(name));
    }
    ++seen;
  }
  EXPECT_EQ(seen, 9);
}

}  // namespace
}  // namespace plimsoll
