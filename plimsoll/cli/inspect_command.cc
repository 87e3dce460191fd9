#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/inspect.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/model/data/plural.h"

namespace plimsoll::internal {
namespace {

void print_json(const Inspection& found) {
  nlohmann::ordered_json document = {{"file", found.file}, {"kind", found.kind}};
  for (const auto& [key, value] : found.metadata) document["metadata"][key] = value;
  if (found.kind == "events") {
    document["records"] = found.records;
    document["graph_nodes"] = found.graph_nodes;
    document["truncated"] = found.truncated;
    document["tags"] = nlohmann::ordered_json::array();
    for (const InspectedTag& tag : found.tags) {
      nlohmann::ordered_json row = {{"tag", tag.tag},
                                    {"kind", tag.kind},
                                    {"count", tag.count},
                                    {"first_step", tag.first_step},
                                    {"last_step", tag.last_step}};
      if (tag.kind == "scalar") row["last_value"] = tag.last_value;
      document["tags"].push_back(std::move(row));
    }
  } else {
    document["bytes"] = found.bytes();
    document["problems"] = found.problems();
    document["tensors"] = nlohmann::ordered_json::array();
    for (const InspectedTensor& tensor : found.tensors)
      document["tensors"].push_back({{"name", tensor.name},
                                     {"dtype", tensor.dtype},
                                     {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
                                     {"bytes", tensor.bytes},
                                     {"checksum", tensor.checksum}});
  }
  print_document(document);
}

// Names come from the file and must not reach the terminal as control sequences.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

void print_events(const Inspection& found) {
  Table table({"tag", "count", "first step", "last step", "last value", ""});
  for (const InspectedTag& tag : found.tags)
    table.add({printable(tag.tag), std::to_string(tag.count), std::to_string(tag.first_step),
               std::to_string(tag.last_step), tag.kind == "scalar" ? fmt::format("{:.6g}", tag.last_value) : "",
               printable(tag.kind)});
  std::printf("%s\n%s: %s%s%s.\n", table.text().c_str(), found.file.c_str(), plural(found.records, "record").c_str(),
              found.graph_nodes ? (", a graph of " + plural(found.graph_nodes, "node")).c_str() : "",
              found.truncated ? ", the last one incomplete" : "");
}

void print_trace(const Inspection& found) {
  for (const auto& [key, value] : found.metadata)
    std::printf("%-16s%s\n", printable(key).c_str(), printable(value).c_str());
  std::printf("\n%s, a recorded trace. plimsoll doctor explains it, plimsoll report draws it.\n", found.file.c_str());
}

void print_tensors(const Inspection& found) {
  Table table({"tensor", "dtype", "shape", "bytes", ""});
  for (const InspectedTensor& tensor : found.tensors)
    table.add({printable(tensor.name), tensor.dtype, tensor.shape.to_string(), std::to_string(tensor.bytes),
               tensor.checksum == "none" ? "" : printable(tensor.checksum)});
  std::printf("%s\n", table.text().c_str());
  for (const auto& [key, value] : found.metadata)
    std::printf("%s: %s\n", printable(key).c_str(), printable(value).c_str());
  std::printf("%s, %s %s: %s, %s%s.\n", found.file.c_str(), found.kind.starts_with("np") ? "an" : "a",
              found.kind.c_str(), plural(found.tensors.size(), "tensor").c_str(),
              format_bytes_exactly(found.bytes()).c_str(),
              found.problems() ? fmt::format("; {} damaged or missing", found.problems()).c_str() : "");
}

}  // namespace

void add_inspect_command(CommandLine& line) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Command command(line, "inspect",
                  "Show what is in a checkpoint, event file, safetensors, npz, npy, model.json, .keras, .h5, .onnx or "
                  "trace, and verify it");
  command.option("FILE", options->path, "The file; for a checkpoint its prefix, one of its files or its folder")
      .required()
      .value("");
  command.flag("--json", options->json, "Print one JSON document");
  command.notes("Exit code 1 when something in it is damaged, missing or truncated.");
  command.run([options] {
    const Inspection found = inspect(options->path);
    if (options->json)
      print_json(found);
    else
      found.kind == "events" ? print_events(found) : found.kind == "trace" ? print_trace(found) : print_tensors(found);
    std::fflush(stdout);
    if (found.problems() > 0 || found.truncated) throw Exit{1};
  });
}

}  // namespace plimsoll::internal
