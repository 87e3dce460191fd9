// A graph as TensorBoard draws it, and the time and memory of a run. Plain data, filled by whatever has a graph.
//
//   GraphDefinition graph;
//   graph.nodes.push_back({.name = "dense/MatMul", .op = "MatMul", .inputs = {"x", "dense/kernel"},
//                          .device = "CPU:0", .output_shapes = {{-1, 10}}});
//   RunMetadata run{.devices = {{.name = "CPU:0", .nodes = {{.name = "dense/MatMul", .bytes = 4096}}}}};
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"

namespace plimsoll {

struct GraphNode {
  std::string name;                 // Scopes are separated by "/".
  std::string op;                   // "MatMul"
  std::vector<std::string> inputs;  // "node", "node:1", or "^node" for one that only runs before.
  std::string device;               // "CPU:0"; written as /device:CPU:0.
  std::vector<Shape> output_shapes;
  std::vector<DType> output_dtypes;                             // The first is the node's "dtype" attribute.
  std::vector<std::pair<std::string, std::string>> attributes;  // As text.
};

struct GraphDefinition {
  std::vector<GraphNode> nodes;
};

// One node, in one run.
struct NodeRun {
  std::string name;               // As in the graph.
  std::int64_t start_micros = 0;  // Since the Unix epoch.
  std::int64_t micros = 1;        // TensorBoard shows nodes with 0 as not run.
  std::uint64_t bytes = 0;        // Memory it allocated.
  std::uint64_t peak_bytes = 0;
  std::uint64_t live_bytes = 0;  // The part still held after it.
  std::vector<std::pair<DType, Shape>> outputs;
};

struct DeviceRun {
  std::string name;
  std::vector<NodeRun> nodes;
};

struct RunMetadata {
  std::vector<DeviceRun> devices;
};

}  // namespace plimsoll
