#include "plimsoll/cli/train/new_command_models.h"

#include <fmt/format.h>

#include <filesystem>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/model/keras/network_json.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"

namespace plimsoll::internal {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_inputs(const PlainModel& what, const char* wanted) {
  throw InvalidArgument(fmt::format("new: {} was given {} of inputs; give {}", what.kind,
                                    what.inputs.size() == 1 ? "one size" : fmt::format("{} sizes", what.inputs.size()),
                                    wanted));
}

// Adds convolutions and poolings as long as there is something to shrink.
void add_convolutions(Sequential& model, const PlainModel& what) {
  if (what.inputs.size() == 2) {
    std::int64_t steps = what.inputs[0];
    model.add(layers::Conv1D(32, 3, {.padding = "same", .activation = "relu", .input_shape = Shape(what.inputs)}));
    for (std::int64_t filters = 32; steps >= 4 && filters <= 64; filters *= 2, steps /= 2) {
      model.add(layers::MaxPooling1D(2));
      model.add(layers::Conv1D(filters, 3, {.padding = "same", .activation = "relu"}));
    }
    return model.add(layers::GlobalAveragePooling1D());
  }
  std::int64_t size = std::min(what.inputs[0], what.inputs[1]);
  model.add(layers::Conv2D(32, 3, {.padding = "same", .activation = "relu", .input_shape = Shape(what.inputs)}));
  for (std::int64_t filters = 32; size >= 4 && filters <= 64; filters *= 2, size /= 2) {
    model.add(layers::MaxPooling2D(2));
    model.add(layers::Conv2D(filters, 3, {.padding = "same", .activation = "relu"}));
  }
  model.add(layers::GlobalAveragePooling2D());
}

}  // namespace

Model make_plain_model(const PlainModel& what) {
  Sequential model;
  const Shape inputs(what.inputs);
  if (what.kind == "lstm") {
    if (what.inputs.size() != 2) refuse_inputs(what, "steps and features: --inputs 20,3");
    model.add(layers::LSTM(32, {.input_shape = inputs}));
  } else if (what.kind == "cnn") {
    if (what.inputs.size() != 2 && what.inputs.size() != 3)
      refuse_inputs(what, "steps and features, or height, width and channels: --inputs 28,28,1");
    add_convolutions(model, what);
  } else {
    if (what.inputs.size() > 1) model.add(layers::Flatten({.input_shape = inputs}));
    model.add(layers::Dense(64, {.activation = "relu", .input_shape = what.inputs.size() > 1 ? Shape() : inputs}));
    model.add(layers::Dense(64, {.activation = "relu"}));
  }
  model.add(layers::Dense(what.outputs, {.activation = what.classes ? "softmax" : "linear"}));
  return model;
}

void write_topology(const Model& model, const std::string& path, bool with_training) {
  if (const fs::path parent = fs::path(path).parent_path(); !parent.empty()) make_directories(parent);
  AtomicFile file(path);
  file.write(layers_topology(model, with_training) + "\n");
  file.commit();
}

}  // namespace plimsoll::internal
