// The weights of a Layers model: the manifest, and the bytes of its files as one stream.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

struct NamedWeights {
  std::map<std::string, Tensor> weights;    // By name, as f32, i32 or bool.
  std::map<std::string, Tensor> optimizer;  // Those of the group "optimizer".
};

// `directory` contains the files; paths that leave it are refused. Throws Corruption with the weight's name and the
// offset in the stream, NotFound for a missing file, Unsupported for text and complex numbers.
NamedWeights read_weights(const nlohmann::json& manifest, const std::string& directory, const std::string& path);

}  // namespace plimsoll::internal
