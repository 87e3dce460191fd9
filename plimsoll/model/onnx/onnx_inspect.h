// Describes an ONNX file, even one with unsupported operators: for `plimsoll inspect`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

struct OnnxDescription {
  struct Tensor {
    std::string name, dtype;
    Shape shape;
    std::uint64_t bytes = 0;
  };
  std::vector<Tensor> tensors;  // Initializers.
  // Versions, producer, inputs, outputs, how often each operator occurs, and which of them are unsupported.
  std::vector<std::pair<std::string, std::string>> facts;
  std::string last_operator;  // Of what gives the first output: "Softmax".
};

// Throws NotFound, Corruption, Unsupported.
PLIMSOLL_API OnnxDescription describe_onnx(const std::filesystem::path& path);

}  // namespace plimsoll::internal
