// Reads and writes networks as the topology of a Layers model.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model.h"

namespace plimsoll::internal {

// `class_name` is Sequential, Model or Functional. Throws Corruption, with the path of what is wrong, and Unsupported.
std::shared_ptr<Network> read_network(const std::string& class_name, const nlohmann::json& config,
                                      const std::string& path, int depth);
nlohmann::ordered_json write_network_config(const Network& network);
// The text of a model.json without weights, which are not read; with the options of compile() if `with_training`.
PLIMSOLL_API std::string layers_topology(const Model& model, bool with_training);

}  // namespace plimsoll::internal
