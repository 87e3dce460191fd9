// Models in Keras' own files: .keras (Keras 3) read and written, legacy .h5 read.
//
//   Model model = load_keras("model.keras");                 // Predicts what Keras predicts; trains on from there.
//   save_keras(model, "out.keras");                          // keras.saving.load_model("out.keras") takes it.
//   load_keras("huge.keras", {.weights = false}).summary();  // Takes no memory for weights.
//   Model any = load_model("model.json");                    // Of any kind of file that we read.
//
// Weights that the file has in one piece and aligned (those of save_keras() always are) stay on the file's own pages:
// they are not charged to a budget until training changes them, and the file must not be truncated meanwhile. Others
// are read into memory that is charged; loading takes no more than these weights and a constant.
// A compiled model is compiled again, and its optimizer goes on where it stood.
// Files are not trusted: Corruption (with the offset, or the path inside the configuration), Unsupported for
// classes and settings that are not offered: none is ignored. No library of HDF5 is needed.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/model.h"

namespace plimsoll {

struct LoadKerasOptions {
  bool weights = true;  // False: only what the model is like. Weights are zeros, which take memory when used.
  // False: optimizer, loss and metrics are not read, so a file whose training is not offered can be asked.
  bool compile = true;
};
// `path` may be either kind: what is in the file decides. Throws NotFound, Corruption, Unsupported, OutOfMemory.
PLIMSOLL_API Model load_keras(const std::string& path, const LoadKerasOptions& options = {});

struct SaveKerasOptions {
  bool include_optimizer = true;  // Of a compiled model: its state, loss and metrics.
};
// A file that was there is replaced in one step. Throws FailedPrecondition for a model without weights yet, Unsupported
// for layers, losses and metrics of your own.
PLIMSOLL_API void save_keras(const Model& model, const std::string& path, const SaveKerasOptions& options = {});

// A model in any file that is read: .keras, .h5, and model.json of TensorFlow.js. What is in the file decides.
PLIMSOLL_API Model load_model(const std::string& path, const LoadKerasOptions& options = {});
// What the file says of the model, as JSON: config.json, or model_config. Throws as load_keras(), but reads no weights.
PLIMSOLL_API std::string keras_file_config(const std::string& path);
// Whether the file begins like one that load_keras() takes. False when it cannot be read.
PLIMSOLL_API bool is_keras_file(const std::string& path);

}  // namespace plimsoll
