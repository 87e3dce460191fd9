#include "plimsoll/model/keras/keras_file.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/io/archive.h"
#include "plimsoll/io/hdf5.h"
#include "plimsoll/model/data/json_file.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/keras/keras_config.h"
#include "plimsoll/model/keras/keras_training.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/keras/network_json.h"
#include "plimsoll/model/keras/shared_layers.h"
#include "plimsoll/model/keras/stored_weights.h"
#include "plimsoll/model/layers/lazy_zero_weights.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMaxConfigBytes = 256_MiB;
constexpr const char* kWeights = "model.weights.h5";
constexpr const char* kOldLayers = "_layer_checkpoint_dependencies";  // What Keras 2.12 called "layers".

enum class FileKind { kOther, kArchive, kHdf5 };

FileKind kind_of(const std::string& path) {
  char head[8] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof(head));
  const std::string_view text(head, sizeof(head));
  if (text.starts_with("PK\x03\x04")) return FileKind::kArchive;
  return text.starts_with("\x89HDF\r\n\x1a") ? FileKind::kHdf5 : FileKind::kOther;
}

std::shared_ptr<Network> read_described(const Json& model, const std::string& path, bool with_values) {
  if (!model.is_object() || !model.contains("class_name") || !model["class_name"].is_string() ||
      !model.contains("config"))
    throw Corruption(fmt::format("{}: expected class_name and config", path));
  const std::string class_name = model["class_name"].get<std::string>();
  if (class_name != "Sequential" && class_name != "Model" && class_name != "Functional")
    throw Unsupported(fmt::format("{}: a model of class \"{}\" is not offered; sequential and functional ones are",
                                  path, class_name));
  const SharedLayers shared;
  const LazyZeroWeights later(!with_values);
  return read_network(class_name, model["config"], path + "/config", 0);
}

Model described(const Json& model, const std::string& path) {
  Model result(read_described(model, path, false));
  if (!result.is_built())
    throw Corruption(fmt::format("{}: the shape of the input is not known; build the model before it is saved", path));
  return result;
}

// The value for a variable, on the file's pages where that is possible.
Tensor value_for(const Hdf5File& file, const std::string& name, const Variable& variable, const std::string& path) {
  const Hdf5Entry& entry = file.entry(name);
  const bool fits = entry.dtype && (entry.dtype == variable.dtype() || is_floating(*entry.dtype));
  if (!(entry.shape == variable.shape()) || !fits)
    throw Corruption(fmt::format("{}: weight \"{}\" is {} {}, the layer's \"{}\" {} {}", path, name, entry.type_name,
                                 entry.shape.to_string(), variable.name(), dtype_name(variable.dtype()),
                                 variable.shape().to_string()));
  Tensor value = file.map(name);
  if (value.device() != variable.device()) value = value.to(variable.device());
  return value.dtype() == variable.dtype() ? value : cast(value, variable.dtype());
}

void refuse_missing(const std::vector<std::string>& missing, const std::string& path) {
  if (missing.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < missing.size() && i < 10; ++i) names += (i == 0 ? "" : ", ") + missing[i];
  throw Corruption(fmt::format("{}: {} of the model {} not in the file: {}", path, plural(missing.size(), "weight"),
                               missing.size() == 1 ? "is" : "are", names));
}

std::vector<Variable> trained(const std::vector<StoredWeight>& weights) {
  std::vector<Variable> result;
  std::set<std::uint64_t> seen;
  for (const StoredWeight& each : weights)
    if (each.trainable && seen.insert(each.variable.id()).second) result.push_back(each.variable);
  return result;
}

void assign_stored(const std::vector<StoredWeight>& weights, const Hdf5File& file, const std::string& path) {
  const bool is_old = !file.has("layers") && file.has(kOldLayers);
  std::map<std::uint64_t, bool> done;
  for (const StoredWeight& each : weights) {
    bool& is_done = done[each.variable.id()];
    const std::string name = is_old ? kOldLayers + each.path.substr(6) : each.path;
    if (is_done || !file.has(name)) continue;
    each.variable.assign(value_for(file, name, each.variable, path));
    is_done = true;
  }
  std::vector<std::string> missing;
  for (const StoredWeight& each : weights)
    if (!std::exchange(done[each.variable.id()], true)) missing.push_back(each.path);
  refuse_missing(missing, path);
}

// A handle that is empty when the file has no such variable.
Tensor optimizer_variable(const Hdf5File& file, const std::string& name) {
  return file.has(name) ? file.read(name) : Tensor();
}

Model load_archive(const std::string& path, const LoadKerasOptions& options) {
  const Archive archive(path);
  if (!archive.has("config.json"))
    throw Corruption(fmt::format("{}: has no config.json; it is not a model of Keras 3", path));
  std::optional<Model> model;
  with_json_text(archive.text("config.json", kMaxConfigBytes), path + ": config.json", [&](const Json& document) {
    model = described(document, path);
    const std::vector<StoredWeight> weights = stored_weights(model->network(), document["config"], path);
    const bool compiles =
        options.compile && document.contains("compile_config") && document["compile_config"].is_object();
    if (compiles) read_keras_training(*model, document["compile_config"], path + ": compile_config");
    if (!options.weights) return;
    const Hdf5File file = archive.hdf5(kWeights);
    const TidyScope scope;
    assign_stored(weights, file, path);
    if (!model->is_compiled()) return;
    const auto get = [&](std::size_t i) { return optimizer_variable(file, fmt::format("optimizer/vars/{}", i)); };
    restore_keras_optimizer(*model, trained(weights), get, path);
  });
  return *model;
}

// Names of a legacy file: weights of a layer in order, under <layer>/<name>.
void assign_legacy(const std::vector<LegacyLayer>& layers, const Hdf5File& file, const std::string& path) {
  const std::string root = file.has("model_weights") ? "model_weights" : "";
  std::vector<std::string> missing;
  for (const LegacyLayer& layer : layers) {
    const std::string group = root.empty() ? layer.name : root + "/" + layer.name;
    std::vector<std::string> names;
    if (file.has_text(group, "weight_names")) names = file.texts(group, "weight_names");
    // Long lists are in several attributes: weight_names0, weight_names1, ...
    for (int i = 0; file.has_text(group, fmt::format("weight_names{}", i)); ++i)
      for (const std::string& name : file.texts(group, fmt::format("weight_names{}", i))) names.push_back(name);
    if (names.size() != layer.weights.size()) {
      missing.push_back(
          fmt::format("{} of layer \"{}\" instead of {}", names.size(), layer.name, layer.weights.size()));
      continue;
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string name = group + "/" + names[i];
      layer.weights[i].assign(value_for(file, name, layer.weights[i], path));
    }
  }
  refuse_missing(missing, path);
}

// "optimizer_weights" lists them in the order of the optimizer's variables; Keras 2 does not keep the learning rate.
void restore_legacy_optimizer(const Model& model, const std::vector<Variable>& parameters, const Hdf5File& file,
                              const std::string& path) {
  if (!file.has_text("optimizer_weights", "weight_names")) return;
  const std::vector<std::string>& names = file.texts("optimizer_weights", "weight_names");
  bool has_rate = false;
  for (const std::string& name : names) has_rate = has_rate || name.find("learning_rate") != std::string::npos;
  restore_keras_optimizer(
      model, parameters,
      [&](std::size_t i) {
        if (i == 1) return Tensor();
        const std::size_t position = has_rate || i == 0 ? i : i - 1;
        return position < names.size() ? optimizer_variable(file, "optimizer_weights/" + names[position]) : Tensor();
      },
      path);
}

Model load_legacy(const std::string& path, const LoadKerasOptions& options) {
  const Hdf5File file(path);
  if (!file.has_text("", "model_config"))
    throw Unsupported(fmt::format(
        "{}: has weights but no model_config; load the model from elsewhere, or save the whole model in Keras", path));
  std::optional<Model> model;
  with_json_text(file.text("", "model_config"), path + ": model_config", [&](const Json& document) {
    model = described(document, path);
    if (options.weights) {
      const TidyScope scope;
      assign_legacy(legacy_weights(model->network(), document["config"], path), file, path);
    }
    if (!options.compile || !file.has_text("", "training_config")) return;
    with_json_text(file.text("", "training_config"), path + ": training_config", [&](const Json& training) {
      if (training.is_object()) read_keras_training(*model, training, path + ": training_config");
    });
    const TidyScope scope;
    if (options.weights && model->is_compiled())
      restore_legacy_optimizer(*model, trained(stored_weights(model->network(), document["config"], path)), file, path);
  });
  return *model;
}

}  // namespace

std::string keras_file_config(const std::string& path) {
  if (kind_of(path) == FileKind::kArchive) return Archive(path).text("config.json", kMaxConfigBytes);
  return Hdf5File(path).text("", "model_config");
}

bool is_keras_file(const std::string& path) { return kind_of(path) != FileKind::kOther; }

Model load_keras(const std::string& path, const LoadKerasOptions& options) {
  if (std::filesystem::is_directory(path)) throw InvalidArgument(fmt::format("{}: is a folder; give a file", path));
  if (!std::filesystem::exists(path)) throw NotFound(fmt::format("{}: there is no such file{}", path, url_hint(path)));
  const FileKind kind = kind_of(path);
  if (kind == FileKind::kOther)
    throw Corruption(fmt::format("{}: is neither an archive of Keras 3 nor an HDF5 file (offset 0)", path));
  return kind == FileKind::kArchive ? load_archive(path, options) : load_legacy(path, options);
}

Model load_model(const std::string& path, const LoadKerasOptions& options) {
  return is_keras_file(path) ? load_keras(path, options) : load_layers_model(path, {.weights = options.weights});
}

void save_keras(const Model& model, const std::string& path, const SaveKerasOptions& options) {
  Network& network = model.network();
  if (!network.is_connected())
    throw FailedPrecondition(
        fmt::format("save_keras: model \"{}\" has no weights yet; give its first layer an input_shape", model.name()));
  const TidyScope scope;
  const bool with_training = options.include_optimizer && model.is_compiled();
  nlohmann::ordered_json document = keras_config(network);
  if (with_training) document["compile_config"] = write_keras_training(model);
  const std::string text = strict_json_text(document);
  const Json described = parse_json(text);
  const std::vector<StoredWeight> weights = stored_weights(network, described["config"], "save_keras");
  Hdf5Writer writer("save_keras");
  std::set<std::uint64_t> written;
  for (const StoredWeight& each : weights) {
    if (!written.insert(each.variable.id()).second) continue;
    writer.add(each.path, each.variable.value());
    writer.set_text(each.group, "name", each.layer.substr(0, 1000));
  }
  if (with_training)
    write_keras_optimizer(model, trained(weights), [&](std::size_t number, const Tensor& value) {
      writer.add(fmt::format("optimizer/vars/{}", number), value);
    });
  const std::string metadata = R"({"keras_version": "3.0.0", "date_saved": "1980-01-01@00:00:00"})";
  save_archive(path, {{"metadata.json", metadata}, {"config.json", text}}, kWeights, writer);
}

}  // namespace plimsoll
