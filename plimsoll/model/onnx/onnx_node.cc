#include "plimsoll/model/onnx/onnx_node.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/onnx/onnx_graph.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {

OnnxNode::OnnxNode(const onnx::NodeProto& proto, std::int64_t version, OnnxFrame& frame)
    : proto_(proto), version_(version), frame_(frame) {}

std::string OnnxNode::describe() const {
  return fmt::format("{} (version {}), node \"{}\"", proto_.op_type, version_, proto_.name);
}

void OnnxNode::unsupported(std::string_view what) const {
  throw Unsupported(fmt::format("onnx: unsupported: {} of {}", what, describe()));
}

void OnnxNode::invalid(std::string_view what) const { throw InvalidArgument(std::string(what)); }

bool OnnxNode::training() const noexcept { return frame_.training_; }

bool OnnxNode::has(std::size_t input) const {
  if (input >= proto_.inputs.size() || proto_.inputs[input].empty()) return false;
  const OnnxValue* value = frame_.find(proto_.inputs[input]);
  return value && value->is_given();
}

const OnnxValue& OnnxNode::value(std::size_t input) const {
  const std::string name = input < proto_.inputs.size() ? proto_.inputs[input] : "";
  const OnnxValue* value = name.empty() ? nullptr : frame_.find(name);
  if (!value || !value->is_given())
    throw Corruption(fmt::format("onnx: {}: operand {} (\"{}\") is not there", describe(), input, name));
  return *value;
}

const Tensor& OnnxNode::in(std::size_t input) const {
  const OnnxValue& given = value(input);
  if (given.is_sequence()) unsupported(fmt::format("a sequence as operand {}", input));
  return given.plain();
}

Tensor OnnxNode::in_or(std::size_t input) const { return has(input) ? in(input) : Tensor(); }

std::size_t OnnxNode::axis(std::string_view name, std::int64_t missing, std::size_t rank) const {
  return resolve_axis(integer(name, missing), rank, proto_.op_type.c_str());
}

bool OnnxNode::is_known(std::size_t input) const { return has(input) && !is_symbolic(value(input).held()); }

std::vector<std::int64_t> OnnxNode::integers(std::size_t input) const {
  const Tensor& tensor = in(input);
  return visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    std::vector<std::int64_t> result;
    for (const T element : tensor.data<T>()) {
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        result.push_back(static_cast<std::int64_t>(static_cast<float>(element)));
      else if constexpr (std::is_floating_point_v<T>)
        result.push_back(to_integer<std::int64_t>(static_cast<double>(element)));
      else
        result.push_back(static_cast<std::int64_t>(element));
    }
    return result;
  });
}

std::vector<double> OnnxNode::reals(std::size_t input) const {
  const Tensor& tensor = in(input);
  return visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    std::vector<double> result;
    for (const T element : tensor.data<T>()) {
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        result.push_back(static_cast<double>(static_cast<float>(element)));
      else
        result.push_back(static_cast<double>(element));
    }
    return result;
  });
}

std::int64_t OnnxNode::integer_in(std::size_t input) const {
  const std::vector<std::int64_t> all = integers(input);
  if (all.size() != 1) invalid(fmt::format("operand {} has {} elements, one is expected", input, all.size()));
  return all[0];
}

double OnnxNode::real_in(std::size_t input) const {
  const std::vector<double> all = reals(input);
  if (all.size() != 1) invalid(fmt::format("operand {} has {} elements, one is expected", input, all.size()));
  return all[0];
}

const onnx::AttributeProto* OnnxNode::find(std::string_view name) const {
  for (const onnx::AttributeProto& attribute : proto_.attributes) {
    if (attribute.name != name) continue;
    if (attribute.reference.empty()) return &attribute;
    const auto found = frame_.attributes_.find(attribute.reference);
    return found == frame_.attributes_.end() ? nullptr : found->second;
  }
  return nullptr;
}

std::int64_t OnnxNode::integer(std::string_view name, std::int64_t missing) const {
  const onnx::AttributeProto* found = find(name);
  return found ? found->integer : missing;
}

double OnnxNode::real(std::string_view name, double missing) const {
  const onnx::AttributeProto* found = find(name);
  return found ? static_cast<double>(found->real) : missing;
}

std::string OnnxNode::text(std::string_view name, const std::string& missing) const {
  const onnx::AttributeProto* found = find(name);
  return found ? found->text : missing;
}

std::vector<std::int64_t> OnnxNode::integers(std::string_view name, const std::vector<std::int64_t>& missing) const {
  const onnx::AttributeProto* found = find(name);
  return found ? found->integers : missing;
}

std::vector<double> OnnxNode::reals(std::string_view name) const {
  const onnx::AttributeProto* found = find(name);
  if (!found) return {};
  return {found->reals.begin(), found->reals.end()};
}

std::vector<std::string> OnnxNode::texts(std::string_view name) const {
  const onnx::AttributeProto* found = find(name);
  return found ? found->texts : std::vector<std::string>();
}

std::vector<std::int64_t> OnnxNode::integers(std::string_view name, std::size_t input) const {
  return has(input) ? integers(input) : integers(name);
}

Tensor OnnxNode::tensor(std::string_view name) const {
  const onnx::AttributeProto* found = find(name);
  if (found && found->sparse) return frame_.graph_.file().tensor(*found->sparse);
  if (!found || !found->tensor) invalid(fmt::format("the attribute \"{}\" is not a tensor", name));
  return frame_.graph_.tensors_.at(found->tensor.get());
}

const onnx::GraphProto& OnnxNode::graph(std::string_view name) const {
  const onnx::AttributeProto* found = find(name);
  if (!found || !found->graph) invalid(fmt::format("the attribute \"{}\" is not a graph", name));
  return *found->graph;
}

void OnnxNode::give(std::size_t output, OnnxValue result) {
  if (wants(output)) frame_.set(proto_.outputs[output], std::move(result));
}

std::vector<OnnxValue> OnnxNode::run(const onnx::GraphProto& graph, std::vector<OnnxValue> inputs) const {
  return frame_.run_inside(graph, std::move(inputs));
}

Tensor constant_numbers(const std::vector<std::int64_t>& values) {
  const TraceWith nobody(nullptr);
  return from_vector(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace plimsoll::internal
