// Models whose layers save_onnx() writes, one for each family, with an input: for our tests and for ONNX Runtime's.
//
//   for (const ExportedModel& each : exported_models()) save_onnx(each.model, each.name + ".onnx");
#pragma once

#include <string>
#include <vector>

#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/attention_layers.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {

struct ExportedModel {
  std::string name;
  Model model;
  std::vector<Tensor> inputs;
};

inline std::vector<ExportedModel> exported_models() {
  std::vector<ExportedModel> models;
  const auto input = [](const Shape& shape) { return random_uniform(shape, -1, 1, {.seed = 5}); };
  const auto sequence = [&](const char* name, const Sequential& model, const Shape& shape) {
    models.push_back({name, model, {input(shape)}});
  };
  using namespace layers;  // NOLINT: the list reads as a model does.
  const Shape steps = {7, 4};
  sequence("lstm", Sequential({LSTM(5, {.return_sequences = true, .input_shape = steps}), LSTM(3), Dense(2)}),
           {3, 7, 4});
  sequence("lstm_backwards",
           Sequential({LSTM(5, {.return_sequences = true, .go_backwards = true, .input_shape = steps}),
                       LSTM(3, {.go_backwards = true})}),
           {3, 7, 4});
  sequence("gru", Sequential({GRU(5, {.return_sequences = true, .input_shape = steps}), GRU(3)}), {3, 7, 4});
  sequence("simple_rnn", Sequential({SimpleRNN(5, {.activation = "relu", .input_shape = steps})}), {3, 7, 4});
  sequence("bidirectional",
           Sequential({Bidirectional(LSTM(5, {.return_sequences = true}), {.input_shape = steps}),
                       Bidirectional(GRU(3), {.merge_mode = "ave"})}),
           {3, 7, 4});
  sequence("conv1d",
           Sequential({Conv1D(6, 3, {.padding = "causal", .activation = "relu", .input_shape = {16, 4}}),
                       MaxPooling1D(2), Conv1D(5, 3, {.padding = "same"}), AveragePooling1D(2), GlobalMaxPooling1D()}),
           {3, 16, 4});
  sequence("images",
           Sequential({ZeroPadding2D({1, 0}, {1, 2}, {.input_shape = {8, 8, 3}}),
                       DepthwiseConv2D(3, {.depth_multiplier = 2}),
                       SeparableConv2D(6, 3, {.padding = "same", .activation = "relu"}), UpSampling2D(2),
                       Conv2D(4, 3, {.strides = 2, .padding = "same", .activation = "gelu"}),
                       Cropping2D({1, 0}, {1, 2}), AveragePooling2D(2), GlobalAveragePooling2D()}),
           {2, 8, 8, 3});
  for (const std::string padding : {"same", "valid"})
    sequence(padding == "same" ? "transposed_same" : "transposed_valid",
             Sequential({Conv2DTranspose(5, 3, {.strides = 2, .padding = padding, .input_shape = {5, 6, 3}}),
                         Conv2DTranspose(2, 2, {.strides = 3, .padding = padding})}),
             {2, 5, 6, 3});
  sequence("activations",
           Sequential({Dense(8, {.activation = "swish", .input_shape = {6}}), LeakyReLU(), Dense(8), PReLU(), ELU(),
                       Dense(8, {.activation = "gelu"}), BatchNormalization(), LayerNormalization(), Softmax(),
                       RepeatVector(3), Permute({2, 1})}),
           {4, 6});
  Input x({.shape = {7, 16}});
  LayerOutput mixed = MultiHeadAttention(4, 8, {.causal = true})({x, x});
  mixed = LayerNormalization()(Add()({x, mixed}));
  LayerOutput wide = Dense(16)(Dense(32, {.activation = "gelu"})(mixed));
  models.push_back({"attention", Model({x}, {Subtract()({mixed, wide})}), {input({2, 7, 16})}});
  Input many({.shape = {5, 4}});
  const std::vector<LayerOutput> states = LSTM(6, {.return_sequences = true, .return_state = true}).outputs({many});
  models.push_back({"states", Model({many}, states), {input({3, 5, 4})}});
  // No weight is 0 or 1, so that none is left out unnoticed; variances are positive.
  std::uint64_t seed = 11;
  for (const ExportedModel& each : models)
    for (const auto& layer : each.model.network().layers())
      for (const LayerBase::Weight& weight : layer->weights())
        Variable(weight.variable).assign(random_uniform(weight.variable.shape(), 0.1, 0.5, {.seed = ++seed}));
  return models;
}

}  // namespace plimsoll
