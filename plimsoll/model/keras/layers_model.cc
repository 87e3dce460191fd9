#include "plimsoll/model/keras/layers_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/model/data/json_file.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/network_json.h"
#include "plimsoll/model/keras/training_json.h"
#include "plimsoll/model/keras/weights_manifest.h"
#include "plimsoll/model/layers/lazy_zero_weights.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// TF.js refuses a model whose training configuration it does not know; such a configuration gets a name that TF.js
// ignores.
constexpr const char* kTraining = "trainingConfig";
constexpr const char* kOwnTraining = "plimsollTrainingConfig";
constexpr std::size_t kMostWeightBytes = std::size_t{1} << 50;
// Two names, so that new weights never replace those that the previous model.json names.
constexpr const char* kWeightFiles[] = {"weights.bin", "weights-2.bin"};

void refuse_graph_models(const Json& document, const std::string& path) {
  const bool says_so = config_reader(document, path).text("format", "") == "graph-model";
  const auto topology = document.find("modelTopology");
  const bool has_nodes = topology != document.end() && topology->is_object() && topology->contains("node");
  if (says_so || has_nodes)
    throw Unsupported(fmt::format(
        "{}: is a graph model of TensorFlow.js, which has operations and no layers; convert the Keras model that it "
        "was "
        "made of with `tensorflowjs_converter --input_format=keras --output_format=tfjs_layers_model MODEL.h5 OUT`",
        path));
}

// Saturating sums.
std::size_t weight_bytes(const Network& network) {
  std::size_t total = 0;
  for (const LayerBase::Weight& weight : network.unique_weights())
    total = weight.variable.nbytes() > SIZE_MAX - total ? SIZE_MAX : total + weight.variable.nbytes();
  return total;
}

// Refuses weights that no memory, or not this device, can hold, before the first of them is made.
void require_room(const Network& network, bool on_device, const std::string& path) {
  const std::size_t bytes = weight_bytes(network);
  if (bytes > kMostWeightBytes)
    throw Corruption(
        fmt::format("{}: the weights take more than {}; no machine has that", path, format_bytes(kMostWeightBytes)));
  if (!on_device) return;
  const std::size_t limit = memory_stats().bytes_limit;
  if (bytes <= limit) return;
  OutOfMemoryDetails details;
  details.requested = bytes;
  details.limit = limit;
  details.smallest_sufficient_limit = bytes;
  details.what = fmt::format("{}: the weights take {}, the device's limit is {}; raise it, or choose a smaller model",
                             path, format_bytes_exactly(bytes), format_bytes_exactly(limit));
  throw OutOfMemory(std::move(details));
}

// layer/lstm_cell/kernel means layer/kernel.
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
  throw Corruption(fmt::format("{}: {} of the model {} not in the file: {}", path, plural(targets.size(), "weight"),
                               targets.size() == 1 ? "is" : "are", missing));
}

std::shared_ptr<Network> read_topology(const Json& document, const std::string& path) {
  const bool is_bare = document.contains("class_name") && document.contains("config");  // Keras' to_json.
  if (!is_bare && (!document.contains("modelTopology") || !document["modelTopology"].is_object()))
    throw Corruption(fmt::format("{}: has no modelTopology; it is not a Layers model", path));
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

// What is written to the weights' file, in the order of the manifest.
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

// Whether the existing model.json names this file. One that cannot be read names none: it is not a model.
bool is_named(const fs::path& json, const std::string& file) {
  bool named = false;
  try {
    with_json_file(json.string(), [&](const Json& document) {
      if (!document.is_object() || !document.contains("weightsManifest")) return;
      for (const Json& group : document["weightsManifest"])
        for (const Json& name : group.at("paths")) named = named || name == file;
    });
  } catch (const Error&) {
  }
  return named;
}

// Switches in one step: the weights go to a file that nothing names yet, and model.json, which names it, is written
// last.
void write_files(const fs::path& directory, OrderedJson& document, Manifest& manifest) {
  make_directories(directory);
  remove_stale_temporaries(directory, "weights");
  remove_stale_temporaries(directory, "model.json.");
  const fs::path json_path = directory / "model.json";
  const std::string old_file = kWeightFiles[is_named(json_path, kWeightFiles[0]) ? 0 : 1];
  const std::string file = kWeightFiles[old_file == kWeightFiles[0] ? 1 : 0];
  document["weightsManifest"] =
      OrderedJson::array({{{"paths", OrderedJson::array({file})}, {"weights", std::move(manifest.entries)}}});
  AtomicFile weights(directory / file);
  for (const Tensor& value : manifest.values) {
    const HostRead read(value);
    const ConstTensorView& view = read.view();
    weights.write(std::span<const std::byte>(view.bytes(), view.nbytes()));
  }
  AtomicFile json(json_path);
  json.write(strict_json_text(document));
  weights.commit();
  std::error_code ignored;
  try {
    json.commit();
  } catch (...) {
    if (!is_named(json_path, file)) fs::remove(directory / file, ignored);
    throw;
  }
  fs::remove(directory / old_file, ignored);
}

// Another process may save over a model while it is loaded: its weights are then gone, and model.json is new.
constexpr int kMostAttempts = 5;

Model read_model(const Json& document, const std::string& path, const LoadLayersOptions& options) {
  if (!document.is_object()) throw Corruption(fmt::format("{}: is not an object; it is not a Layers model", path));
  refuse_graph_models(document, path);
  const bool has_weights = document.contains("weightsManifest");
  std::shared_ptr<Network> network;
  {
    const LazyZeroWeights later(true);
    network = read_topology(document, path);
  }
  require_room(*network, options.weights, path);
  if (options.weights && !has_weights) network = read_topology(document, path);  // With initial values.
  Model model(network);
  if (!model.is_built())
    throw Corruption(fmt::format("{}: modelTopology: the first layer has no batch_input_shape", path));
  const TidyScope scope;
  NamedWeights weights;
  if (options.weights && has_weights) {
    weights =
        read_weights(document["weightsManifest"], fs::path(path).parent_path().string(), path + ": weightsManifest");
    assign_weights(model.network(), weights.weights, path);
  }
  for (const char* key : {kTraining, kOwnTraining})
    if (document.contains(key) && document[key].is_object())
      read_training(model, document[key], weights.optimizer, path + ": " + key);
  return model;
}

// Without weights.
OrderedJson document_of(const Network& network) {
  OrderedJson topology = {{"class_name", network.is_sequential() ? "Sequential" : "Model"},
                          {"config", write_network_config(network)},
                          {"keras_version", "tfjs-layers 4.22.0"},
                          {"backend", "tensor_flow.js"}};
  return {{"modelTopology", std::move(topology)},
          {"format", "layers-model"},
          {"generatedBy", "Plimsoll"},
          {"convertedBy", nullptr}};
}

}  // namespace

std::string internal::layers_topology(const Model& model, bool with_training) {
  OrderedJson document = document_of(model.network());
  if (with_training)
    document[tfjs_takes_training(model) ? kTraining : kOwnTraining] =
        write_training(model, [](const std::string&, const Tensor&) {});
  return json_text(document, 1);
}

Model load_layers_model(const std::string& path, const LoadLayersOptions& options) {
  std::optional<Model> model;
  Json before;
  for (int attempt = 1; !model; ++attempt) {
    with_json_file(path, [&](const Json& document) {
      try {
        model = read_model(document, path, options);
      } catch (const NotFound&) {
        if (attempt == kMostAttempts || document == before) throw;
        before = document;
      }
    });
  }
  return *model;
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
  OrderedJson document = document_of(network);
  if (options.include_optimizer)
    document[tfjs_takes_training(model) ? kTraining : kOwnTraining] =
        write_training(model, [&](const std::string& name, const Tensor& value) { manifest.add(name, value, true); });
  if (network.training.job && network.training.job->rank() != 0) return;  // The first process writes.
  write_files(directory, document, manifest);
}

}  // namespace plimsoll
