// The data of ConfigWriter and ConfigReader (layer_config.h): JSON, the path to it, and which keys were read.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "plimsoll/model/keras/layer_config.h"

namespace plimsoll {

struct ConfigWriter::Document {
  nlohmann::ordered_json& json;
};

struct ConfigReader::Document {
  const nlohmann::json& json;
  std::string path;
  int depth = 0;                                    // Of layers inside layers, which files could nest endlessly.
  mutable std::set<std::string, std::less<>> read;  // Keys that were read.

  const nlohmann::json* find(std::string_view key) const;  // nullptr when it is absent or null. Counts as read.
};

}  // namespace plimsoll

namespace plimsoll::internal {

// A reader of the object `in`, which must stay valid. Throws Corruption when it is something else.
ConfigReader config_reader(const nlohmann::json& in, std::string path, int depth = 0);

// Throws Unsupported for a key that nothing read, unless the class is known to behave the same without it.
void refuse_unread(const ConfigReader& in, std::string_view class_name);

// The layer that {"class_name", "config"} describes. Throws Unsupported for a class that is not known here.
std::shared_ptr<LayerBase> read_layer(const nlohmann::json& in, const std::string& path, int depth = 0);
// {"class_name": .., "config": {"name": .., "trainable": .., ...}}
nlohmann::ordered_json write_layer(const LayerBase& layer, const std::string& name);

using LayerReader = std::shared_ptr<LayerBase> (*)(const ConfigReader& in);
// Per family of layers; nullptr for a class that does not belong to it.
LayerReader core_layer_reader(std::string_view class_name);
LayerReader noise_layer_reader(std::string_view class_name);
LayerReader merge_layer_reader(std::string_view class_name);
LayerReader activation_layer_reader(std::string_view class_name);
LayerReader convolution_layer_reader(std::string_view class_name);
LayerReader pooling_layer_reader(std::string_view class_name);
LayerReader normalization_layer_reader(std::string_view class_name);
LayerReader recurrent_layer_reader(std::string_view class_name);
LayerReader wrapper_layer_reader(std::string_view class_name);
LayerReader spatial_layer_reader(std::string_view class_name);
LayerReader attention_layer_reader(std::string_view class_name);

LayerReader built_in_layer_reader(std::string_view class_name);        // Of all families.
LayerFactory registered_layer_factory(const std::string& class_name);  // Empty when there is none.

}  // namespace plimsoll::internal
