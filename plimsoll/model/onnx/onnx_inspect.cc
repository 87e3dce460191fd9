#include "plimsoll/model/onnx/onnx_inspect.h"

#include <fmt/format.h>

#include <map>

#include "plimsoll/model/onnx/onnx_file.h"
#include "plimsoll/model/onnx/onnx_operators.h"

namespace plimsoll::internal {
namespace {

std::string text_of(const onnx::ValueInfo& info) {
  if (!info.is_tensor) return fmt::format("{} (no tensor)", info.name);
  std::string sizes;
  for (const onnx::Dim& dim : info.dims)
    sizes += (sizes.empty() ? "" : ", ") + (dim.size != kUnknownSize ? std::to_string(dim.size)
                                            : dim.name.empty()       ? std::string("?")
                                                                     : dim.name);
  return fmt::format("{} {} {}", info.name, onnx::element_type_name(info.type),
                     info.has_shape ? "[" + sizes + "]" : std::string("of any shape"));
}

void count(const std::vector<onnx::NodeProto>& nodes, const onnx::ModelProto& model,
           std::map<std::string, std::size_t>& all, std::map<std::string, std::size_t>& unsupported) {
  for (const onnx::NodeProto& node : nodes) {
    const std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
    ++all[name];
    const auto version = model.opsets.find(node.domain);
    bool known = find_onnx_operator(node.domain, node.op_type, version == model.opsets.end() ? 1 : version->second);
    for (const onnx::FunctionProto& function : model.functions)
      known = known || (function.name == node.op_type && function.domain == node.domain);
    if (!known) ++unsupported[name];
    for (const onnx::AttributeProto& attribute : node.attributes)
      if (attribute.graph) count(attribute.graph->nodes, model, all, unsupported);
  }
}

std::string list(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [name, times] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, times);
  return text;
}

}  // namespace

OnnxDescription describe_onnx(const std::filesystem::path& path) {
  const auto file = OnnxFile::open(path);
  const onnx::ModelProto model = parse_onnx(file->bytes(), file->name());
  OnnxDescription result;
  for (const onnx::TensorProto& tensor : model.graph.initializers) {
    const auto dtype = onnx::dtype_of(tensor.type);
    const Shape shape{std::span<const std::int64_t>(tensor.dims)};
    result.tensors.push_back({tensor.name, onnx::element_type_name(tensor.type), shape,
                              dtype ? shape.size() * size_of(*dtype) : tensor.raw.size()});
  }
  const auto add = [&](const char* key, std::string value) { result.facts.emplace_back(key, std::move(value)); };
  add("IR version", std::to_string(model.ir_version));
  for (const auto& [domain, version] : model.opsets)
    add(domain.empty() ? "operators' version" : (domain + "'s version").c_str(), std::to_string(version));
  if (!model.producer.empty()) add("producer", model.producer + " " + model.producer_version);
  for (const onnx::ValueInfo& input : model.graph.inputs) add("input", text_of(input));
  for (const onnx::ValueInfo& output : model.graph.outputs) add("output", text_of(output));
  std::map<std::string, std::size_t> all, unsupported;
  count(model.graph.nodes, model, all, unsupported);
  add("operators", list(all));
  add("unsupported operators", unsupported.empty() ? "none" : list(unsupported));
  for (const onnx::NodeProto& node : model.graph.nodes)
    for (const std::string& name : node.outputs)
      if (!model.graph.outputs.empty() && name == model.graph.outputs[0].name) result.last_operator = node.op_type;
  return result;
}

}  // namespace plimsoll::internal
