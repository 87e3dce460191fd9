#include "plimsoll/model/layers_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/model/counted.h"
#include "plimsoll/model/internal/json_file.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/internal/network_json.h"
#include "plimsoll/model/internal/training_json.h"
#include "plimsoll/model/internal/weights_follow.h"
#include "plimsoll/model/internal/weights_manifest.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// TF.js refuses a model whose training configuration it does not know; then it has a name that it does not look at.
constexpr const char* kTraining = "trainingConfig";
constexpr const char* kOwnTraining = "plimsollTrainingConfig";

void refuse_graph_models(const Json& document, const std::string& path) {
  const bool says_so = document.value("format", "") == "graph-model";
  const auto topology = document.find("modelTopology");
  const bool has_nodes = topology != document.end() && topology->is_object() && topology->contains("node");
  if (says_so || has_nodes)
    throw Unsupported(fmt::format(
        "{}: is a graph model; only Layers models can be loaded, convert it with the Keras converter", path));
}

// layer/lstm_cell/kernel stands for layer/kernel.
std::string without_inner_name(const std::string& name) {
  const std::size_t last = name.rfind('/');
  const std::size_t before = last == std::string::npos || last == 0 ? std::string::npos : name.rfind('/', last - 1);
  return before == std::string::npos ? name : name.substr(0, before) + name.substr(last);
}

void assign_weights(Network& network, const std::map<std::string, Tensor>& weights, const std::string& path) {
  std::map<std::string, Variable> targets;
  for (const LayerBase::Weight& weight : network.unique_weights())
    if (!targets.emplace(weight.variable.name(), weight.variable).second)
      throw Corruption(fmt::format("{}: two weights are named \"{}\"", path, weight.variable.name()));
  for (const auto& [name, value] : weights) {
    auto target = targets.find(name);
    if (target == targets.end()) target = targets.find(without_inner_name(name));
    if (target == targets.end())
      throw Corruption(fmt::format("{}: weight \"{}\" belongs to no layer of the model", path, name));
    const Variable& variable = target->second;
    if (!(variable.shape() == value.shape()) || variable.dtype() != value.dtype())
      throw Corruption(fmt::format("{}: weight \"{}\" is {} {}, the layer's {} {}", path, name,
                                   dtype_name(value.dtype()), value.shape().to_string(), dtype_name(variable.dtype()),
                                   variable.shape().to_string()));
    variable.assign(value);
    targets.erase(target);
  }
  if (targets.empty()) return;
  std::string missing;
  for (const auto& [name, variable] : targets) missing += missing.empty() ? name : ", " + name;
  throw Corruption(fmt::format("{}: {} of the model {} not in the file: {}", path, counted(targets.size(), "weight"),
                               targets.size() == 1 ? "is" : "are", missing));
}

std::shared_ptr<Network> read_topology(const Json& document, const std::string& path) {
  const bool is_bare = document.contains("class_name") && document.contains("config");  // Keras' to_json.
  if (!is_bare && (!document.contains("modelTopology") || !document["modelTopology"].is_object()))
    throw Corruption(fmt::format("{}: has no modelTopology; it is no Layers model", path));
  const Json& topology = is_bare ? document : document["modelTopology"];
  const Json& model = topology.contains("model_config") ? topology["model_config"] : topology;
  const std::string at = path + ": modelTopology";
  if (!model.is_object() || !model.contains("class_name") || !model["class_name"].is_string() ||
      !model.contains("config"))
    throw Corruption(fmt::format("{}: expected class_name and config", at));
  const std::string class_name = model["class_name"].get<std::string>();
  if (class_name != "Sequential" && class_name != "Model" && class_name != "Functional")
    throw Unsupported(fmt::format("{}: a model of class \"{}\" is not offered", at, class_name));
  return read_network(class_name, model["config"], at + "/config", 0);
}

const char* manifest_dtype(const Tensor& tensor, const std::string& name) {
  if (tensor.dtype() == f32) return "float32";
  if (tensor.dtype() == i32) return "int32";
  if (tensor.dtype() == boolean) return "bool";
  throw Unsupported(fmt::format("save_layers_model: weight \"{}\" is of {}, which the format does not have", name,
                                dtype_name(tensor.dtype())));
}

// What is written to weights.bin, in the order of the manifest.
struct Manifest {
  OrderedJson entries = OrderedJson::array();
  std::vector<Tensor> values;

  void add(const std::string& name, const Tensor& value, bool of_optimizer) {
    OrderedJson entry = {{"name", name},
                         {"shape", std::vector<std::int64_t>(value.shape().begin(), value.shape().end())},
                         {"dtype", manifest_dtype(value, name)}};
    if (of_optimizer) entry["group"] = "optimizer";
    entries.push_back(std::move(entry));
    values.push_back(value);
  }
};

}  // namespace

Model load_layers_model(const std::string& path) {
  const Json document = read_json_file(path);
  if (!document.is_object()) throw Corruption(fmt::format("{}: is no object; it is no Layers model", path));
  refuse_graph_models(document, path);
  const bool has_weights = document.contains("weightsManifest");
  Model model([&] {
    const WeightsFollow zeros(has_weights);
    return read_topology(document, path);
  }());
  if (!model.is_built())
    throw Corruption(fmt::format("{}: modelTopology: the first layer has no batch_input_shape", path));
  const TidyScope scope;
  NamedWeights weights;
  if (has_weights) {
    weights =
        read_weights(document["weightsManifest"], fs::path(path).parent_path().string(), path + ": weightsManifest");
    assign_weights(model.network(), weights.weights, path);
  }
  for (const char* key : {kTraining, kOwnTraining})
    if (document.contains(key) && document[key].is_object())
      read_training(model, document[key], weights.optimizer, path + ": " + key);
  return model;
}

void save_layers_model(const Model& model, const std::string& directory, const SaveLayersOptions& options) {
  Network& network = model.network();
  if (!network.is_connected())
    throw FailedPrecondition(fmt::format(
        "save_layers_model: model \"{}\" has no weights yet; give its first layer an input_shape", model.name()));
  const TidyScope scope;
  Manifest manifest;
  std::set<std::string> names;
  for (const Variable& variable : model.weights()) {
    if (!names.insert(variable.name()).second)
      throw InvalidArgument(
          fmt::format("save_layers_model: two weights are named \"{}\"; name the layers", variable.name()));
    manifest.add(variable.name(), variable.value(), false);
  }
  OrderedJson topology = {{"class_name", network.is_sequential() ? "Sequential" : "Model"},
                          {"config", write_network_config(network)},
                          {"keras_version", "tfjs-layers 4.22.0"},
                          {"backend", "tensor_flow.js"}};
  OrderedJson document = {{"modelTopology", std::move(topology)},
                          {"format", "layers-model"},
                          {"generatedBy", "Plimsoll"},
                          {"convertedBy", nullptr}};
  if (options.include_optimizer)
    document[tfjs_takes_training(model) ? kTraining : kOwnTraining] =
        write_training(model, [&](const std::string& name, const Tensor& value) { manifest.add(name, value, true); });
  document["weightsManifest"] =
      OrderedJson::array({{{"paths", OrderedJson::array({"weights.bin"})}, {"weights", std::move(manifest.entries)}}});
  make_directories(directory);
  AtomicFile weights(fs::path(directory) / "weights.bin");
  for (const Tensor& value : manifest.values) {
    const ConstTensorView view = value.view();
    weights.write(std::span<const std::byte>(view.bytes(), view.nbytes()));
  }
  weights.commit();
  AtomicFile json(fs::path(directory) / "model.json");
  json.write(document.dump());
  json.commit();
}

}  // namespace plimsoll
