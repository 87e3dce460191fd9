// Every setting that Keras 2 and Keras 3 write of a layer is used, harmless, or refused by name: none is ignored.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/model/keras/config.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;

Json read_settings() {
  std::ifstream in(std::string(TEST_DATA) + "/golden/keras_settings.json");
  return parse_json(in);
}

Json written(const LayerBase& layer) { return parse_json(json_text(write_layer(layer, layer.name()))).at("config"); }

// Values that the setting could have had instead.
std::vector<Json> others(const std::string& key, const Json& value) {
  const auto has = [&](const char* part) { return key.find(part) != std::string::npos; };
  const auto parsed = [](const char* text) { return parse_json(text).get<std::vector<Json>>(); };
  if (has("initializer")) return parsed(R"([{"class_name": "Constant", "config": {"value": 0.25}}])");
  if (has("regularizer")) return parsed(R"([{"class_name": "L1L2", "config": {"l1": 0.5, "l2": 0.25}}])");
  if (has("constraint")) return parsed(R"([{"class_name": "NonNeg", "config": {}}])");
  if (value.is_boolean()) return {Json(!value.get<bool>())};
  if (value.is_number_integer()) return {Json(value.get<int>() + 1)};
  if (value.is_number()) return {Json(value.get<double>() + 0.5)};
  if (value.is_string()) return parsed(R"(["tanh", "same", "sum", "channels_first", "bilinear", "float64"])");
  if (value.is_array() && !value.empty() && value[0].is_array()) return parsed("[[[2, 1], [0, 3]]]");
  if (value.is_array()) return {Json(std::vector<int>(value.size(), 2)), Json(std::vector<int>(value.size(), 3))};
  if (value.is_null()) return parsed(R"([1, 2.5, "text", true, [1, 2]])");
  return {};
}

// As Keras or we would write the same: [2] and 2, 1.0 and 1.
bool same(const Json& a, const Json& b) {
  if (a.is_array() && a.size() == 1 && !b.is_array()) return same(a[0], b);
  if (b.is_array() && b.size() == 1 && !a.is_array()) return same(a, b[0]);
  return a == b;
}

// Settings that say how something is computed or stored, not what comes out.
bool is_harmless(const std::string& class_name, const std::string& key) {
  static const std::set<std::string> kEverywhere = {"implementation", "unroll",    "renorm_momentum", "input_length",
                                                    "query_shape",    "key_shape", "value_shape"};
  return kEverywhere.count(key) > 0 ||
         (class_name == "SeparableConv2D" && key.starts_with("kernel_") && key != "kernel_size");
}

TEST(ImportedSettings, LayersAsKerasWritesThemAreTaken) {
  const Json settings = read_settings();
  ASSERT_EQ(settings.size(), 2u);
  for (const auto& [version, layers] : settings.items()) {
    EXPECT_GT(layers.size(), 50u);
    for (const auto& [name, layer] : layers.items()) EXPECT_NO_THROW(read_layer(layer, name)) << version << " " << name;
  }
}

TEST(ImportedSettings, NoneIsIgnored) {
  std::size_t used = 0, refused = 0;
  const Json settings = read_settings();
  for (const auto& [version, layers] : settings.items()) {
    for (const auto& [name, layer] : layers.items()) {
      for (const auto& [key, value] : layer.at("config").items()) {
        if (key == "name" || key == "dtype" || key == "layer" || key == "backward_layer" || is_harmless(name, key))
          continue;
        for (const Json& other : others(key, value)) {
          if (other == value) continue;
          Json changed = layer;
          changed["config"][key] = other;
          try {
            const Json now = written(*read_layer(changed, name));
            // TF.js and Keras 2 have other names for these.
            const char* ours = key == "batch_shape"                             ? "batch_input_shape"
                               : name == "LeakyReLU" && key == "negative_slope" ? "alpha"
                                                                                : key.c_str();
            ASSERT_TRUE(now.contains(ours)) << version << " " << name << " " << key << " " << other;
            EXPECT_TRUE(same(now[ours], other))
                << version << " " << name << " " << key << " " << other << " " << now[ours];
            ++used;
          } catch (const Unsupported& error) {
            EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
            ++refused;
          } catch (const Corruption&) {
            ++refused;
          }
        }
      }
    }
  }
  EXPECT_GT(used, 400u);
  EXPECT_GT(refused, 300u);
}

std::string refusal(const char* class_name, const Json& config) {
  try {
    Json layer = Json::object();
    layer["class_name"] = class_name;
    layer["config"] = config;
    layer["config"]["name"] = "mine";
    read_layer(layer, "m.json: modelTopology/config/layers/0");
    return "";
  } catch (const Unsupported& error) {
    return error.what();
  }
}

TEST(ImportedSettings, ThatAreNotOfferedAreNamedWithTheLayerAndTheValue) {
  EXPECT_EQ(refusal("LSTM", parse_json(R"({"units": 1, "time_major": true})")),
            "m.json: modelTopology/config/layers/0/config/time_major: true is a setting of LSTM \"mine\" that is not "
            "offered");
  const std::pair<const char*, const char*> refused[] = {
      {"Conv2DTranspose", R"({"filters": 1, "kernel_size": 2, "output_padding": [1, 1]})"},
      {"LayerNormalization", R"({"rms_scaling": true})"},
      {"LayerNormalization", R"({"axis": [1, 2]})"},
      {"BatchNormalization", R"({"renorm": true})"},
      {"BatchNormalization", R"({"virtual_batch_size": 2})"},
      {"Dense", R"({"units": 1, "lora_rank": 4})"},
      {"Dense", R"({"units": 1, "dtype": "float64"})"},
      {"MultiHeadAttention", R"({"num_heads": 1, "key_dim": 1, "dropout": 0.5})"},
      {"Dense", R"({"units": 1, "kernel_constraint": {"class_name": "MaxNorm", "config": {"axis": [0, 1]}}})"}};
  for (const auto& [class_name, config] : refused)
    EXPECT_NE(refusal(class_name, parse_json(config)), "") << class_name << " " << config;
}

TEST(ImportedSettings, TheLastAxisMayBeGivenByItsNumberAndNoOther) {
  for (const char* class_name : {"BatchNormalization", "LayerNormalization"}) {
    const auto with_axis = [&](const Json& axis) {
      Json layer = Json::object();
      layer["class_name"] = class_name;
      layer["config"]["axis"] = axis;
      return read_layer(layer, "m");
    };
    for (const Json& axis : {Json(-1), Json(3), Json::array({3})})
      EXPECT_EQ(with_axis(axis)->output_shapes({{-1, 2, 3, 4}}).at(0), (Shape{-1, 2, 3, 4})) << axis;
    for (const Json& axis : {Json(0), Json(1), Json(2), Json(99), Json(-2)})
      EXPECT_THROW(with_axis(axis)->output_shapes({{-1, 2, 3, 4}}), Unsupported) << class_name << " " << axis;
  }
}

TEST(ImportedSettings, ABackwardLayerIsThatOfTheForwardOne) {
  Json layer;
  const Json settings = read_settings();
  for (const auto& [version, layers] : settings.items()) layer = layers.at("Bidirectional");  // The last: Keras 3's.
  ASSERT_TRUE(layer["config"].contains("backward_layer"));
  EXPECT_NO_THROW(read_layer(layer, "m"));
  layer["config"]["backward_layer"]["config"]["units"] = 2;
  EXPECT_THROW(read_layer(layer, "m"), Unsupported);
}

}  // namespace
}  // namespace plimsoll
