#include "plimsoll/model/keras/stored_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/layer_names.h"
#include "plimsoll/model/layers/recurrent_layer.h"

namespace plimsoll::internal {
namespace {

using Json = nlohmann::json;

// "dense", "dense_1", ...: Keras' names for the parts of one model.
class GroupNames {
 public:
  std::string next(const std::string& class_name) {
    const std::size_t package = class_name.rfind('>');  // "Package>Layer".
    std::string name = snake_case(package == std::string::npos ? class_name : class_name.substr(package + 1));
    const int number = used_[name]++;
    return number == 0 ? name : fmt::format("{}_{}", name, number);
  }

 private:
  std::map<std::string, int> used_;
};

// The list of layers of a model, and the text that names one of them.
const Json& layer_list(const Json& config, const std::string& path) {
  const Json* list = config.is_array() ? &config : nullptr;
  if (config.is_object() && config.contains("layers")) list = &config["layers"];
  if (list == nullptr || !list->is_array()) throw Corruption(fmt::format("{}/layers: expected a list", path));
  return *list;
}
std::string name_of(const Json& entry) {
  if (entry.contains("config") && entry["config"].is_object() && entry["config"].contains("name") &&
      entry["config"]["name"].is_string())
    return entry["config"]["name"].get<std::string>();
  return entry.contains("name") && entry["name"].is_string() ? entry["name"].get<std::string>() : "";
}

class Collector {
 public:
  explicit Collector(std::string path) : path_(std::move(path)) {}

  void visit_network(const Network& network, const Json& config, const std::string& prefix) {
    GroupNames names;
    std::map<std::string, const LayerBase*> by_name;
    for (const auto& layer : network.layers()) by_name.emplace(layer->name(), layer.get());
    std::vector<const LayerBase*> in_order;  // Inputs have no weights, and a sequential model may lack theirs.
    for (const auto& layer : network.layers())
      if (layer->class_name() != std::string("InputLayer")) in_order.push_back(layer.get());
    std::size_t position = 0;
    for (const Json& entry : layer_list(config, path_)) {
      const std::string class_name = entry.value("class_name", ""), group = names.next(class_name);
      if (class_name == "InputLayer") continue;
      const LayerBase* layer = nullptr;
      if (const auto found = by_name.find(name_of(entry)); found != by_name.end()) layer = found->second;
      if (layer == nullptr && network.is_sequential() && position < in_order.size()) layer = in_order[position];
      ++position;
      if (layer != nullptr) visit(*layer, entry, fmt::format("{}layers/{}/", prefix, group));
    }
  }

  std::vector<StoredWeight> result;

 private:
  void visit(const LayerBase& layer, const Json& entry, const std::string& prefix) {
    const Json none = Json::object();
    const Json& config = entry.contains("config") ? entry["config"] : none;
    if (const auto* network = dynamic_cast<const Network*>(&layer)) return visit_network(*network, config, prefix);
    add_own(layer, prefix);
    const std::vector<LayerBase*> inner = layer.inner_layers();
    const bool both = layer.class_name() == std::string("Bidirectional");
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const char* attribute = !both ? "layer/" : i == 0 ? "forward_layer/" : "backward_layer/";
      visit(*inner[i], config.is_object() && config.contains("layer") ? config["layer"] : none, prefix + attribute);
    }
  }

  // The part of the layer that has the weight: "" for the layer itself.
  static std::string part_of(const LayerBase& layer, const std::string& weight) {
    if (dynamic_cast<const RecurrentLayer*>(&layer) != nullptr) return "cell/";
    if (layer.class_name() != std::string("MultiHeadAttention")) return "";
    const std::size_t last = weight.rfind('/'), before = weight.rfind('/', last - 1);
    const std::string part = weight.substr(before + 1, last - before - 1);
    return part == "attention_output" ? "output_dense/" : part + "_dense/";
  }

  void add_own(const LayerBase& layer, const std::string& prefix) {
    std::vector<LayerBase::Weight> weights = layer.own_weights();
    std::stable_partition(weights.begin(), weights.end(), [](const LayerBase::Weight& w) { return w.trainable; });
    std::map<std::string, int> next;
    for (const LayerBase::Weight& weight : weights) {
      const std::string group = prefix + part_of(layer, weight.variable.name()) + "vars";
      result.push_back({fmt::format("{}/{}", group, next[group]++), group, layer.name(), weight.variable,
                        weight.trainable && layer.trainable()});
    }
  }

  const std::string path_;
};

}  // namespace

std::vector<StoredWeight> stored_weights(const Network& network, const Json& config, const std::string& path) {
  Collector collector(path);
  collector.visit_network(network, config, "");
  return std::move(collector.result);
}

std::vector<LegacyLayer> legacy_weights(const Network& network, const Json& config, const std::string& path) {
  std::vector<LegacyLayer> result;
  std::map<std::string, std::size_t> positions;  // Of layers, by the first two parts of their weights' paths.
  std::map<std::size_t, std::vector<Variable>> later;
  std::map<std::string, std::string> names;
  GroupNames groups;
  for (const Json& entry : layer_list(config, path))
    names["layers/" + groups.next(entry.value("class_name", ""))] = name_of(entry);
  for (const StoredWeight& each : stored_weights(network, config, path)) {
    const std::string group = each.path.substr(0, each.path.find('/', 7));  // After "layers/".
    const auto [place, is_new] = positions.emplace(group, result.size());
    if (is_new) result.push_back({names[group], {}});
    (each.trainable ? result[place->second].weights : later[place->second]).push_back(each.variable);
  }
  for (auto& [position, weights] : later)
    result[position].weights.insert(result[position].weights.end(), weights.begin(), weights.end());
  return result;
}

}  // namespace plimsoll::internal
