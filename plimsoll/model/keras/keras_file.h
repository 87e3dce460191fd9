// Models in Keras' own files: .keras (Keras 3) read and written, legacy .h5 read.
//
//   Model model = load_keras("model.keras");                 // Predicts what Keras predicts; can train on.
//   save_keras(model, "out.keras");                          // keras.saving.load_model("out.keras") reads it.
//   load_keras("huge.keras", {.weights = false}).summary();  // Takes no memory for weights.
//   Model any = load_model("model.json");                    // From any supported kind of file.
//
// Weights that are contiguous and aligned in the file (those of save_keras() always are) stay on the file's own pages:
// they are not charged to a budget until training changes them, and the file must not be truncated meanwhile. Others
// are read into memory that is charged; loading takes no more than these weights and a constant.
// A compiled model is compiled again, and its optimizer continues where it stopped.
// Files are not trusted: Corruption (with the offset, or the path inside the configuration), Unsupported for classes
// and settings that are not supported: none is ignored. Needs no HDF5 library.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/model.h"

namespace plimsoll {

struct LoadKerasOptions {
  bool weights = true;  // False: only the structure. Weights are zeros, which take memory when used.
  // False: optimizer, loss and metrics are not read, so that a file with an unsupported training configuration can be
  // loaded.
  bool compile = true;
};
// Reads both formats: the file's contents decide. Throws NotFound, Corruption, Unsupported, OutOfMemory.
PLIMSOLL_API Model load_keras(const std::string& path, const LoadKerasOptions& options = {});

struct SaveKerasOptions {
  bool include_optimizer = true;  // For a compiled model: its state, loss and metrics.
};
// An existing file is replaced in one step. Throws FailedPrecondition for a model without weights yet, Unsupported for
// your own layers, losses and metrics.
PLIMSOLL_API void save_keras(const Model& model, const std::string& path, const SaveKerasOptions& options = {});

// A model in any supported file: .keras, .h5, and model.json of TensorFlow.js. The file's contents decide.
PLIMSOLL_API Model load_model(const std::string& path, const LoadKerasOptions& options = {});
// The file's description of the model, as JSON: config.json, or model_config. Throws as load_keras(), but reads no
// weights.
PLIMSOLL_API std::string keras_file_config(const std::string& path);
// Whether the file starts like one that load_keras() reads. False when it cannot be read.
PLIMSOLL_API bool is_keras_file(const std::string& path);

}  // namespace plimsoll
