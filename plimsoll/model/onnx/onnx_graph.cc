#include "plimsoll/model/onnx/onnx_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/model/onnx/onnx_analysis.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {

OnnxGraph::OnnxGraph(std::shared_ptr<const OnnxFile> file)
    : file_(std::move(file)), model_(parse_onnx(file_->bytes(), file_->name())) {}

std::shared_ptr<const OnnxGraph> OnnxGraph::read(std::shared_ptr<const OnnxFile> file) {
  std::shared_ptr<OnnxGraph> graph(new OnnxGraph(std::move(file)));
  OnnxAnalysis(*graph).run();
  return graph;
}

bool OnnxGraph::is_known(const onnx::GraphProto& graph, const std::string& name) const {
  return facts_.at(&graph).known.count(name) > 0;
}

const onnx::FunctionProto* OnnxGraph::function(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(node.domain + ":" + node.op_type);
  return found == functions_.end() ? nullptr : found->second;
}

std::vector<OnnxValue> OnnxGraph::run(const std::vector<OnnxValue>& inputs, const std::vector<OnnxValue>& weights,
                                      bool training) const {
  OnnxFrame frame(*this, facts_.at(&model_.graph), model_.opsets, nullptr);
  frame.training_ = training;
  for (std::size_t i = 0; i < inputs.size(); ++i) frame.set(inputs_[i].name, inputs[i]);
  for (std::size_t i = 0; i < weights.size(); ++i) frame.set(weights_[i].name, weights[i]);
  frame.run(model_.graph.nodes);
  std::vector<OnnxValue> outputs;
  for (const onnx::ValueInfo& output : model_.graph.outputs) {
    const OnnxValue* value = frame.find(output.name);
    if (!value) throw Corruption(fmt::format("\"{}\": no node gives the output \"{}\"", file_->name(), output.name));
    outputs.push_back(*value);
  }
  return outputs;
}

const OnnxValue* OnnxFrame::find(const std::string& name) const {
  for (const OnnxFrame* frame = this; frame; frame = frame->outer_) {
    const auto found = frame->values_.find(name);
    if (found != frame->values_.end()) return &found->second;
  }
  return nullptr;
}

void OnnxFrame::run(const std::vector<onnx::NodeProto>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    run(nodes[i]);
    for (const std::string& name : facts_.ended[i]) values_.erase(name);
  }
}

// Whether its result is computed now, whoever traces: it decides shapes, and all that it reads is known.
bool OnnxFrame::is_folded(const onnx::NodeProto& node, const OnnxOperator& row) const {
  if (row.facts & kGivesShape) return true;
  if (std::none_of(node.outputs.begin(), node.outputs.end(),
                   [&](const std::string& name) { return facts_.known.count(name) > 0; }))
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
    const OnnxValue* value = name.empty() ? nullptr : find(name);
    return !value || value->is_constant();
  });
}

void OnnxFrame::run(const onnx::NodeProto& node) {
  if (const onnx::FunctionProto* function = graph_.function(node)) return call(node, *function);
  if (node.op_type == "Constant" && node.domain.empty() && !node.outputs.empty() && values_.count(node.outputs[0]) > 0)
    return;  // One of the weights.
  const auto version = opsets_.find(node.domain);
  OnnxNode seen(node, version == opsets_.end() ? 1 : version->second, *this);
  const OnnxOperator& row = *find_onnx_operator(node.domain, node.op_type, seen.version());
  const NameScope scope(node.op_type.c_str());
  const bool folded = is_folded(node, row);
  try {
    if (folded) {
      const TraceWith nobody(nullptr);
      row.handler(seen);
    } else {
      row.handler(seen);
    }
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("onnx: {}: {}", seen.describe(), error.what()));
  }
  if (!folded) return;
  for (const std::string& name : node.outputs)
    if (const auto found = values_.find(name); found != values_.end()) found->second.set_constant();
}

void OnnxFrame::call(const onnx::NodeProto& node, const onnx::FunctionProto& function) {
  OnnxFrame inner(graph_, graph_.facts_.at(&function), function.opsets, nullptr);
  inner.training_ = training_;
  inner.calls_ = calls_ + 1;
  if (inner.calls_ > kMostCalls)
    throw Unsupported(fmt::format("\"{}\": functions that call each other more than {} deep are unsupported",
                                  graph_.file_->name(), kMostCalls));
  for (std::size_t i = 0; i < std::min(node.inputs.size(), function.inputs.size()); ++i)
    if (const OnnxValue* value = node.inputs[i].empty() ? nullptr : find(node.inputs[i]))
      inner.set(function.inputs[i], *value);
  for (const onnx::AttributeProto& attribute : function.defaults) inner.attributes_[attribute.name] = &attribute;
  for (const onnx::AttributeProto& attribute : node.attributes) {
    const onnx::AttributeProto* given = &attribute;
    if (!attribute.reference.empty()) {
      const auto found = attributes_.find(attribute.reference);
      if (found == attributes_.end()) continue;
      given = found->second;
    }
    inner.attributes_[attribute.name] = given;
  }
  inner.run(function.nodes);
  for (std::size_t i = 0; i < std::min(node.outputs.size(), function.outputs.size()); ++i)
    if (const OnnxValue* value = inner.find(function.outputs[i])) values_[node.outputs[i]] = *value;
}

std::vector<OnnxValue> OnnxFrame::run_inside(const onnx::GraphProto& graph, std::vector<OnnxValue> inputs) {
  OnnxFrame inner(graph_, graph_.facts_.at(&graph), opsets_, this);
  for (const onnx::TensorProto& tensor : graph.initializers) {
    OnnxValue value(graph_.tensors_.at(&tensor));
    value.set_constant();
    inner.set(tensor.name, std::move(value));
  }
  for (std::size_t i = 0; i < std::min(inputs.size(), graph.inputs.size()); ++i)
    inner.set(graph.inputs[i].name, std::move(inputs[i]));
  inner.run(graph.nodes);
  std::vector<OnnxValue> outputs;
  for (const onnx::ValueInfo& output : graph.outputs) {
    const OnnxValue* value = inner.find(output.name);
    if (!value) throw Corruption(fmt::format("\"{}\": no node gives \"{}\"", graph_.file_->name(), output.name));
    outputs.push_back(*value);
  }
  return outputs;
}

}  // namespace plimsoll::internal
