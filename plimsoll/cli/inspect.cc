#include "plimsoll/cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/cli/inspect_run.h"
#include "plimsoll/io/archive.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/event_reader.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/io/safetensors.h"
#include "plimsoll/model/onnx/onnx_inspect.h"

namespace plimsoll::internal {
namespace {

namespace fs = std::filesystem;

// "ok", or what went wrong.
template <class F>
std::string verdict(F&& verify) {
  try {
    verify();
    return "ok";
  } catch (const Error& error) {
    return error.what();
  }
}

// The prefix of the checkpoint that `path` is or belongs to.
std::optional<fs::path> checkpoint_prefix(const fs::path& path) {
  if (fs::is_directory(path)) {
    const std::string latest = latest_checkpoint(path);
    if (latest.empty())
      throw NotFound(
          fmt::format("inspect: the folder \"{}\" has no checkpoint named by its file \"checkpoint\"; give "
                      "a file",
                      path.native()));
    return latest;
  }
  if (fs::exists(bundle_index_path(path))) return path;
  const std::string& text = path.native();
  if (text.ends_with(".index")) return text.substr(0, text.size() - 6);
  const std::size_t data = text.rfind(".data-");
  if (data != std::string::npos && text.find("-of-", data) != std::string::npos) return text.substr(0, data);
  return {};
}

Inspection inspect_checkpoint(const fs::path& prefix) {
  const BundleReader reader(prefix);
  Inspection result{.file = prefix.native(), .kind = "checkpoint"};
  for (const BundleEntry& entry : reader.entries()) {
    if (entry.is_slice()) continue;  // Part of a tensor listed elsewhere.
    const std::uint64_t bytes =
        entry.is_partitioned() && entry.dtype ? entry.shape.size() * size_of(*entry.dtype) : entry.size;
    result.tensors.push_back(
        {entry.key, entry.dtype_name, entry.shape, bytes, verdict([&] { reader.verify(entry.key); })});
  }
  result.metadata.emplace_back("shards", std::to_string(reader.num_shards()));
  return result;
}

Inspection inspect_safetensors(const fs::path& path) {
  const SafetensorsFile file(path);
  Inspection result{.file = path.native(), .kind = "safetensors"};
  for (const SafetensorsEntry& entry : file.entries())
    result.tensors.push_back({entry.name, entry.dtype_name, entry.shape, entry.size, "none"});
  result.metadata.assign(file.metadata().begin(), file.metadata().end());
  return result;
}

Inspection inspect_npz(const fs::path& path) {
  const NpzFile file(path);
  Inspection result{.file = path.native(), .kind = "npz"};
  for (const std::string& name : file.names()) {
    InspectedTensor row{.name = name, .dtype = "?", .shape = Shape::scalar()};
    row.checksum = verdict([&] { file.verify(name); });
    const std::string header = verdict([&] {
      const NpyEntry entry = file.entry(name);
      row.dtype = entry.dtype ? to_string(*entry.dtype) : entry.descr;
      row.shape = entry.shape;
      row.bytes = entry.size;
    });
    if (row.checksum == "ok") row.checksum = header;
    result.tensors.push_back(row);
  }
  return result;
}

Inspection inspect_onnx(const fs::path& path) {
  const OnnxDescription found = describe_onnx(path);
  Inspection result{.file = path.native(), .kind = "ONNX model"};
  for (const OnnxDescription::Tensor& tensor : found.tensors)
    result.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes, "none"});
  result.metadata = found.facts;
  return result;
}

void add_datasets(const Hdf5File& file, Inspection& result) {
  for (const Hdf5Entry& entry : file.entries())
    result.tensors.push_back({entry.name, entry.dtype ? to_string(*entry.dtype) : entry.type_name, entry.shape,
                              entry.size, verdict([&] { file.read(entry.name); })});
  for (InspectedTensor& tensor : result.tensors)
    if (tensor.checksum == "ok") tensor.checksum = "none";  // It can be read; there is nothing to compare with.
}

// Shows short texts whole, long ones by their size.
std::string shown(const std::string& text) {
  return text.size() <= 80 ? text : fmt::format("{} bytes of text", text.size());
}

Inspection inspect_hdf5(const fs::path& path) {
  const Hdf5File file(path);
  Inspection result{.file = path.native(), .kind = "hdf5"};
  add_datasets(file, result);
  for (const std::string& name : file.text_names(""))
    if (const auto& texts = file.texts("", name); texts.size() == 1)
      result.metadata.emplace_back(name, shown(texts[0]));
  return result;
}

Inspection inspect_keras(const fs::path& path) {
  const Archive archive(path);
  Inspection result{.file = path.native(), .kind = "keras"};
  for (const char* name : {"metadata.json", "config.json"})
    if (archive.has(name)) result.metadata.emplace_back(name, shown(archive.text(name, 256_MiB)));
  if (archive.has("model.weights.h5")) add_datasets(archive.hdf5("model.weights.h5"), result);
  return result;
}

Inspection inspect_npy(const fs::path& path) {
  const NpyEntry entry = npy_entry(path);
  Inspection result{.file = path.native(), .kind = "npy"};
  result.tensors.push_back(
      {entry.name, entry.dtype ? to_string(*entry.dtype) : entry.descr, entry.shape, entry.size, "none"});
  return result;
}

Inspection inspect_events(const fs::path& path) {
  EventReader reader(path);
  Inspection result{.file = path.native(), .kind = "events"};
  std::map<std::pair<std::string, std::string>, InspectedTag> tags;
  while (const auto event = reader.next()) {
    ++result.records;
    if (!event->graph.empty()) result.graph_nodes += summarize_graph(event->graph).num_nodes;
    for (const EventValue& value : event->values) {
      InspectedTag& tag = tags[{value.tag, value.kind}];
      if (tag.count++ == 0) tag = {value.tag, value.kind, 1, event->step};
      tag.last_step = event->step;
      tag.last_value = value.scalar;
    }
  }
  result.truncated = reader.is_truncated();
  for (const auto& [key, tag] : tags) result.tags.push_back(tag);
  return result;
}

}  // namespace

std::uint64_t Inspection::bytes() const {
  return std::accumulate(tensors.begin(), tensors.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const InspectedTensor& tensor) { return sum + tensor.bytes; });
}

std::uint64_t Inspection::problems() const {
  return static_cast<std::uint64_t>(std::count_if(tensors.begin(), tensors.end(), [](const InspectedTensor& tensor) {
    return tensor.checksum != "ok" && tensor.checksum != "none";
  }));
}

Inspection inspect(const fs::path& path) {
  if (const auto prefix = checkpoint_prefix(path)) return inspect_checkpoint(*prefix);
  if (!fs::exists(path))
    throw NotFound(fmt::format("inspect: there is no file \"{}\"{}", path.native(), url_hint(path.native())));
  char first[8] = "";
  std::ifstream(path, std::ios::binary).read(first, sizeof(first));
  const std::string_view head(first, sizeof(first));
  if (path.filename().native().find("tfevents") != std::string::npos) return inspect_events(path);
  if (head == std::string_view("PLMTRACE", 8) || path.extension() == ".trace") return inspect_trace(path);
  if (path.extension() == ".json") return inspect_layers_model(path);
  if (path.extension() == ".onnx") return inspect_onnx(path);
  if (path.extension() == ".safetensors") return inspect_safetensors(path);
  if (head.starts_with("\x89HDF\r\n")) return inspect_hdf5(path);
  if (head.starts_with("PK\3\4") && Archive(path).has("config.json")) return inspect_keras(path);
  if (head.starts_with("PK\3\4") || head.starts_with("PK\5\6") || path.extension() == ".npz") return inspect_npz(path);
  if (head.starts_with("\x93NUMPY")) return inspect_npy(path);
  try {
    BundleReader version_1(path);  // Throws an explanation if it is one.
  } catch (const NotFound&) {
  }
  throw InvalidArgument(fmt::format(
      "inspect: \"{}\" is neither a checkpoint, an event file, safetensors, an ONNX model, a Keras file, npz nor npy",
      path.native()));
}

}  // namespace plimsoll::internal
