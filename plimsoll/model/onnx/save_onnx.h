// Models written as ONNX files, which ONNX Runtime and others run.
//
//   save_onnx(model, "model.onnx");                        // Layers become ONNX's operators, version 17.
//   save_onnx(load_onnx("resnet18.onnx"), "tuned.onnx");   // A model that was read: the same graph, its present
//   weights.
//
// A model of layers keeps its own order of axes at its ends (channels last); filters and images are transposed inside
// the file. Dropout and noise are left out, as in a prediction. Throws Unsupported for layers, and settings of layers,
// that are not offered, naming them; FailedPrecondition for a model without shapes. The file is replaced as a whole or
// not at all. Weights are written from where they lie.
#pragma once

#include <filesystem>

#include "plimsoll/base/api.h"
#include "plimsoll/model/model.h"

namespace plimsoll {

PLIMSOLL_API void save_onnx(const Model& model, const std::filesystem::path& path);

}  // namespace plimsoll
