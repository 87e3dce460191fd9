// Layers models, as TensorFlow.js saves them (model.json and binary weights): loaded and saved.
//
//   Model model = load_layers_model("iris/model.json");           // Predicts what TF.js predicts.
//   save_layers_model(model, "dir");                              // dir/model.json, dir/weights.bin, for TF.js.
//   load_layers_model("huge.json", {.weights = false}).summary(); // Takes no memory for weights.
//   std::vector<Tensor> x = load_json_tensors("inputs.json");     // [{"shape": .., "dtype": "float32", "data": [..]}]
//
// Reads both forms of topology (that of TF.js and the one Keras' converter wraps), shards, groups and quantized
// weights. With a training configuration the model is compiled, and the optimizer continues where it stopped. A
// document without weights (such as the output of Keras' to_json) is a model with new weights.
// Files are not trusted: Corruption (with the path inside the document, or the weight and the offset) for damage,
// NotFound for missing files, Unsupported for graph models, and for classes and settings of layers that are not
// supported: none is ignored.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/model.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct LoadLayersOptions {
  // False: only the structure, for a forecast or a summary. Weights are zeros, which take memory when used.
  bool weights = true;
};
// Throws OutOfMemory, before it makes a weight, for a model that does not fit on the device.
PLIMSOLL_API Model load_layers_model(const std::string& path, const LoadLayersOptions& options = {});

struct SaveLayersOptions {
  bool include_optimizer = false;  // Its state, and the options of compile().
};
// Creates the directory. An existing model is replaced in one step, whatever happens: the new weights go to a file of
// another name (weights.bin and weights-2.bin in turn) before model.json names it. If it throws, nothing has changed.
// Throws FailedPrecondition for a model without weights yet, Unsupported for layers that cannot be written,
// InvalidArgument for two weights of one name.
PLIMSOLL_API void save_layers_model(const Model& model, const std::string& directory,
                                    const SaveLayersOptions& options = {});

// Nested lists of numbers, [[1, 2], [3, 4]], are one f32 tensor.
PLIMSOLL_API std::vector<Tensor> load_json_tensors(const std::string& path);

}  // namespace plimsoll
