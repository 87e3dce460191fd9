#include "plimsoll/graph/file_writer.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/graph_state.h"

namespace plimsoll::summary {
namespace {

// TensorFlow's names, so that TensorBoard recognizes them.
const char* op_name(const Node& node) {
  switch (node.kind) {
    case NodeKind::kOp:
    case NodeKind::kUpdate:
      return node.op->name();
    case NodeKind::kPlaceholder:
      return "Placeholder";
    case NodeKind::kConstant:
      return "Const";
    case NodeKind::kRead:
      return "VariableV2";
    case NodeKind::kAssign:
      return node.assign == AssignKind::kSet ? "Assign" : node.assign == AssignKind::kAdd ? "AssignAdd" : "AssignSub";
    case NodeKind::kGroup:
      return "NoOp";
    case NodeKind::kGradients:
      return "Gradients";
  }
  return "";
}

class Converter {
 public:
  explicit Converter(const GraphState& graph) : graph_(graph), own_node_(graph.variables().size(), kNoNode) {}

  GraphDefinition convert() {
    GraphDefinition definition;
    definition.nodes.reserve(graph_.nodes().size());
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) definition.nodes.push_back(convert(i));
    return definition;
  }

 private:
  GraphNode convert(std::uint32_t index) {
    const Node& node = graph_.node(index);
    GraphNode made;
    made.name = node.name;
    made.op = op_name(node);
    if (node.device) made.device = node.device->name();
    if (node.kind == NodeKind::kRead) add_variable(index, made);
    if (node.kind == NodeKind::kAssign) add_input(made, own_node_[node.variable]);
    for (const ValueId& input : node.inputs) made.inputs.push_back(value_name(input));
    for (const std::uint32_t before : node.controls) made.inputs.push_back("^" + graph_.node(before).name);
    if (node.kind == NodeKind::kGroup) return made;  // It has no output.
    for (const NodeOutput& output : node.outputs) {
      made.output_shapes.push_back(output.spec.shape);
      made.output_dtypes.push_back(output.spec.dtype);
    }
    return made;
  }

  // The first node that reads a variable represents it.
  void add_variable(std::uint32_t index, GraphNode& made) {
    const NodeVariable& variable = graph_.variables()[graph_.node(index).variable];
    std::uint32_t& own = own_node_[graph_.node(index).variable];
    if (own != kNoNode) {
      made.op = "Identity";
      return add_input(made, own);
    }
    own = index;
    made.attributes.emplace_back("trainable", variable.trainable ? "true" : "false");
    if (variable.initial.node != kNoNode) made.inputs.push_back(value_name(variable.initial));
  }

  void add_input(GraphNode& made, std::uint32_t node) const {
    if (node != kNoNode) made.inputs.push_back(graph_.node(node).name);
  }

  std::string value_name(ValueId value) const {
    const std::string& name = graph_.node(value.node).name;
    return value.output == 0 ? name : fmt::format("{}:{}", name, value.output);
  }

  const GraphState& graph_;
  std::vector<std::uint32_t> own_node_;  // Of each variable, once it was seen.
};

}  // namespace

GraphDefinition graph_definition(const Graph& graph) {
  const auto locked = graph.state()->lock();
  return Converter(*graph.state()).convert();
}

FileWriter::FileWriter(const std::filesystem::path& directory, const EventWriterOptions& options)
    : events_(directory, options) {}

FileWriter::FileWriter(const std::filesystem::path& directory, const Graph& graph, const EventWriterOptions& options)
    : events_(directory, options) {
  add_graph(graph);
}

void FileWriter::add_graph(const Graph& graph) { events_.add_graph(graph_definition(graph)); }

}  // namespace plimsoll::summary
