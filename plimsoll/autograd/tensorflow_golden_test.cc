// Values and gradients of network operations, losses and optimizers against those of the real TensorFlow.
// testdata/golden/tensorflow.json is written by tools/golden_tensorflow, which says what is in it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/json.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/group_norm.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<Tensor>;
using Case = std::function<Tensor(const Tensors&, const Json& attributes)>;

Shape shape_of(const Json& sizes) { return Shape(sizes.get<std::vector<std::int64_t>>()); }

Tensor number(const Shape& shape, std::int64_t which) {
  std::vector<double> values(shape.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((static_cast<std::int64_t>(i) * 7919 + which * 104729) % 2003 - 1001) / 1001.0;
  return from_vector(values, shape);
}

SpatialSize pair_of(const Json& sizes) {
  if (sizes.is_number()) return sizes.get<std::int64_t>();
  return {sizes[0].get<std::int64_t>(), sizes[1].get<std::int64_t>()};
}

template <class F>
Case sequence(F f) {
  return [f](const Tensors& x, const Json& a) {
    SequenceOptions options = {.return_sequences = a["return_sequences"], .go_backwards = a["go_backwards"]};
    if (const auto mask = a["mask"].get<std::vector<int>>(); !mask.empty())
      options.mask = from_vector(mask, {x[0].shape()[0], x[0].shape()[1]}) > 0;
    return f(x[0], x[1], x[2], x[3], options).output;
  };
}

using Loss = Tensor (*)(const Tensor&, const Tensor&, const LossOptions&);
Case loss(Loss f) {
  return [f](const Tensors& x, const Json& a) {
    LossOptions options;
    const bool is_entropy = a.contains("label_smoothing");
    if (is_entropy) options = {.from_logits = true, .label_smoothing = a["label_smoothing"]};
    return f(is_entropy ? softmax(x[0]) : x[0], x[1], options).reshape({1});
  };
}

std::map<std::string, Case> all_cases() {
  std::map<std::string, Case> cases;
  cases["conv2d"] = [](const Tensors& x, const Json& a) {
    return conv2d(x[0], x[1], {pair_of(a["strides"]), a["padding"], pair_of(a["dilations"])});
  };
  cases["depthwise_conv2d"] = [](const Tensors& x, const Json& a) {
    return depthwise_conv2d(x[0], x[1], {pair_of(a["strides"]), a["padding"]});
  };
  cases["conv2d_transpose"] = [](const Tensors& x, const Json& a) {
    return conv2d_transpose(x[0], x[1], {pair_of(a["strides"]), a["padding"]});
  };
  cases["conv1d_causal"] = [](const Tensors& x, const Json& a) {
    return conv1d(x[0], x[1], {.padding = "causal", .dilations = a["dilations"]});
  };
  cases["max_pool2d"] = [](const Tensors& x, const Json& a) {
    return max_pool2d(x[0], pair_of(a["size"]), {pair_of(a["strides"]), a["padding"]});
  };
  cases["avg_pool2d"] = [](const Tensors& x, const Json& a) {
    return avg_pool2d(x[0], pair_of(a["size"]), {pair_of(a["strides"]), a["padding"]});
  };
  cases["batch_norm"] = [](const Tensors& x, const Json&) {
    return batch_norm_training(x[0], x[1], x[2], {.epsilon = 0.01}).y;
  };
  cases["layer_norm"] = [](const Tensors& x, const Json&) { return layer_norm(x[0], x[1], x[2], {.epsilon = 0.01}); };
  cases["group_norm"] = [](const Tensors& x, const Json&) {
    return group_norm(x[0], 3, x[1], x[2], {.epsilon = 0.01});
  };
  cases["simple_rnn"] = sequence(simple_rnn), cases["lstm"] = sequence(lstm), cases["gru"] = sequence(gru);
  cases["attention"] = [](const Tensors& x, const Json& a) {
    return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = a["causal"]});
  };
  cases["mean_squared_error"] = loss(mean_squared_error), cases["mean_absolute_error"] = loss(mean_absolute_error);
  cases["huber"] = loss(huber), cases["log_cosh"] = loss(log_cosh), cases["hinge"] = loss(hinge);
  cases["squared_hinge"] = loss(squared_hinge), cases["categorical_hinge"] = loss(categorical_hinge);
  cases["cosine_similarity"] = loss(cosine_similarity), cases["poisson"] = loss(poisson);
  cases["kl_divergence"] = loss(kl_divergence);
  cases["mean_squared_logarithmic_error"] = loss(mean_squared_logarithmic_error);
  cases["mean_absolute_percentage_error"] = loss(mean_absolute_percentage_error);
  cases["binary_cross_entropy"] = loss(binary_cross_entropy);
  cases["categorical_cross_entropy"] = loss(categorical_cross_entropy);
  return cases;
}

OptimizerOptions optimizer_named(const std::string& name) {
  const std::map<std::string, OptimizerOptions> known = {
      {"sgd", SGDOptions{.learning_rate = 0.1}},
      {"momentum", SGDOptions{.learning_rate = 0.1, .momentum = 0.9}},
      {"nesterov", SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}},
      {"rmsprop", RMSpropOptions{.learning_rate = 0.01}},
      {"rmsprop_centered", RMSpropOptions{.learning_rate = 0.01, .momentum = 0.8, .centered = true}},
      {"adagrad", AdagradOptions{.learning_rate = 0.1}},
      {"adadelta", AdadeltaOptions{.learning_rate = 1}},
      {"adam", AdamOptions{.learning_rate = 0.01}},
      {"adamw", AdamOptions{.learning_rate = 0.01, .weight_decay = 0.05}},
      {"adamax", AdamaxOptions{.learning_rate = 0.01}}};
  return known.at(name);
}

void expect_near(const Tensor& got, const Json& expected, const std::string& what, double tolerance = 1e-7) {
  const auto wanted = expected.get<std::vector<double>>();
  const auto values = got.to_vector<double>();
  ASSERT_EQ(values.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << what << ", element " << i;
}

void check_operation(const Case& operation, const Json& c, const std::string& what) {
  Tensors inputs;
  for (std::size_t i = 0; i < c["inputs"].size(); ++i) {
    const Tensor x = number(shape_of(c["inputs"][i]), static_cast<std::int64_t>(i) + 1);
    const auto positive = c["positive"].get<std::vector<std::size_t>>();
    inputs.push_back(std::ranges::count(positive, i) ? x * 0.5 + 1 : x);
  }
  GradientTape tape;
  for (const Tensor& x : inputs) tape.watch(x);
  const Tensor y = operation(inputs, c["attributes"]);
  ASSERT_EQ(y.shape(), shape_of(c["shape"])) << what;
  expect_near(y, c["y"], what);
  const std::vector<Tensor> gradients = tape.gradient((y * number(y.shape(), 50)).sum(), inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!c["gradients"][i].empty())
      expect_near(gradients[i], c["gradients"][i], what + ", gradient " + std::to_string(i));
}

TEST(TensorFlowGolden, ValuesAndGradientsAreTheSame) {
  std::ifstream file(TEST_DATA "/golden/tensorflow.json");
  const Json all = parse_json(file);
  ASSERT_GE(all.size(), 150u);
  const std::map<std::string, Case> cases = all_cases();
  for (const Json& c : all) {
    const std::string op = c["op"], what = op + " " + json_text(c["attributes"]) + " of " + json_text(c["inputs"]);
    if (op != "optimizer") {
      check_operation(cases.at(op), c, what);
      continue;
    }
    const Optimizer optimizer(optimizer_named(c["attributes"]["name"]));
    const Variable w(number({7}, 1));
    for (std::int64_t step = 0; step < 5; ++step) optimizer.apply({w}, {number({7}, 60 + step)});
    expect_near(w.value(), c["y"], what, 1e-6);  // Keras keeps rates and powers of beta in float32.
  }
}

}  // namespace
}  // namespace plimsoll
