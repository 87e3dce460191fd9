// The names of a model's weights in Keras 3's model.weights.h5: by class and position, not by name.
//
//   for (const StoredWeight& each : stored_weights(network, config)) each.path;   // "layers/dense_1/vars/0"
//
// Layers count in the order of the configuration's list. A layer that is part of several models is listed at each of
// its places; files store its weights at the first.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plimsoll/model/internal/network.h"

namespace plimsoll::internal {

struct StoredWeight {
  std::string path;   // "layers/lstm/cell/vars/0".
  std::string group;  // "layers/lstm/cell/vars".
  std::string layer;  // Its name, which files store as an attribute of the group.
  Variable variable;
  bool trainable = true;
};

// `config` is the network's part of a file: {"layers": [...]}. Throws Corruption when the two do not match.
std::vector<StoredWeight> stored_weights(const Network& network, const nlohmann::json& config, const std::string& path);

// The variables of each layer of a legacy file, in Keras' order: trainable ones first.
struct LegacyLayer {
  std::string name;
  std::vector<Variable> weights;
};
std::vector<LegacyLayer> legacy_weights(const Network& network, const nlohmann::json& config, const std::string& path);

}  // namespace plimsoll::internal
