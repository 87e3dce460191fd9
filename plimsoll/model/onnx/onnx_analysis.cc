#include "plimsoll/model/onnx/onnx_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

bool is_set(const onnx::NodeProto& node, std::string_view attribute) {
  for (const onnx::AttributeProto& each : node.attributes)
    if (each.name == attribute) return each.integer != 0;
  return false;
}

using Names = std::unordered_set<std::string>;

// Names that a graph reads and does not define.
void add_free_names(const onnx::GraphProto& graph, Names& out) {
  Names own;
  for (const onnx::ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const onnx::TensorProto& tensor : graph.initializers) own.insert(tensor.name);
  for (const onnx::NodeProto& node : graph.nodes) {
    Names read(node.inputs.begin(), node.inputs.end());
    for (const onnx::AttributeProto& attribute : node.attributes)
      if (attribute.graph) add_free_names(*attribute.graph, read);
    for (const std::string& name : read)
      if (own.count(name) == 0) out.insert(name);
    own.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const onnx::ValueInfo& output : graph.outputs)
    if (own.count(output.name) == 0) out.insert(output.name);
}

std::vector<std::string> output_names(const onnx::GraphProto& graph) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& output : graph.outputs) names.push_back(output.name);
  return names;
}

std::int64_t version_in(const onnx::Opsets& opsets, const std::string& domain) {
  const auto found = opsets.find(domain);
  return found == opsets.end() ? 1 : found->second;
}

constexpr int kMostCalls = 64;  // Of functions by functions.

}  // namespace

void OnnxAnalysis::run() {
  onnx::ModelProto& model = graph_.model_;
  for (const onnx::FunctionProto& function : model.functions)
    graph_.functions_[function.domain + ":" + function.name] = &function;
  check_versions(model.opsets);
  check_values(model.graph, true);
  check(model.graph.nodes, model.opsets, model.graph.name);
  OnnxGraph::Names seeds;
  find_known(&model.graph, model.graph.nodes, model.opsets, std::move(seeds));
  find_ends(graph_.facts_[&model.graph], model.graph.nodes, output_names(model.graph));
  find_weights();
}

void OnnxAnalysis::check_versions(const onnx::Opsets& opsets) const {
  const std::int64_t version = version_in(opsets, "");
  if (version > onnx::kNewestOpset)
    throw Unsupported(fmt::format("\"{}\": operators of version {} are unsupported; export it with version {} or older",
                                  graph_.file_->name(), version, onnx::kNewestOpset));
}

void OnnxAnalysis::check_values(const onnx::GraphProto& graph, bool ends) {
  std::unordered_set<std::string> initialized;
  for (const onnx::TensorProto& tensor : graph.initializers) {
    initialized.insert(tensor.name);
    if (!ends) check_tensor(tensor);
  }
  for (const onnx::SparseTensorProto& sparse : graph.sparse_initializers) initialized.insert(sparse.values.name);
  if (!ends) return;
  for (const onnx::ValueInfo& input : graph.inputs)
    if (initialized.count(input.name) == 0) graph_.inputs_.push_back(input);
  const auto refuse = [&](const onnx::ValueInfo& value, const char* which) {
    if (!value.is_tensor)
      throw Unsupported(
          fmt::format("\"{}\": the {} \"{}\" is not a tensor; sequences and optional values at the ends of a "
                      "graph are unsupported",
                      graph_.file_->name(), which, value.name));
    if (!onnx::dtype_of(value.type))
      throw Unsupported(fmt::format("\"{}\": the {} \"{}\" has the unsupported element type {}", graph_.file_->name(),
                                    which, value.name, onnx::element_type_name(value.type)));
  };
  for (const onnx::ValueInfo& input : graph_.inputs_) refuse(input, "input");
  for (const onnx::ValueInfo& output : graph.outputs) {
    onnx::ValueInfo known = output;
    if (known.is_tensor && known.type == onnx::kUndefined) known.type = onnx::kFloat;  // Left out by some writers.
    refuse(known, "output");
  }
}

// Tensors of attributes and subgraphs are made at once.
void OnnxAnalysis::check_tensor(const onnx::TensorProto& tensor) {
  graph_.tensors_.emplace(&tensor, graph_.file_->tensor(tensor));
}

const OnnxOperator* OnnxAnalysis::row_of(const onnx::NodeProto& node, const onnx::Opsets& opsets) const {
  return find_onnx_operator(node.domain, node.op_type, version_in(opsets, node.domain));
}

void OnnxAnalysis::check(const std::vector<onnx::NodeProto>& nodes, const onnx::Opsets& opsets,
                         const std::string& where) {
  if (++depth_ > kMostCalls)
    throw Unsupported(fmt::format("\"{}\": functions that call each other more than {} deep are unsupported",
                                  graph_.file_->name(), kMostCalls));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const onnx::NodeProto& node = nodes[i];
    const onnx::FunctionProto* function = graph_.function(node);
    if (function) {
      check_versions(function->opsets);
      if (checked_.insert(function).second) check(function->nodes, function->opsets, function->name);
    } else if (!row_of(node, opsets)) {
      throw Unsupported(
          fmt::format("\"{}\": unsupported operator {}{} (version {}), node \"{}\", number {} of graph \"{}\"",
                      graph_.file_->name(), node.domain.empty() ? "" : node.domain + ".", node.op_type,
                      version_in(opsets, node.domain), node.name, i, where));
    }
    for (const onnx::AttributeProto& attribute : node.attributes) {
      if (attribute.graph) {
        check_values(*attribute.graph, false);
        check(attribute.graph->nodes, opsets, attribute.graph->name);
      }
      const bool is_weight =
          where == graph_.model_.graph.name && &nodes == &graph_.model_.graph.nodes && node.op_type == "Constant";
      if (attribute.tensor && !is_weight) check_tensor(*attribute.tensor);
    }
  }
  --depth_;
}

// From the last node to the first: what a known value is computed from must be known too.
const OnnxGraph::Facts& OnnxAnalysis::find_known(const void* key, const std::vector<onnx::NodeProto>& nodes,
                                                 const onnx::Opsets& opsets, OnnxGraph::Names seeds) {
  Names& known = graph_.facts_[key].known;  // References to a map's elements stay valid.
  known.insert(seeds.begin(), seeds.end());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const onnx::NodeProto& node = nodes[i];
    const bool wanted = std::any_of(node.outputs.begin(), node.outputs.end(),
                                    [&](const std::string& name) { return !name.empty() && known.count(name) > 0; });
    if (const onnx::FunctionProto* function = graph_.function(node)) {
      Names inner;
      if (wanted) inner.insert(function->outputs.begin(), function->outputs.end());
      if (followed_.emplace(function, wanted).second) {
        find_known(function, function->nodes, function->opsets, std::move(inner));
        find_ends(graph_.facts_[function], function->nodes, function->outputs);
      }
      const OnnxGraph::Facts& theirs = graph_.facts_[function];
      for (std::size_t input = 0; input < std::min(node.inputs.size(), function->inputs.size()); ++input)
        if (theirs.known.count(function->inputs[input]) > 0) known.insert(node.inputs[input]);
      continue;
    }
    const OnnxOperator& row = *row_of(node, opsets);
    const bool all = wanted && !(row.facts & kGivesShape);
    for (std::size_t input = 0; input < node.inputs.size(); ++input)
      if (all || (row.known >> std::min<std::size_t>(input, 31) & 1)) known.insert(node.inputs[input]);
    for (const onnx::AttributeProto& attribute : node.attributes) {
      if (!attribute.graph) continue;
      Names inner;
      if (wanted)
        for (const onnx::ValueInfo& output : attribute.graph->outputs) inner.insert(output.name);
      if (node.op_type == "Loop" && !attribute.graph->outputs.empty())  // Whether it goes on.
        inner.insert(attribute.graph->outputs[0].name);
      const Names theirs = find_known(attribute.graph.get(), attribute.graph->nodes, opsets, std::move(inner)).known;
      Names outside;
      add_free_names(*attribute.graph, outside);
      for (const std::string& name : outside)
        if (theirs.count(name) > 0) known.insert(name);
      find_ends(graph_.facts_[attribute.graph.get()], attribute.graph->nodes, output_names(*attribute.graph));
    }
  }
  known.erase("");
  return graph_.facts_[key];
}

void OnnxAnalysis::find_ends(OnnxGraph::Facts& facts, const std::vector<onnx::NodeProto>& nodes,
                             const std::vector<std::string>& outputs) const {
  facts.ended.assign(nodes.size(), {});
  Names seen(outputs.begin(), outputs.end());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    Names read(nodes[i].inputs.begin(), nodes[i].inputs.end());
    for (const onnx::AttributeProto& attribute : nodes[i].attributes)
      if (attribute.graph) add_free_names(*attribute.graph, read);
    for (const std::string& name : nodes[i].outputs)  // What nobody reads ends at once.
      if (seen.count(name) == 0) facts.ended[i].push_back(name);
    for (const std::string& name : read)
      if (seen.insert(name).second) facts.ended[i].push_back(name);
  }
}

void OnnxAnalysis::find_weights() {
  onnx::GraphProto& graph = graph_.model_.graph;
  // How each name is read: as the filter of convolutions or the transposed operand of products alone, or as a
  // statistic.
  struct Uses {
    std::size_t all = 0, as_filter = 0, transposed = 0;
  };
  std::map<std::string, Uses> uses;
  Names statistics, outputs, inside;
  for (const onnx::NodeProto& node : graph.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Uses& use = uses[node.inputs[i]];
      ++use.all;
      const bool convolves = (i == 1 && (node.op_type == "Conv" || node.op_type == "ConvInteger")) ||
                             (i == 3 && node.op_type == "QLinearConv");
      if (convolves && node.domain.empty()) ++use.as_filter;
      if (i == 1 && node.op_type == "Gemm" && node.domain.empty() && is_set(node, "transB")) ++use.transposed;
      if (i >= 3 && node.op_type == "BatchNormalization") statistics.insert(node.inputs[i]);
    }
    for (const onnx::AttributeProto& attribute : node.attributes)
      if (attribute.graph) add_free_names(*attribute.graph, inside);
  }
  for (const onnx::ValueInfo& output : graph.outputs) outputs.insert(output.name);
  const auto add = [&](const std::string& name, const onnx::TensorProto& proto, const onnx::SparseTensorProto* sparse) {
    OnnxWeight weight{.name = name, .proto = sparse ? nullptr : &proto, .sparse = sparse};
    weight.is_constant = graph_.is_known(graph, name);
    const std::optional<DType> dtype = onnx::dtype_of(proto.type);
    const Uses& use = uses[name];
    const std::size_t rank = sparse ? sparse->dims.size() : proto.dims.size();
    // Scalars are numbers of formulas, an epsilon or a root of two, which training must not change: constants.
    weight.is_constant = weight.is_constant || (rank == 0 && !sparse);
    weight.trainable = !weight.is_constant && rank > 0 && (dtype == f32 || dtype == f64) && statistics.count(name) == 0;
    const bool is_seen = outputs.count(name) > 0 || inside.count(name) > 0;
    if (!weight.is_constant && use.all > 0 && use.all == use.as_filter && !is_seen && (rank == 3 || rank == 4))
      weight.order = filter_last(rank);
    if (!weight.is_constant && use.all > 0 && use.all == use.transposed && !is_seen && rank == 2) weight.order = {1, 0};
    graph_.weights_.push_back(std::move(weight));
  };
  for (const onnx::TensorProto& tensor : graph.initializers) add(tensor.name, tensor, nullptr);
  for (const onnx::SparseTensorProto& sparse : graph.sparse_initializers)
    add(sparse.values.name, sparse.values, &sparse);
  for (const onnx::NodeProto& node : graph.nodes) {
    if (node.op_type != "Constant" || !node.domain.empty() || node.outputs.empty()) continue;
    for (const onnx::AttributeProto& attribute : node.attributes)
      if (attribute.name == "value" && attribute.tensor) add(node.outputs[0], *attribute.tensor, nullptr);
  }
}

}  // namespace plimsoll::internal
