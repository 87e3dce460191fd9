#include "plimsoll/model/keras/keras_config.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "plimsoll/base/dtype.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/object_paths.h"
#include "plimsoll/model/layers/input_layer.h"

namespace plimsoll::internal {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson shape_json(const Shape& shape) {
  OrderedJson result = OrderedJson::array();
  for (const std::int64_t size : shape)
    result.push_back(size == kUnknownSize ? OrderedJson(nullptr) : OrderedJson(size));
  return result;
}

OrderedJson entry(const char* module, const std::string& class_name, OrderedJson config,
                  OrderedJson registered = nullptr) {
  return {{"module", module},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"registered_name", std::move(registered)}};
}

// The Keras module of a setting's class.
const char* module_of(const std::string& class_name) {
  static const std::set<std::string> kConstraints = {"NonNeg", "UnitNorm", "MaxNorm", "MinMaxNorm"};
  static const std::set<std::string> kRegularizers = {"L1L2", "L1", "L2"};
  if (kConstraints.count(class_name) > 0) return "keras.constraints";
  if (kRegularizers.count(class_name) > 0) return "keras.regularizers";
  return built_in_layer_reader(class_name) != nullptr ? "keras.layers" : "keras.initializers";
}

// Adds the modules to the result of write_layer() for a setting or an inner layer.
void add_modules(OrderedJson& value) {
  if (value.is_array())
    for (OrderedJson& each : value) add_modules(each);
  if (!value.is_object()) return;
  for (auto& [key, inner] : value.items()) add_modules(inner);
  if (!value.contains("class_name") || !value.contains("config") || value.contains("module")) return;
  const std::string class_name = value["class_name"].get<std::string>();
  OrderedJson config = value["config"];
  config.erase("batch_input_shape");
  value = entry(module_of(class_name), class_name, std::move(config));
}

OrderedJson input_entry(const std::string& name, const Shape& shape, DType dtype) {
  return entry("keras.layers", "InputLayer",
               {{"batch_shape", shape_json(shape)}, {"dtype", dtype_name(dtype)}, {"sparse", false}, {"name", name}});
}

// Numbers for layers: a layer that is part of several models is written in each of them, with the same number.
using Numbers = std::map<const LayerBase*, std::size_t>;

OrderedJson network_json(const Network& network, Numbers& numbers);

OrderedJson layer_json_without_number(const LayerBase& layer, Numbers& numbers) {
  if (const auto* network = dynamic_cast<const Network*>(&layer)) return network_json(*network, numbers);
  if (dynamic_cast<const InputLayer*>(&layer) != nullptr)
    return input_entry(layer.name(), layer.batch_shape(), layer.input_dtype());
  OrderedJson written = write_layer(layer, layer.name());
  OrderedJson& config = written["config"];
  for (const char* key : {"batch_input_shape", "dtype", "input_length"}) config.erase(key);
  config["dtype"] = "float32";
  const bool is_known = built_in_layer_reader(layer.class_name()) != nullptr;
  for (auto& [key, value] : config.items()) add_modules(value);
  return entry(is_known ? "keras.layers" : "builtins", layer.class_name(), std::move(config),
               is_known ? OrderedJson(nullptr) : OrderedJson(layer.class_name()));
}

OrderedJson layer_json(const LayerBase& layer, Numbers& numbers) {
  OrderedJson written = layer_json_without_number(layer, numbers);
  written["shared_object_id"] = numbers.emplace(&layer, numbers.size() + 1).first->second;
  return written;
}

OrderedJson sequential_json(const Network& network, Numbers& numbers) {
  OrderedJson layers = OrderedJson::array();
  const bool has_input = dynamic_cast<const InputLayer*>(network.layers()[0].get()) != nullptr;
  if (!has_input) {
    const LayerBase& first = *network.layers()[0];
    layers.push_back(input_entry(network.name() + "_input", network.batch_shape(), first.input_dtype()));
  }
  for (const auto& layer : network.layers()) layers.push_back(layer_json(*layer, numbers));
  return entry("keras", "Sequential",
               {{"name", network.name()},
                {"trainable", network.trainable()},
                {"dtype", "float32"},
                {"layers", std::move(layers)},
                {"build_input_shape", shape_json(network.batch_shape())}});
}

// The calls of a functional model, numbered for each layer in the order in which they run.
class FunctionalWriter {
 public:
  FunctionalWriter(const Network& network, Numbers& numbers) : network_(network), numbers_(numbers) {
    std::map<const LayerBase*, std::size_t> count;
    for (const Network::Call& call : network.calls()) {
      number_[call.first_output] = count[call.layer.get()]++;
      if (!call.inputs.empty()) calls_[call.layer.get()].push_back(&call);
    }
  }

  OrderedJson write() {
    OrderedJson layers = OrderedJson::array();
    for (const LayerBase* layer : keras_layers(network_)) {
      OrderedJson written = layer_json(*layer, numbers_);
      written["name"] = layer->name();
      written["inbound_nodes"] = OrderedJson::array();
      for (const Network::Call* call : calls_[layer]) written["inbound_nodes"].push_back(call_json(*call));
      layers.push_back(std::move(written));
    }
    OrderedJson config = {
        {"name", network_.name()}, {"trainable", network_.trainable()}, {"layers", std::move(layers)}};
    for (const auto& [key, slots] :
         {std::pair("input_layers", network_.input_slots()), std::pair("output_layers", network_.output_slots())}) {
      config[key] = OrderedJson::array();
      for (const std::size_t slot : slots) config[key].push_back(place(slot));
    }
    // A single output is not in a list, so that Keras returns one tensor and not a list of one.
    for (const char* key : {"input_layers", "output_layers"})
      if (config[key].size() == 1) config[key] = OrderedJson(config[key][0]);
    return entry("keras.src.models.functional", "Functional", std::move(config), "Functional");
  }

 private:
  OrderedJson place(std::size_t slot) const {
    const Network::Call& from = network_.call_of(slot);
    return {from.layer->name(), number_.at(from.first_output), slot - from.first_output};
  }
  OrderedJson tensor(std::size_t slot) const {
    const Network::Call& from = network_.call_of(slot);
    return {{"class_name", "__keras_tensor__"},
            {"config",
             {{"shape", shape_json(from.shapes[slot - from.first_output])},
              {"dtype", dtype_name(from.inputs.empty() ? from.layer->input_dtype() : f32)},
              {"keras_history", place(slot)}}}};
  }
  // Which inputs form one argument: all of a merging layer, each of attention, states of a recurrent one by name.
  OrderedJson call_json(const Network::Call& call) const {
    OrderedJson all = OrderedJson::array(), named = OrderedJson::object();
    for (const std::size_t slot : call.inputs) all.push_back(tensor(slot));
    const std::string name = call.layer->class_name();
    const bool is_recurrent = name == "LSTM" || name == "GRU" || name == "SimpleRNN" || name == "Bidirectional";
    if (is_recurrent && all.size() > 1) {
      named["initial_state"] = OrderedJson(all.begin() + 1, all.end());
      return {{"args", OrderedJson::array({all[0]})}, {"kwargs", std::move(named)}};
    }
    if (name == "MultiHeadAttention") return {{"args", std::move(all)}, {"kwargs", std::move(named)}};
    OrderedJson arguments = OrderedJson::array();
    arguments.push_back(all.size() == 1 ? OrderedJson(all[0]) : std::move(all));
    return {{"args", std::move(arguments)}, {"kwargs", std::move(named)}};
  }

  const Network& network_;
  Numbers& numbers_;
  std::map<std::size_t, std::size_t> number_;  // Of each call, by its first slot.
  std::map<const LayerBase*, std::vector<const Network::Call*>> calls_;
};

OrderedJson network_json(const Network& network, Numbers& numbers) {
  return network.is_sequential() ? sequential_json(network, numbers) : FunctionalWriter(network, numbers).write();
}

}  // namespace

nlohmann::ordered_json keras_config(const Network& network) {
  Numbers numbers;
  return network_json(network, numbers);
}

}  // namespace plimsoll::internal
