// Reads and writes networks as the topology of a Layers model.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plimsoll/model/internal/network.h"

namespace plimsoll::internal {

// `class_name` is Sequential, Model or Functional. Throws Corruption, with the path of what is wrong, and Unsupported.
std::shared_ptr<Network> read_network(const std::string& class_name, const nlohmann::json& config,
                                      const std::string& path, int depth);
nlohmann::ordered_json write_network_config(const Network& network);

}  // namespace plimsoll::internal
