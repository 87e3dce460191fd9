#include "plimsoll/cli/inspect_run.h"

#include <fmt/format.h>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/observe/run_summary.h"

namespace plimsoll::internal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMostModelBytes = std::size_t{256} << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

[[noreturn]] void corrupt(const fs::path& path, const std::string& why) {
  throw Corruption(fmt::format("model \"{}\": {}", path.native(), why));
}

std::size_t bytes_of(const std::string& dtype) {
  if (dtype == "float32" || dtype == "int32") return 4;
  if (dtype == "float16" || dtype == "uint16") return 2;
  if (dtype == "uint8" || dtype == "bool") return 1;
  if (dtype == "complex64") return 8;
  return 0;  // "string": not known from the manifest.
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

InspectedTensor weight_of(const Json& entry, const fs::path& path) {
  if (!entry.is_object() || text_at(entry, "name").empty() || !entry.contains("shape") || !entry["shape"].is_array())
    corrupt(path, "an entry of its weights has no name or shape");
  InspectedTensor row{.name = text_at(entry, "name"), .dtype = text_at(entry, "dtype"), .shape = Shape::scalar()};
  row.checksum = "none";
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 1;
  for (const Json& size : entry["shape"]) {
    if (!size.is_number_integer() || size.get<std::int64_t>() < 0 || sizes.size() >= 32)
      corrupt(path, fmt::format("weight \"{}\" has an impossible shape", row.name));
    sizes.push_back(size.get<std::int64_t>());
    if (sizes.back() > 0 && elements > kMostElements / sizes.back())
      corrupt(path, fmt::format("weight \"{}\" has an impossible shape", row.name));
    elements *= sizes.back();
  }
  row.shape = Shape(sizes);
  std::string stored = row.dtype;
  if (const auto packed = entry.find("quantization"); packed != entry.end() && packed->is_object()) {
    stored = text_at(*packed, "dtype");
    row.dtype += fmt::format(" ({})", stored);
  }
  row.bytes = static_cast<std::uint64_t>(elements) * bytes_of(stored);
  return row;
}

// What is wrong with a group's files; "none" (no checksum) when nothing is wrong.
std::string verdict_of(const Json& group, std::uint64_t expected, bool is_known, const fs::path& path) {
  std::uint64_t there = 0;
  if (!group.contains("paths") || !group["paths"].is_array()) corrupt(path, "a group of weights has no paths");
  for (const Json& name : group["paths"]) {
    if (!name.is_string()) corrupt(path, "a path of weights is not text");
    std::error_code error;
    const auto size = fs::file_size(path.parent_path() / name.get<std::string>(), error);
    if (error) return fmt::format("\"{}\" is missing", name.get<std::string>());
    there += size;
  }
  return !is_known || there == expected ? "none"
                                        : fmt::format("its files have {} bytes, the manifest says {}", there, expected);
}

void read_topology(const Json& topology, Inspection& found) {
  const Json* model = &topology;
  if (const auto inner = topology.find("model_config"); inner != topology.end() && inner->is_object()) model = &*inner;
  found.metadata.emplace_back("class", text_at(*model, "class_name"));
  const auto config = model->find("config");
  if (config == model->end()) return;
  const Json* layers = config->is_array() ? &*config : nullptr;
  if (config->is_object()) {
    found.metadata.emplace_back("name", text_at(*config, "name"));
    if (const auto list = config->find("layers"); list != config->end() && list->is_array()) layers = &*list;
  }
  if (!layers) return;
  std::string kinds;
  for (const Json& layer : *layers)
    if (layer.is_object() && kinds.size() < 400) kinds += (kinds.empty() ? "" : ", ") + text_at(layer, "class_name");
  found.metadata.emplace_back("layers", fmt::format("{}: {}", layers->size(), kinds));
}

}  // namespace

Inspection inspect_trace(const fs::path& path) {
  const TraceHistory history = read_trace_history(path);
  const RunSummary run = summarize(history);
  Inspection found{.file = path.native(), .kind = "trace"};
  const auto add = [&](const char* key, const std::string& value) { found.metadata.emplace_back(key, value); };
  add("events", std::to_string(history.events));
  add("dropped events", std::to_string(history.dropped_events));
  add("duration", fmt::format("{:.3f} s", static_cast<double>(history.duration_ns) * 1e-9));
  add("process", std::to_string(history.process));
  add("steps", std::to_string(run.steps.size()));
  add("blocks", std::to_string(history.blocks.size()));
  add("plans run", std::to_string(history.plan_runs));
  add("peak", format_bytes_exactly(run.peak_bytes));
  add("live at the end", format_bytes_exactly(run.live_at_end));
  add("refusals", std::to_string(run.refusals));
  std::string devices, limits;
  for (const TraceArena& arena : history.arenas)
    devices += fmt::format("{}{}, limit {}", devices.empty() ? "" : "; ", arena.name, format_bytes(arena.limit));
  std::map<std::string, std::uint64_t> budgets;
  for (const TracedBudget& budget : history.budgets) budgets[budget.name] = budget.limit;
  for (const auto& [name, limit] : budgets)
    limits += fmt::format("{}{}, limit {}", limits.empty() ? "" : "; ", name, format_bytes(limit));
  add("devices", devices);
  if (!limits.empty()) add("budgets", limits);
  add("complete", history.complete ? "yes" : "no: the recording was not finished");
  found.truncated = !history.complete;
  return found;
}

Inspection inspect_layers_model(const fs::path& path) {
  const Json document = try_parse_json(read_file(path, kMostModelBytes));
  if (!document.is_object() || !document.contains("modelTopology") || !document["modelTopology"].is_object())
    corrupt(path, "it is not a model of TensorFlow.js: it has no modelTopology");
  Inspection found{.file = path.native(), .kind = "layers model"};
  for (const char* key : {"format", "generatedBy", "convertedBy"})
    if (!text_at(document, key).empty()) found.metadata.emplace_back(key, text_at(document, key));
  read_topology(document["modelTopology"], found);
  const auto manifest = document.find("weightsManifest");
  if (manifest == document.end()) return found;
  if (!manifest->is_array()) corrupt(path, "its weightsManifest is not a list");
  for (const Json& group : *manifest) {
    if (!group.is_object() || !group.contains("weights") || !group["weights"].is_array())
      corrupt(path, "a group of weights has no list of them");
    const std::size_t first = found.tensors.size();
    std::uint64_t bytes = 0;
    bool is_known = true;
    for (const Json& entry : group["weights"]) {
      found.tensors.push_back(weight_of(entry, path));
      bytes += found.tensors.back().bytes;
      is_known &= found.tensors.back().dtype.find("string") == std::string::npos;
    }
    const std::string verdict = verdict_of(group, bytes, is_known, path);
    for (std::size_t i = first; i < found.tensors.size(); ++i) found.tensors[i].checksum = verdict;
  }
  return found;
}

}  // namespace plimsoll::internal
