// ConfigWriter, ConfigReader: a layer's options to and from the JSON of a Layers model.
//
//   out.put("units", units_);                                   // {"units": 16}
//   in.integer("units"); in.flag("use_bias", true); in.text("activation", "linear")
//
// An option that is absent or null has its default. The reader throws Corruption, with the path of the value inside of
// the document, for what is missing or of another kind, and trusts no number.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/shape.h"
#include "plimsoll/model/initializer.h"
#include "plimsoll/model/layer.h"
#include "plimsoll/model/regularizer.h"

namespace plimsoll {

class ConfigWriter {
 public:
  explicit ConfigWriter(nlohmann::ordered_json& out) : out_(out) {}

  void put(std::string_view key, bool value);
  void put(std::string_view key, std::int64_t value);
  void put(std::string_view key, double value);
  void put(std::string_view key, const std::string& value);
  void put(std::string_view key, const char* value) { put(key, std::string(value)); }
  void put(std::string_view key, const std::vector<std::int64_t>& values);
  void put(std::string_view key, const Initializer& value);
  void put(std::string_view key, const Regularizer& value);
  void put(std::string_view key, const Constraint& value);
  void put(std::string_view key, const std::vector<std::vector<std::int64_t>>& values);
  void put_null(std::string_view key);
  void put_layer(std::string_view key, const LayerBase& layer, const std::string& name);  // Under its own name.

 private:
  nlohmann::ordered_json& out_;
};

class ConfigReader {
 public:
  ConfigReader(const nlohmann::json& in, std::string path, int depth = 0);

  bool has(std::string_view key) const;      // And it is not null.
  bool is_null(std::string_view key) const;  // There, and null.
  std::int64_t integer(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  // Of integers; one integer is taken for a list of `count` of them. Null inside is -1 when `unknown` allows it.
  std::vector<std::int64_t> integers(std::string_view key, std::size_t count, std::int64_t otherwise) const;
  std::vector<std::int64_t> flat_integers(std::string_view key, std::int64_t otherwise) const;  // Of lists in lists.
  Shape shape(std::string_view key) const;
  Initializer initializer(std::string_view key) const;  // Unset when absent.
  Regularizer regularizer(std::string_view key) const;
  Constraint constraint(std::string_view key) const;
  std::optional<std::uint64_t> seed(std::string_view key = "seed") const;
  std::shared_ptr<LayerBase> layer(std::string_view key) const;

  const std::string& path() const noexcept { return path_; }
  [[noreturn]] void fail(std::string_view key, std::string_view what) const;

 private:
  const nlohmann::json* find(std::string_view key) const;

  const nlohmann::json& in_;
  std::string path_;
  int depth_;  // Of layers inside of layers, which files could nest without end.
};

// The layer that {"class_name", "config"} describes. Throws Unsupported for a class that is not known here.
std::shared_ptr<LayerBase> read_layer(const nlohmann::json& in, const std::string& path, int depth = 0);
// {"class_name": .., "config": {"name": .., "trainable": .., ...}}
nlohmann::ordered_json write_layer(const LayerBase& layer, const std::string& name);

using LayerReader = std::shared_ptr<LayerBase> (*)(const ConfigReader& in);
// Of the families of layers; nullptr for a class that is not of this one.
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

}  // namespace plimsoll
