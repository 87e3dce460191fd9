#include "plimsoll/io/internal/event_messages.h"

#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/tensorflow_types.h"

namespace plimsoll::internal {
namespace {

std::string device_path(const std::string& device) {
  if (device.empty() || device[0] == '/') return device;
  return "/job:localhost/replica:0/task:0/device:" + device;
}

// {1: key, 2: value}, as maps are written.
void add_attribute(WireWriter& node, std::string_view key, const WireWriter& value) {
  WireWriter entry;
  entry.text(1, key);
  entry.message(2, value);
  node.message(5, entry);
}

// Unknown sizes are written as -1.
WireWriter shape_message(const Shape& shape) {
  WireWriter out;
  if (!shape.is_set()) out.integer(3, 1);
  for (const std::int64_t size : shape) {
    WireWriter dimension;
    dimension.integer(1, size);
    out.message(2, dimension);
  }
  return out;
}

WireWriter node_message(const GraphNode& node) {
  WireWriter out;
  out.text(1, node.name);
  out.text(2, node.op);
  for (const std::string& input : node.inputs) out.item(3, input);
  out.text(4, device_path(node.device));
  if (!node.output_shapes.empty()) {
    WireWriter list, value;
    for (const Shape& shape : node.output_shapes) list.message(7, shape_message(shape));
    value.message(1, list);
    add_attribute(out, "_output_shapes", value);
  }
  if (!node.output_dtypes.empty()) {
    WireWriter value;
    value.integer(6, tensorflow_dtype(node.output_dtypes[0]));
    add_attribute(out, "dtype", value);
  }
  for (const auto& [key, text] : node.attributes) {
    WireWriter value;
    value.item(2, text);
    add_attribute(out, key, value);
  }
  return out;
}

WireWriter node_run_message(const NodeRun& node) {
  WireWriter out, memory;
  out.text(1, node.name);
  out.integer(2, node.start_micros);
  out.integer(4, node.micros);
  out.integer(5, node.micros);
  memory.text(1, "plimsoll");
  memory.integer(2, static_cast<std::int64_t>(node.bytes));
  memory.integer(3, static_cast<std::int64_t>(node.peak_bytes));
  memory.integer(4, static_cast<std::int64_t>(node.live_bytes));
  out.message(6, memory);
  std::int64_t slot = 0;
  for (const auto& [dtype, shape] : node.outputs) {
    WireWriter output, description;
    description.integer(1, tensorflow_dtype(dtype));
    description.message(2, shape_message(shape));
    output.integer(1, slot++);
    output.message(3, description);
    out.message(7, output);
  }
  out.text(8, node.name);
  return out;
}

}  // namespace

std::string frame_record(std::string_view content) {
  std::string length;
  append_number(length, std::uint64_t{content.size()});
  std::string record = length;
  record.reserve(content.size() + 16);
  append_number(record, mask_crc32c(crc32c(length)));
  record += content;
  append_number(record, mask_crc32c(crc32c(content)));
  return record;
}

std::string event_message(double wall_time, std::int64_t step, std::uint32_t field, std::string_view content) {
  WireWriter out;
  out.real(1, wall_time);
  out.integer(2, step);
  out.item(field, content);
  return out.bytes();
}

std::string scalar_value(std::string_view tag, float value) {
  WireWriter out;
  out.text(1, tag);
  out.single_always(2, value);
  return out.bytes();
}

std::string text_value(std::string_view tag, std::string_view text) {
  WireWriter out, tensor, metadata, plugin;
  tensor.integer(1, kTensorflowString);
  tensor.message(2, WireWriter());
  tensor.item(8, text);
  plugin.text(1, "text");
  metadata.message(1, plugin);
  metadata.integer(4, 2);
  out.text(1, tag);
  out.message(8, tensor);
  out.message(9, metadata);
  return out.bytes();
}

std::string image_value(std::string_view tag, std::int64_t height, std::int64_t width, std::int64_t channels,
                        std::string_view encoded) {
  WireWriter out, image;
  image.integer(1, height);
  image.integer(2, width);
  image.integer(3, channels);
  image.text(4, encoded);
  out.text(1, tag);
  out.message(4, image);
  return out.bytes();
}

std::string graph_message(const GraphDefinition& graph) {
  WireWriter out, versions;
  for (const GraphNode& node : graph.nodes) out.message(1, node_message(node));
  versions.integer(1, 27);  // The producer number of TensorFlow 1; viewers require one.
  out.message(4, versions);
  return out.bytes();
}

std::string run_metadata_message(const RunMetadata& metadata) {
  WireWriter out, statistics;
  for (const DeviceRun& device : metadata.devices) {
    WireWriter one;
    one.text(1, device_path(device.name));
    for (const NodeRun& node : device.nodes) one.message(2, node_run_message(node));
    statistics.message(1, one);
  }
  out.message(1, statistics);
  return out.bytes();
}

}  // namespace plimsoll::internal
