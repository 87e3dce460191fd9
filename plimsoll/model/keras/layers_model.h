// Layers models, as TensorFlow.js saves them (model.json and binary weights): loaded and saved.
//
//   Model model = load_layers_model("iris/model.json");           // Predicts what TF.js predicts.
//   save_layers_model(model, "dir");                              // dir/model.json, dir/weights.bin, for TF.js.
//   load_layers_model("huge.json", {.weights = false}).summary(); // Takes no memory for weights.
//   std::vector<Tensor> x = load_json_tensors("inputs.json");     // [{"shape": .., "dtype": "float32", "data": [..]}]
//
// Both forms of topology (TF.js' and the one Keras' converter wraps), shards, groups and quantized weights. With a
// training configuration the model is compiled, and the optimizer goes on where it stood. A document without weights
// (what Keras' to_json gives, too) is a model with new weights.
// Files are not trusted: Corruption (with the path inside the document, or the weight and the offset) for what is
// damaged, NotFound for files that are missing, Unsupported for graph models, and for classes of layers and settings of
// layers that are not offered: none is ignored.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/model.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct LoadLayersOptions {
  // False: only what the model is like, for a forecast or a summary. Weights are zeros, which take memory when used.
  bool weights = true;
};
// Throws OutOfMemory, before it makes a weight, for a model that the device does not hold.
PLIMSOLL_API Model load_layers_model(const std::string& path, const LoadLayersOptions& options = {});

struct SaveLayersOptions {
  bool include_optimizer = false;  // With its state and what compile() was told.
};
// Makes the directory. A model that was there is replaced in one step, whatever happens: the new weights go to a file
// of another name (weights.bin, weights-2.bin, and so on by turns) before model.json names it. If it throws, nothing
// has changed. Throws FailedPrecondition for a model without weights yet, Unsupported for layers that cannot be
// written, InvalidArgument for two weights of one name.
PLIMSOLL_API void save_layers_model(const Model& model, const std::string& directory,
                                    const SaveLayersOptions& options = {});

// Lists in lists of numbers, [[1, 2], [3, 4]], are one f32 tensor.
PLIMSOLL_API std::vector<Tensor> load_json_tensors(const std::string& path);

}  // namespace plimsoll
