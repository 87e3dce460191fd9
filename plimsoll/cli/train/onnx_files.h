// ONNX files on the command line: how predict, forecast and train handle a MODEL.onnx.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/onnx/onnx_model.h"

namespace plimsoll::internal {

bool is_onnx(const std::string& path);

// Inputs of the graph by name, from an npz; other arrays in it are ignored. Throws NotFound, InvalidArgument.
std::map<std::string, Tensor> load_onnx_inputs(const std::string& npz, const OnnxModel& model);

struct OnnxPrediction {
  std::string model, input, out, budget;
  bool json = false;
};
void predict_onnx(const OnnxPrediction& arguments);

// "NAME=1x3x224x224". Throws InvalidArgument.
std::map<std::string, Shape> parse_shapes(const std::vector<std::string>& texts);
// The memory of one run, with these shapes or, when an npz is given, with its inputs.
MemoryForecast forecast_onnx(const std::string& path, const std::vector<std::string>& shapes, const std::string& npz);

}  // namespace plimsoll::internal
