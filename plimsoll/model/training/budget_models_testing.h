// Models to train inside budgets: for tests, small, and for fit_budget_bench, large.
//
//   const BudgetModel which = budget_mlp(24, 256, 1024);
//   Model model = which.make();                        // Compiled; the same weights each time.
//   model.fit(which.batches(4), {.budget = ...});
#pragma once

#include <functional>
#include <string>

#include "plimsoll/model/layers/attention_layers.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {

struct BudgetModel {
  std::string name;
  std::function<Model()> make;
  Shape example, target;  // Of one example.
  std::size_t batch = 0;
  std::int64_t classes = 0;  // 0: targets are numbers.

  Dataset batches(std::size_t count) const {
    const auto all = static_cast<std::int64_t>(count * batch);
    const auto rows = [&](const Shape& one) {
      std::vector<std::int64_t> sizes = {all};
      sizes.insert(sizes.end(), one.begin(), one.end());
      return Shape(sizes);
    };
    const Tensor x = random_normal(rows(example), {.seed = 1});
    const Tensor y = classes > 0 ? random_uniform(rows(target), 0, classes, {.seed = 2, .dtype = i32})
                                 : random_normal(rows(target), {.seed = 2});
    return Dataset::from_tensors(x, y).batch(batch);
  }
};

// Dense layers with dropout in the middle.
inline BudgetModel budget_mlp(int depth, std::int64_t width, std::size_t batch) {
  const auto make = [=] {
    std::vector<Layer> list;
    for (int i = 0; i < depth; ++i) {
      list.push_back(layers::Dense(
          width,
          {.activation = i % 2 ? "tanh" : "relu", .input_shape = {width}, .seed = static_cast<std::uint64_t>(i + 1)}));
      if (i == depth / 2) list.push_back(layers::Dropout(0.2, {.seed = 9}));
    }
    list.push_back(layers::Dense(1, {.seed = 99}));
    Sequential model(list);
    model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
    return model;
  };
  return {"MLP " + std::to_string(depth) + " x " + std::to_string(width), make, {width}, {1}, batch, 0};
}

// Residual blocks of convolutions with batch norm, three widths, dropout before the classes.
inline BudgetModel budget_resnet(int blocks, std::int64_t width, std::int64_t side, std::size_t batch) {
  const auto make = [=] {
    std::uint64_t seed = 1;
    const auto convolution = [&](std::int64_t filters, const LayerOutput& x, std::int64_t stride, bool relu) {
      const LayerOutput y = layers::Conv2D(
          filters, {3, 3}, {.strides = {stride, stride}, .padding = "same", .use_bias = false, .seed = seed++})(x);
      const LayerOutput normal = layers::BatchNormalization()(y);
      return relu ? layers::Activation("relu")(normal) : normal;
    };
    const Input in({.shape = {side, side, 3}});
    LayerOutput x = convolution(width, in, 1, true);
    for (int stage = 0; stage < 3; ++stage)
      for (int block = 0; block < blocks; ++block) {
        const std::int64_t filters = width << stage, stride = stage > 0 && block == 0 ? 2 : 1;
        const LayerOutput y = convolution(filters, convolution(filters, x, stride, true), 1, false);
        const LayerOutput same =
            stride == 1 ? x
                        : layers::Conv2D(filters, {1, 1}, {.strides = {2, 2}, .padding = "same", .seed = seed++})(x);
        x = layers::Activation("relu")(layers::Add()({y, same}));
      }
    const LayerOutput pooled = layers::Dropout(0.1, {.seed = 5})(layers::GlobalAveragePooling2D()(x));
    Model model({in}, {layers::Dense(10, {.activation = "softmax", .seed = seed++})(pooled)});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.01, .momentum = 0.9}),
                   .loss = "sparse_categorical_crossentropy",
                   .metrics = {"accuracy"}});
    return model;
  };
  return {"ResNet-" + std::to_string(6 * blocks + 2) + ", width " + std::to_string(width),
          make,
          {side, side, 3},
          Shape({}),
          batch,
          10};
}

// Attention and dense layers with layer norm, as encoders have them.
inline BudgetModel budget_transformer(int depth, std::int64_t width, std::int64_t length, std::size_t batch) {
  const auto make = [=] {
    std::uint64_t seed = 1;
    const Input in({.shape = {length, width}});
    LayerOutput x = in;
    for (int i = 0; i < depth; ++i) {
      const LayerOutput attended = layers::MultiHeadAttention(4, width / 4, {.seed = seed++})({x, x});
      x = layers::LayerNormalization()(layers::Add()({x, layers::Dropout(0.1, {.seed = seed++})(attended)}));
      const LayerOutput wide = layers::Dense(4 * width, {.activation = "gelu", .seed = seed++})(x);
      x = layers::LayerNormalization()(layers::Add()({x, layers::Dense(width, {.seed = seed++})(wide)}));
    }
    Model model({in}, {layers::Dense(1, {.seed = seed++})(layers::GlobalAveragePooling1D()(x))});
    model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
    return model;
  };
  return {"transformer " + std::to_string(depth) + " x " + std::to_string(width), make, {length, width}, {1}, batch, 0};
}

// Predicts one of many words at each place of a sequence: logits are by far the largest values.
inline BudgetModel budget_words(std::int64_t words, std::int64_t width, std::int64_t length, std::size_t batch) {
  const auto make = [=] {
    const Input in({.shape = {length, width}});
    const LayerOutput hidden = layers::Dense(width, {.activation = "relu", .seed = 1})(in);
    const LayerOutput normal = layers::LayerNormalization()(layers::Add()({in, hidden}));
    Model model({in}, {layers::Dense(words, {.seed = 2})(layers::Dropout(0.1, {.seed = 3})(normal))});
    model.compile({.optimizer = "adam",
                   .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = {"accuracy"}});
    return model;
  };
  return {std::to_string(words) + " words x " + std::to_string(width), make, {length, width}, {length}, batch, words};
}

// Three layers with dropout after the first; or one.
inline BudgetModel budget_lstm(std::int64_t units, std::int64_t length, std::size_t batch, int depth = 3) {
  const auto make = [=] {
    std::vector<Layer> list;
    for (int i = 0; i < depth; ++i) {
      list.push_back(layers::LSTM(
          units,
          {.return_sequences = i + 1 < depth, .input_shape = {length, 8}, .seed = static_cast<unsigned>(i + 1)}));
      if (i == 0 && depth > 1) list.push_back(layers::Dropout(0.2, {.seed = 7}));
    }
    list.push_back(layers::Dense(1, {.seed = 4}));
    Sequential model(list);
    model.compile({.optimizer = "rmsprop", .loss = "mse", .metrics = {"mae"}});
    return model;
  };
  const std::string layers = depth == 1 ? ", one layer" : ", " + std::to_string(depth) + " layers";
  return {"LSTM " + std::to_string(units) + layers, make, {length, 8}, {1}, batch, 0};
}

}  // namespace plimsoll
