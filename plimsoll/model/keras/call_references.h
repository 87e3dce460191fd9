// The sources of the inputs of a layer's calls, as stored in a file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace plimsoll::internal {

// One use of a layer's output: ["name", node, tensor, {..}].
struct Reference {
  std::string layer;
  std::size_t node = 0, tensor = 0;
};

// ["a", 0, 0], or [["a", 0, 0], ...], as TF.js and Keras 2 write them. Throws Corruption and Unsupported.
std::vector<Reference> read_references(const nlohmann::json& in, const std::string& path);
// {"args": [...], "kwargs": {...}}, as Keras 3 writes it.
std::vector<Reference> read_call(const nlohmann::json& in, const std::string& path);

}  // namespace plimsoll::internal
