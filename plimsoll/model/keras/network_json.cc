#include "plimsoll/model/keras/network_json.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/keras/call_references.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/shared_layers.h"
#include "plimsoll/model/layers/input_layer.h"

namespace plimsoll::internal {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

bool is_network(const std::string& name) { return name == "Sequential" || name == "Model" || name == "Functional"; }

const Json& list_at(const Json& in, const char* key, const std::string& path) {
  const auto found = in.find(key);
  if (found == in.end() || !found->is_array()) throw Corruption(fmt::format("{}/{}: expected a list", path, key));
  return *found;
}

std::string text_at(const Json& in, const char* key, const std::string& path) {
  if (!in.is_object() || !in.contains(key) || !in[key].is_string())
    throw Corruption(fmt::format("{}/{}: expected text", path, key));
  return in[key].get<std::string>();
}

// Keras 3 has operations in addition to layers ("keras.src.ops.numpy" has an Add that is not the layer).
void refuse_operations(const Json& in, const std::string& path) {
  const auto module = in.find("module");
  if (module == in.end() || !module->is_string()) return;
  const std::string& name = module->get_ref<const std::string&>();
  if (name.starts_with("keras.src.ops") || name.starts_with("keras.ops"))
    throw Unsupported(fmt::format("{}: \"{}\" is an operation, which is not offered; use layers only", path, name));
}

// A name, or the policy of that name.
std::string dtype_at(const Json& config, const std::string& path) {
  const auto found = config.find("dtype");
  if (found == config.end() || found->is_null()) return "float32";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object() || !found->contains("config")) throw Corruption(path + "/dtype: expected a name or a policy");
  return text_at((*found)["config"], "name", path + "/dtype/config");
}

// Weights and computations are float32; for inputs it is the dtype of the data.
void read_dtype(LayerBase& layer, const ConfigReader& in) {
  in.has("dtype");
  const std::string name = dtype_at(in.document().json, in.path());
  if (dynamic_cast<const InputLayer*>(&layer) != nullptr || name == "int32") {
    try {
      return layer.set_input_dtype(parse_dtype(name));
    } catch (const InvalidArgument&) {
      in.refuse("dtype", "is not a dtype of inputs that is offered");
    }
  }
  if (name != "float32" && name != "mixed_float16" && name != "mixed_bfloat16")
    in.refuse("dtype", "is not offered; layers compute in float32");
}

void read_common(LayerBase& layer, const ConfigReader& in) {
  const std::string name = in.text("name", "");
  if (!name.empty()) layer.give_name(name);
  for (const char* key : {"batch_input_shape", "batch_shape"})
    if (in.has(key)) layer.set_batch_shape(in.shape(key));
  read_dtype(layer, in);
  if (!in.flag("trainable", true)) layer.set_trainable(false);
}

struct PendingCall {
  std::string layer;
  std::size_t node = 0;
  std::vector<Reference> inputs;
  std::string path;
};

// The layers of a functional model, connected as far as their inputs are.
class FunctionalReader {
 public:
  FunctionalReader(const Json& config, const std::string& path, int depth) : path_(path) {
    const Json& list = list_at(config, "layers", path);
    for (std::size_t i = 0; i < list.size(); ++i) add(list[i], fmt::format("{}/layers/{}", path, i), depth);
    number_calls_of_models(config);
    connect();
  }
  LayerOutput at(const Reference& place, const std::string& path) const {
    const auto found = outputs_.find({place.layer, place.node});
    if (found == outputs_.end())
      throw Corruption(fmt::format("{}: there is no call {} of a layer \"{}\"", path, place.node, place.layer));
    if (place.tensor >= found->second.size())
      throw Corruption(fmt::format("{}: layer \"{}\" has {}, number {} is used", path, place.layer,
                                   plural(found->second.size(), "output"), place.tensor));
    return found->second[place.tensor];
  }

 private:
  void add(const Json& in, const std::string& path, int depth) {
    const std::shared_ptr<LayerBase> layer = read_layer(in, path, depth + 1);
    const std::string name = in.contains("name") ? text_at(in, "name", path) : layer->name();
    if (layer->name().empty()) layer->give_name(name);
    if (!layers_.emplace(name, layer).second)
      throw Corruption(fmt::format("{}: a second layer is named \"{}\"", path, name));
    if (auto input = std::dynamic_pointer_cast<InputLayer>(layer)) {
      if (!input->batch_shape().is_set())
        throw Corruption(fmt::format("{}: an input without a batch_input_shape", path));
      outputs_[{name, 0}] = {input_of(input)};
      return;
    }
    const Json& nodes = list_at(in, "inbound_nodes", path);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string at = fmt::format("{}/inbound_nodes/{}", path, i);
      pending_.push_back({name, i, nodes[i].is_object() ? read_call(nodes[i], at) : read_references(nodes[i], at), at});
    }
  }
  // A nested model has a call 0 of its own, which is not listed, so the listed ones count from 1; unless something
  // refers to call 0.
  void number_calls_of_models(const Json& config) {
    std::set<std::string> from_zero;
    const auto note = [&](const Reference& place) {
      if (place.node == 0) from_zero.insert(place.layer);
    };
    for (const PendingCall& call : pending_)
      for (const Reference& input : call.inputs) note(input);
    if (config.contains("output_layers"))
      for (const Reference& place : read_references(config["output_layers"], path_ + "/output_layers")) note(place);
    for (PendingCall& call : pending_) {
      const bool is_model = dynamic_cast<const Network*>(layers_.at(call.layer).get()) != nullptr;
      if (is_model && from_zero.count(call.layer) == 0) ++call.node;
    }
  }
  using Place = std::pair<std::string, std::size_t>;  // A layer, and the number of its call.

  // Each call once, as soon as its last input is available.
  void connect() {
    std::map<Place, std::vector<std::size_t>> waiting;
    std::vector<std::size_t> missing(pending_.size(), 0), ready;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      for (const Reference& input : pending_[i].inputs) {
        if (outputs_.count({input.layer, input.node}) > 0) continue;
        waiting[{input.layer, input.node}].push_back(i);
        ++missing[i];
      }
      if (missing[i] == 0) ready.push_back(i);
    }
    std::size_t connected = 0;
    for (; !ready.empty(); ++connected) {
      const PendingCall& call = pending_[ready.back()];
      ready.pop_back();
      std::vector<LayerOutput> inputs;
      for (const Reference& input : call.inputs) inputs.push_back(at(input, call.path));
      const Place place = {call.layer, call.node};
      outputs_[place] = Layer(layers_.at(call.layer)).outputs(inputs);
      for (const std::size_t i : waiting[place])
        if (--missing[i] == 0) ready.push_back(i);
    }
    if (connected == pending_.size()) return;
    for (std::size_t i = 0; i < pending_.size(); ++i)
      if (missing[i] > 0)
        throw Corruption(
            fmt::format("{}: takes the output of a layer that is not there or depends on it", pending_[i].path));
  }

  const std::string path_;
  std::map<std::string, std::shared_ptr<LayerBase>> layers_;
  std::map<Place, std::vector<LayerOutput>> outputs_;
  std::vector<PendingCall> pending_;
};

std::shared_ptr<Network> read_functional(const ConfigReader& in, int depth) {
  const Json& config = in.document().json;
  const std::string& path = in.path();
  for (const char* key : {"layers", "input_layers", "output_layers"}) in.has(key);
  const FunctionalReader reader(config, path, depth);
  const auto ends = [&](const char* key) {
    const std::string at = path + "/" + key;
    if (!config.contains(key)) throw Corruption(fmt::format("{}: is missing", at));
    std::vector<LayerOutput> result;
    for (const Reference& place : read_references(config[key], at)) result.push_back(reader.at(place, at));
    return result;
  };
  return std::make_shared<Network>(ends("input_layers"), ends("output_layers"), in.text("name", ""));
}

std::shared_ptr<Network> read_chain(const Json& list, const std::string& name, const std::string& path, int depth) {
  if (list.empty()) throw Corruption(fmt::format("{}: a model without layers", path));
  auto network = std::make_shared<Network>(name);
  for (std::size_t i = 0; i < list.size(); ++i)
    network->add(read_layer(list[i], fmt::format("{}/layers/{}", path, i), depth + 1));
  return network;
}

std::shared_ptr<Network> read_sequential(const ConfigReader& in, int depth) {
  in.has("layers");
  auto network = read_chain(list_at(in.document().json, "layers", in.path()), in.text("name", ""), in.path(), depth);
  if (in.has("build_input_shape")) {  // A chain without an input shape that was called.
    const Shape shape = in.shape("build_input_shape");
    if (!network->is_connected()) network->connect(shape, f32);
  }
  return network;
}

OrderedJson shape_json(const Shape& shape) {
  OrderedJson result = OrderedJson::array();
  for (const std::int64_t size : shape)
    result.push_back(size == kUnknownSize ? OrderedJson(nullptr) : OrderedJson(size));
  return result;
}

}  // namespace

LayerReader built_in_layer_reader(std::string_view class_name) {
  for (const auto find :
       {core_layer_reader, noise_layer_reader, merge_layer_reader, activation_layer_reader, convolution_layer_reader,
        spatial_layer_reader, pooling_layer_reader, normalization_layer_reader, recurrent_layer_reader,
        wrapper_layer_reader, attention_layer_reader})
    if (const LayerReader reader = find(class_name)) return reader;
  return nullptr;
}

std::shared_ptr<Network> read_network(const std::string& class_name, const Json& config, const std::string& path,
                                      int depth) {
  try {
    const bool is_chain = class_name == "Sequential";
    if (is_chain && config.is_array()) return read_chain(config, "", path, depth);  // Keras before 2.2.
    const ConfigReader in = config_reader(config, path, depth);
    std::shared_ptr<Network> network = is_chain ? read_sequential(in, depth) : read_functional(in, depth);
    if (!in.flag("trainable", true)) network->set_trainable(false);
    read_dtype(*network, in);
    refuse_unread(in, class_name);
    return network;
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", path, error.what()));
  }
}

std::shared_ptr<LayerBase> read_layer(const Json& in, const std::string& path, int depth) {
  const std::string class_name = text_at(in, "class_name", path);
  if (!in.contains("config")) throw Corruption(fmt::format("{}/config: is missing", path));
  const Json& config = in["config"];
  const std::string at = path + "/config";
  if (depth > 32) throw Corruption(fmt::format("{}: layers are nested more than 32 deep", path));
  if (std::shared_ptr<LayerBase> before = SharedLayers::find(in)) return before;
  refuse_operations(in, path);
  if (is_network(class_name)) return SharedLayers::note(in, read_network(class_name, config, at, depth));
  const LayerReader reader = built_in_layer_reader(class_name);
  const LayerFactory factory = reader == nullptr ? registered_layer_factory(class_name) : LayerFactory();
  if (reader == nullptr && !factory)
    throw Unsupported(fmt::format(
        "{}: layers of class \"{}\" are not offered; if it is one of yours, call layers::register_layer first", path,
        class_name));
  try {
    const ConfigReader settings = config_reader(config, at, depth);
    const std::shared_ptr<LayerBase> layer = reader ? reader(settings) : factory(settings).shared_base();
    read_common(*layer, settings);
    refuse_unread(settings, class_name);
    return SharedLayers::note(in, layer);
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", at, error.what()));
  }
}

OrderedJson write_layer(const LayerBase& layer, const std::string& name) {
  if (const auto* network = dynamic_cast<const Network*>(&layer))
    return {{"class_name", network->is_sequential() ? "Sequential" : "Model"},
            {"config", write_network_config(*network)}};
  OrderedJson config = OrderedJson::object();
  ConfigWriter::Document document{config};
  ConfigWriter writer(document);
  layer.config(writer);
  config["name"] = name;
  config["trainable"] = layer.trainable();
  if (layer.batch_shape().is_set()) {
    config["batch_input_shape"] = shape_json(layer.batch_shape());
    // For other layers it is that of their weights.
    const bool is_input = dynamic_cast<const InputLayer*>(&layer) != nullptr;
    config["dtype"] = is_input ? dtype_name(layer.input_dtype()) : "float32";
    if (is_input) config["sparse"] = false;
  }
  return {{"class_name", layer.class_name()}, {"config", std::move(config)}};
}

OrderedJson write_network_config(const Network& network) {
  OrderedJson config = {{"name", network.name()}, {"layers", OrderedJson::array()}};
  if (network.is_sequential()) {
    for (std::size_t i = 0; i < network.layers().size(); ++i) {
      OrderedJson layer = write_layer(*network.layers()[i], network.layers()[i]->name());
      const bool first_of_all = i == 0 && network.is_connected() && !layer["config"].contains("layers");
      if (first_of_all) {
        layer["config"]["batch_input_shape"] = shape_json(network.batch_shape());
        if (!layer["config"].contains("dtype")) layer["config"]["dtype"] = "float32";
      }
      config["layers"].push_back(std::move(layer));
    }
    return config;
  }
  // Calls of a layer are numbered in the order in which they run.
  std::map<const LayerBase*, std::size_t> count;
  std::map<std::size_t, std::size_t> number;  // Of each call, by its first slot.
  std::map<const LayerBase*, std::vector<const Network::Call*>> calls;
  for (const Network::Call& call : network.calls()) {
    const bool is_model = dynamic_cast<const Network*>(call.layer.get()) != nullptr;  // These count from 1.
    number[call.first_output] = count[call.layer.get()]++ + (is_model ? 1 : 0);
    if (!call.inputs.empty()) calls[call.layer.get()].push_back(&call);
  }
  const auto reference = [&](std::size_t slot) -> OrderedJson {
    const Network::Call& from = network.call_of(slot);
    return {from.layer->name(), number[from.first_output], slot - from.first_output};
  };
  for (const auto& layer : network.layers()) {
    OrderedJson entry = write_layer(*layer, layer->name());
    entry["name"] = layer->name();
    entry["inbound_nodes"] = OrderedJson::array();
    for (const Network::Call* call : calls[layer.get()]) {
      OrderedJson inputs = OrderedJson::array();
      for (const std::size_t slot : call->inputs) {
        OrderedJson place = reference(slot);
        place.push_back(OrderedJson::object());
        inputs.push_back(std::move(place));
      }
      entry["inbound_nodes"].push_back(std::move(inputs));
    }
    config["layers"].push_back(std::move(entry));
  }
  for (const auto& [key, slots] :
       {std::pair("input_layers", network.input_slots()), std::pair("output_layers", network.output_slots())}) {
    config[key] = OrderedJson::array();
    for (const std::size_t slot : slots) config[key].push_back(reference(slot));
  }
  return config;
}

void Network::config(ConfigWriter&) const {}

}  // namespace plimsoll::internal
