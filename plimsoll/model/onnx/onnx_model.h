// ONNX files as models: exports of PyTorch, Keras and others predict, train and can be saved.
//
//   Model model = load_onnx("resnet18.onnx");               // A model like any other: predict, compile, fit, forecast.
//   OnnxModel file("resnet18.onnx");                        // Or as in the file: by name, whole inputs at once.
//   std::vector<Tensor> y = file.predict({{"input", x}}, {.budget = 64_MiB});
//   file.forecast({{"input", {8, 3, 224, 224}}}).smallest_budget;    // The memory for that, without running it.
//
// Inputs and outputs are those of the file: its names, dtypes and order of axes (channels second). Filters are
// reordered once, when they are read; images are transposed only where a graph enters or leaves its convolutions.
// Initializers become variables: fit trains floats, except the statistics of BatchNormalization. docs/onnx.md lists the
// operators; a file with others is refused (Unsupported), naming the operator, its version and the node. Damaged files
// throw Corruption with the offset. Reading allocates the file's tensors and little else; tensors in external files
// stay there, mapped, and are not charged until they are trained. Thread safety: predict from any thread; training, one
// at a time.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/model.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {
namespace internal {
class OnnxLayer;
}  // namespace internal

struct LoadOnnxOptions {
  bool weights = true;  // False: only what the model is like, for a forecast. Weights are zeros, taken when used.
};

struct OnnxPredictOptions {
  // Bytes for weights, inputs, results and the run. Below the peak values are recomputed, to the same bits; refused
  // (OutOfMemory) below the forecast's smallest_budget.
  std::optional<std::size_t> budget = {};
};

struct OnnxEnd {
  std::string name;
  DType dtype = f32;
  Shape shape;                  // Unknown sizes -1; unset when the file says nothing.
  bool decides_shapes = false;  // Of an input: a plan is for its elements.
};

class PLIMSOLL_API OnnxModel {
 public:
  // Throws NotFound, Corruption, Unsupported, OutOfMemory.
  explicit OnnxModel(const std::filesystem::path& path, const LoadOnnxOptions& options = {});
  // The model that load_onnx() returned. Throws InvalidArgument for a model of layers.
  explicit OnnxModel(const Model& model);

  std::vector<OnnxEnd> inputs() const;
  std::vector<OnnxEnd> outputs() const;
  // The same weights as a model of one layer. Throws Unsupported for a graph without inputs.
  Model model() const;

  // One run on whole inputs, none of them split into batches; outputs in the order of outputs(). Throws NotFound for an
  // input that is missing, InvalidArgument for another dtype or shape than the file's, OutOfMemory.
  std::vector<Tensor> predict(const std::map<std::string, Tensor>& inputs,
                              const OnnxPredictOptions& options = {}) const;

  // The memory of such a prediction. From shapes alone: throws FailedPrecondition when elements of inputs decide sizes.
  // From tensors: also when elements decide, then by running it once.
  MemoryForecast forecast(const std::map<std::string, Shape>& shapes) const;
  MemoryForecast forecast(const std::map<std::string, Tensor>& inputs) const;

  std::size_t num_parameters() const;
  const std::shared_ptr<OnnxLayer>& layer() const noexcept { return layer_; }

 private:
  std::shared_ptr<OnnxLayer> layer_;
};

PLIMSOLL_API Model load_onnx(const std::filesystem::path& path, const LoadOnnxOptions& options = {});

}  // namespace plimsoll
