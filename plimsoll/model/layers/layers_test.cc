// Every layer: the shape it says is the shape it gives, a step trains it, files give it back, nothing is left over.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/layers/attention_layers.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/norm.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/leak_check.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  Layer layer;
  Shape input;  // Without the batch.
  int inputs = 1;
};

std::vector<Case> plain_cases() {
  return {
      {"Dense", layers::Dense(3, {.activation = "gelu"}), {4}},
      {"Dense of a sequence", layers::Dense(3, {.activation = "softmax", .use_bias = false}), {5, 4}},
      {"Dropout", layers::Dropout(0.5), {4}},
      {"SpatialDropout1D", layers::SpatialDropout1D(0.5), {5, 4}},
      {"SpatialDropout2D", layers::SpatialDropout2D(0.5), {5, 4, 2}},
      {"GaussianNoise", layers::GaussianNoise(0.5), {4}},
      {"GaussianDropout", layers::GaussianDropout(0.5), {4}},
      {"AlphaDropout", layers::AlphaDropout(0.5), {4}},
      {"Activation", layers::Activation("mish"), {4}},
      {"Flatten", layers::Flatten(), {2, 3, 4}},
      {"Reshape", layers::Reshape({4, -1}), {2, 6}},
      {"Permute", layers::Permute({3, 1, 2}), {2, 3, 4}},
      {"RepeatVector", layers::RepeatVector(3), {4}},
      {"Masking", layers::Masking(), {5, 4}},
      {"ReLU", layers::ReLU({.max_value = 1, .negative_slope = 0.1, .threshold = 0.2}), {4}},
      {"LeakyReLU", layers::LeakyReLU(0.1), {4}},
      {"PReLU", layers::PReLU(), {4}},
      {"ELU", layers::ELU(0.5), {4}},
      {"ThresholdedReLU", layers::ThresholdedReLU(0.5), {4}},
      {"Softmax", layers::Softmax(), {4}},
      {"BatchNormalization", layers::BatchNormalization(), {5, 4}},
      {"LayerNormalization", layers::LayerNormalization(), {5, 4}},
      {"Add", layers::Add(), {4}, 3},
      {"Subtract", layers::Subtract(), {4}, 2},
      {"Multiply", layers::Multiply(), {4}, 2},
      {"Average", layers::Average(), {4}, 3},
      {"Maximum", layers::Maximum(), {4}, 2},
      {"Minimum", layers::Minimum(), {4}, 2},
      {"Concatenate", layers::Concatenate({.axis = 1}), {5, 4}, 2},
      {"Dot", layers::Dot({1}, {.normalize = true}), {4}, 2},
      {"MultiHeadAttention", layers::MultiHeadAttention(2, 3, {.causal = true}), {5, 4}, 2},
  };
}

std::vector<Case> window_cases() {
  return {
      {"Conv1D", layers::Conv1D(3, 2, {.strides = 2, .padding = "same", .activation = "relu"}), {7, 4}},
      {"Conv1D causal", layers::Conv1D(3, 2, {.padding = "causal", .dilation_rate = 2}), {7, 4}},
      {"Conv2D", layers::Conv2D(3, {2, 3}, {.padding = "same", .activation = "elu"}), {6, 5, 4}},
      {"Conv2D groups", layers::Conv2D(4, 3, {.strides = 2, .activation = "relu", .groups = 2}), {6, 5, 4}},
      {"DepthwiseConv2D", layers::DepthwiseConv2D({2, 2}, {.depth_multiplier = 2}), {6, 5, 4}},
      {"SeparableConv2D", layers::SeparableConv2D(3, 2, {.padding = "same"}), {6, 5, 4}},
      {"Conv2DTranspose", layers::Conv2DTranspose(3, {3, 2}, {.strides = 2}), {3, 4, 2}},
      {"Conv2DTranspose same", layers::Conv2DTranspose(3, 3, {.strides = 2, .padding = "same"}), {3, 4, 2}},
      {"ZeroPadding2D", layers::ZeroPadding2D({1, 2}, {0, 3}), {3, 4, 2}},
      {"Cropping2D", layers::Cropping2D({1, 0}, {1, 1}), {3, 4, 2}},
      {"UpSampling1D", layers::UpSampling1D(2), {3, 4}},
      {"UpSampling2D", layers::UpSampling2D({2, 3}), {3, 4, 2}},
      {"MaxPooling1D", layers::MaxPooling1D(2), {5, 4}},
      {"MaxPooling2D", layers::MaxPooling2D({2, 2}), {6, 5, 4}},
      {"AveragePooling1D", layers::AveragePooling1D(3, {.strides = 1, .padding = "same"}), {5, 4}},
      {"AveragePooling2D", layers::AveragePooling2D(2, {.strides = 1}), {6, 5, 4}},
      {"GlobalMaxPooling1D", layers::GlobalMaxPooling1D(), {5, 4}},
      {"GlobalMaxPooling2D", layers::GlobalMaxPooling2D({.keep_dims = true}), {6, 5, 4}},
      {"GlobalAveragePooling1D", layers::GlobalAveragePooling1D(), {5, 4}},
      {"GlobalAveragePooling2D", layers::GlobalAveragePooling2D(), {6, 5, 4}},
      {"SimpleRNN", layers::SimpleRNN(3), {5, 4}},
      {"LSTM", layers::LSTM(3, {.return_sequences = true, .go_backwards = true}), {5, 4}},
      {"LSTM with states", layers::LSTM(3, {.return_state = true, .dropout = 0.2}), {5, 4}},
      {"GRU", layers::GRU(3), {5, 4}},
      {"GRU with recurrent dropout", layers::GRU(3, {.return_sequences = true, .recurrent_dropout = 0.3}), {5, 4}},
      {"Bidirectional", layers::Bidirectional(layers::GRU(3, {.return_sequences = true})), {5, 4}},
      {"Bidirectional sum", layers::Bidirectional(layers::SimpleRNN(3), {.merge_mode = "sum"}), {5, 4}},
      {"Bidirectional none",
       layers::Bidirectional(layers::LSTM(3, {.return_state = true}), {.merge_mode = "none"}),
       {5, 4}},
      {"TimeDistributed", layers::TimeDistributed(layers::Dense(3, {.activation = "tanh"})), {5, 4}},
  };
}

Model model_around(const Case& test) {
  std::vector<LayerOutput> inputs;
  for (int i = 0; i < test.inputs; ++i) inputs.push_back(Input({.shape = test.input}));
  return Model(inputs, test.layer.outputs(inputs));
}

void check_case(const Case& test) {
  SCOPED_TRACE(test.name);
  Model model = model_around(test);
  std::vector<std::int64_t> sizes = {6};
  sizes.insert(sizes.end(), test.input.begin(), test.input.end());
  std::vector<Tensor> inputs;
  for (int i = 0; i < test.inputs; ++i)
    inputs.push_back(random_normal(Shape(sizes), {.seed = 10 + static_cast<std::uint64_t>(i)}));
  LeakCheck check;
  {
    const std::vector<Tensor> outputs = model.predict_all(inputs);
    Shapes given;
    for (const Tensor& input : inputs) given.push_back(input.shape());
    const Shapes said = test.layer.base().output_shapes(given);
    ASSERT_EQ(outputs.size(), said.size());
    for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(outputs[i].shape(), said[i]);

    const fs::path directory = fs::temp_directory_path() / ("plimsoll_layers_test_" + std::to_string(getpid()));
    save_layers_model(model, directory.string());
    Model again = load_layers_model((directory / "model.json").string());
    fs::remove_all(directory);
    const std::vector<Tensor> same = again.predict_all(inputs);
    for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(same[i].to_vector<float>(), outputs[i].to_vector<float>());

    again.compile({.optimizer = "sgd", .loss = "mse"});
    Example batch{.inputs = inputs, .targets = {}};
    for (const Tensor& output : outputs) batch.targets.push_back(output + random_normal(output.shape(), {.seed = 3}));
    std::vector<std::vector<float>> before;
    for (const Variable& weight : again.trainable_weights()) before.push_back(weight.value().to_vector<float>());
    EXPECT_TRUE(std::isfinite(again.train_on_batch(batch)["loss"]));
    bool changed = before.empty();
    for (std::size_t i = 0; i < before.size(); ++i)
      changed = changed || again.trainable_weights()[i].value().to_vector<float>() != before[i];
    EXPECT_TRUE(changed);
  }
  check.expect_none();
}

TEST(Layers, KeepTheirPromises) {
  for (const Case& test : plain_cases()) check_case(test);
}
TEST(Layers, OfWindowsAndTimeKeepTheirPromises) {
  for (const Case& test : window_cases()) check_case(test);
}

TEST(Layers, RefuseShapesAndOptionsThatAreNone) {
  const Input flat({.shape = {4}}), image({.shape = {4, 4, 3}});
  EXPECT_THROW(layers::Conv2D(3, 5)(image), InvalidArgument);
  EXPECT_THROW(layers::Conv2D(3, 2)(flat), InvalidArgument);
  EXPECT_THROW(layers::Conv2D(0, 2), InvalidArgument);
  EXPECT_THROW(layers::Conv2D(3, 2, {.padding = "full"}), InvalidArgument);
  EXPECT_THROW(layers::LSTM(3)(flat), InvalidArgument);
  EXPECT_THROW(layers::LSTM(3, {.activation = "softmax"}), InvalidArgument);
  EXPECT_THROW(layers::Bidirectional(layers::Dense(3)), InvalidArgument);
  EXPECT_THROW(layers::Bidirectional(layers::LSTM(3), {.merge_mode = "both"}), InvalidArgument);
  EXPECT_THROW(layers::GRU(3, {.recurrent_dropout = 1}), InvalidArgument);
  EXPECT_THROW(layers::Permute({1, 1}), InvalidArgument);
  EXPECT_THROW(layers::Reshape({3, -1})(flat), InvalidArgument);
  EXPECT_THROW(layers::Add()(flat), InvalidArgument);
  EXPECT_THROW(layers::Concatenate()({flat, image}), InvalidArgument);
  EXPECT_THROW(layers::MaxPooling2D(5)(image), InvalidArgument);
  EXPECT_THROW(layers::BatchNormalization({.momentum = 2}), InvalidArgument);
  EXPECT_THROW(Initializer("glorot"), InvalidArgument);
  EXPECT_THROW(Regularizer::l2(-1), InvalidArgument);
}

TEST(Layers, EmbeddingMasksWhatStandsForNothing) {
  Sequential model({layers::Embedding(10, 4, {.mask_zero = true, .seed = 1}), layers::LSTM(3, {.seed = 2})});
  const Tensor longer = constant({{5, 7, 0, 0}}), shorter = constant({{5, 7}});
  EXPECT_EQ(model.predict(longer).to_vector<float>(), model.predict(shorter).to_vector<float>());
  Sequential mean({layers::Embedding(10, 4, {.mask_zero = true, .seed = 1}), layers::GlobalAveragePooling1D()});
  const auto a = mean.predict(longer).to_vector<float>(), b = mean.predict(shorter).to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-7);
}

TEST(Layers, StatefulOnesGoOnWhereTheyStood) {
  Sequential whole({layers::GRU(3, {.seed = 1})}), parts({layers::GRU(3, {.stateful = true, .seed = 1})});
  const Tensor x = random_normal({2, 6, 4}, {.seed = 1});
  const auto expected = whole.predict(x).to_vector<float>();
  parts.predict(x.slice({0, 0, 0}, {2, 3, 4}));
  const auto second = parts.predict(x.slice({0, 3, 0}, {2, 3, 4})).to_vector<float>();
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(second[i], expected[i], 1e-6);
  EXPECT_THROW(parts.predict(random_normal({3, 3, 4})), InvalidArgument);
  parts.reset_states();
  EXPECT_NO_THROW(parts.predict(random_normal({3, 3, 4})));
}

// State that is only handed on: after three steps what is kept of it has been scaled three times, the rest is 0.
TEST(Layers, RecurrentDropoutDropsTheSameUnitsAtEveryStep) {
  const RecurrentOptions options{.activation = "linear",
                                 .seed = 1,
                                 .use_bias = false,
                                 .recurrent_dropout = 0.5,
                                 .kernel_initializer = "zeros",
                                 .recurrent_initializer = "identity"};
  const Input x({.shape = {3, 2}}), state({.shape = {40}});
  Model model({x, state}, {layers::SimpleRNN(40, options)({x, state})});
  const std::vector<Tensor> inputs = {zeros({2, 3, 2}), ones({2, 40})};
  EXPECT_EQ(model.predict_all(inputs)[0].to_vector<float>(), std::vector<float>(80, 1.f));
  CallContext training(true);
  const auto values = model.base().call_all(inputs, training)[0].to_vector<float>();
  const auto kept = std::count(values.begin(), values.end(), 8.f),
             dropped = std::count(values.begin(), values.end(), 0.f);
  EXPECT_EQ(kept + dropped, 80);
  EXPECT_GT(kept, 20);
  EXPECT_GT(dropped, 20);
  // Steps that a mask leaves out keep their state whole.
  Sequential masked({layers::Embedding(4, 2, {.mask_zero = true, .seed = 1}), layers::SimpleRNN(40, options)});
  masked.predict(constant({{1, 0, 0}}));
  CallContext again(true);
  EXPECT_EQ(masked.base().call_all({constant({{0, 0, 0}})}, again)[0].to_vector<float>(), std::vector<float>(40, 0.f));
}

TEST(Layers, BatchNormMovesItsAveragesInTrainingOnly) {
  Sequential model({layers::BatchNormalization({.momentum = 0.5, .input_shape = {2}})});
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mse"});
  const Tensor x = constant({{1.f, 2.f}, {3.f, 6.f}});
  model.predict(x);
  EXPECT_EQ(model.weights()[2].value().to_vector<float>(), (std::vector<float>{0, 0}));
  model.train_on_batch(x, x);
  EXPECT_EQ(model.weights()[2].name(), "batch_normalization/moving_mean");
  EXPECT_EQ(model.weights()[2].value().to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(model.weights()[3].value().to_vector<float>(), (std::vector<float>{1, 2.5}));
  model.set_trainable(false);
  model.train_on_batch(x, x);
  EXPECT_EQ(model.weights()[2].value().to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Initializer, FillsAsKerasDoes) {
  const Tensor orthogonal = Initializer("orthogonal").make({8, 5}, 3);
  const Tensor product = (orthogonal.transpose().expand_dims(2) * orthogonal.expand_dims(0)).sum({1});
  const auto values = product.to_vector<float>();
  for (std::size_t i = 0; i < 25; ++i) EXPECT_NEAR(values[i], i % 6 == 0 ? 1 : 0, 1e-5);
  const float limit = std::sqrt(6.f / 300);
  const auto uniform = Initializer("glorot_uniform").make({100, 200}, 1).to_vector<float>();
  EXPECT_LE(*std::max_element(uniform.begin(), uniform.end()), limit);
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -limit);
  EXPECT_GT(*std::max_element(uniform.begin(), uniform.end()), 0.99f * limit);
  const Tensor normal = Initializer("he_normal").make({3, 3, 50, 100}, 1);
  EXPECT_NEAR(moments(normal).variance.item<float>(), 2.0 / 450, 2e-4);
  EXPECT_EQ(Initializer("identity").make({2, 3}).to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  EXPECT_THROW(Initializer("orthogonal").make({4}), InvalidArgument);
  Sequential lstm({layers::LSTM(2, {.input_shape = {3, 1}})});
  EXPECT_EQ(lstm.weights()[2].value().to_vector<float>(), (std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(Regularizer, AddsToTheLossAndConstraintsHold) {
  Sequential model({layers::Dense(1, {.use_bias = false,
                                      .input_shape = {2},
                                      .kernel_initializer = "ones",
                                      .kernel_regularizer = Regularizer::l1_l2(0.1, 0.5),
                                      .kernel_constraint = Constraint::max_norm(0.5)})});
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mse"});
  const Tensor x = zeros({1, 2});
  EXPECT_FLOAT_EQ(model.train_on_batch(x, zeros({1, 1}))["loss"], 0.1f * 2 + 0.5f * 2);
  EXPECT_NEAR(norm(model.weights()[0].value()).item<float>(), 0.5, 1e-5);
  EXPECT_FLOAT_EQ(Regularizer("l2")(constant({2.f})).item<float>(), 0.04f);
}

}  // namespace
}  // namespace plimsoll
