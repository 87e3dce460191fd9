// OnnxNode: what a handler sees of the node it computes: operands, attributes, the version of its operator.
//
//   void onnx_leaky_relu(OnnxNode& node) { node.give(leaky_relu(node.in(0), node.real("alpha", 0.01))); }
//
// Handlers call our operations on tensors. These may be symbolic: shapes are known, elements are not. Elements that
// decide shapes (the shape of a Reshape, the axes of a Squeeze) are read with integers(i); the handler's row in the
// table names such operands (onnx_operators.h), so that what computes them is folded first. Errors are those of the
// operations; unsupported() refuses what a handler does not support, naming operator, version and node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/model/onnx/onnx_proto.h"
#include "plimsoll/model/onnx/onnx_value.h"

namespace plimsoll::internal {

class OnnxFrame;

class OnnxNode {
 public:
  OnnxNode(const onnx::NodeProto& proto, std::int64_t version, OnnxFrame& frame);

  const std::string& op_type() const noexcept { return proto_.op_type; }
  std::int64_t version() const noexcept { return version_; }  // Of the operator set.

  // Operands. They throw Corruption when a required one is missing.
  std::size_t num_inputs() const noexcept { return proto_.inputs.size(); }
  bool has(std::size_t input) const;  // Given, not left out.
  const OnnxValue& value(std::size_t input) const;
  const Tensor& in(std::size_t input) const;  // With the file's order of axes.
  Tensor in_or(std::size_t input) const;      // An empty handle when it is left out.
  Shape shape(std::size_t input) const { return value(input).shape(); }
  std::size_t rank(std::size_t input) const { return shape(input).rank(); }
  DType dtype(std::size_t input) const { return value(input).held().dtype(); }
  std::size_t axis(std::string_view name, std::int64_t missing, std::size_t rank) const;  // An attribute, from 0 on.

  // Elements, which must be known now: throw FailedPrecondition when they are not.
  bool is_known(std::size_t input) const;
  std::vector<std::int64_t> integers(std::size_t input) const;
  std::vector<double> reals(std::size_t input) const;
  std::int64_t integer_in(std::size_t input) const;  // Of one element.
  double real_in(std::size_t input) const;

  // Attributes.
  const onnx::AttributeProto* find(std::string_view name) const;  // nullptr: not given.
  std::int64_t integer(std::string_view name, std::int64_t missing) const;
  double real(std::string_view name, double missing) const;
  std::string text(std::string_view name, const std::string& missing) const;
  std::vector<std::int64_t> integers(std::string_view name, const std::vector<std::int64_t>& missing = {}) const;
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  Tensor tensor(std::string_view name) const;
  const onnx::GraphProto& graph(std::string_view name) const;
  // An attribute of early versions that later ones take as an operand; empty when neither is given.
  std::vector<std::int64_t> integers(std::string_view name, std::size_t input) const;

  // Results.
  std::size_t num_outputs() const noexcept { return proto_.outputs.size(); }
  bool wants(std::size_t output) const { return output < num_outputs() && !proto_.outputs[output].empty(); }
  void give(Tensor result) { give(0, OnnxValue(std::move(result))); }
  void give(std::size_t output, Tensor result) { give(output, OnnxValue(std::move(result))); }
  void give(OnnxValue result) { give(0, std::move(result)); }
  void give(std::size_t output, OnnxValue result);

  // Runs a graph inside this node (If, Loop, Scan) with these inputs; names of enclosing graphs are visible.
  std::vector<OnnxValue> run(const onnx::GraphProto& graph, std::vector<OnnxValue> inputs) const;
  bool training() const noexcept;
  const onnx::NodeProto& proto() const noexcept { return proto_; }

  [[noreturn]] void unsupported(std::string_view what) const;
  [[noreturn]] void invalid(std::string_view what) const;  // InvalidArgument, in the node's name.
  std::string describe() const;                            // `Conv (version 11), node "conv1"`

 private:
  const onnx::NodeProto& proto_;
  const std::int64_t version_;
  OnnxFrame& frame_;
};

// A list of integers that is known while the graph is built: no trace sees it.
Tensor constant_numbers(const std::vector<std::int64_t>& values);

}  // namespace plimsoll::internal
