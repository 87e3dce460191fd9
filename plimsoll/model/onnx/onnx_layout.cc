#include "plimsoll/model/onnx/onnx_layout.h"

namespace plimsoll::internal {
namespace {

// Before version 7, the second operand is laid beside the first from `axis` on.
OnnxValue placed(const OnnxNode& node, const OnnxValue& b, std::size_t rank) {
  const Shape shape = b.shape();
  const std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  if (!node.find("axis") || sizes.size() >= rank) return b;
  std::vector<std::int64_t> full = sizes;
  const std::int64_t axis = node.integer("axis", 0);
  const auto first = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  while (full.size() + first < rank) full.push_back(1);
  OnnxValue result(b.plain().reshape(Shape(full)));
  if (b.is_constant()) result.set_constant();
  return result;
}

}  // namespace

Tensor in_order(const OnnxValue& value, std::size_t rank, const AxisOrder& order) {
  if (order.empty()) return value.plain();
  if (value.order() == order) return value.held();
  const Shape shape = value.shape();
  if (shape.rank() == 0) return value.plain();
  std::vector<std::int64_t> sizes(rank - shape.rank(), 1);
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  if (sizes.size() == shape.rank()) return value.as(order);
  return OnnxValue(value.plain().reshape(Shape(sizes))).as(order);
}

OnnxPair aligned(const OnnxNode& node) {
  const OnnxValue& a = node.value(0);
  if (a.is_sequence() || node.value(1).is_sequence()) node.unsupported("a sequence");
  const OnnxValue b = node.version() < 7 ? placed(node, node.value(1), a.shape().rank()) : node.value(1);
  const std::size_t rank = std::max(a.shape().rank(), b.shape().rank());
  AxisOrder order = a.order().empty() ? b.order() : a.order();
  if (order.size() != rank) order.clear();
  return {in_order(a, rank, order), in_order(b, rank, order), order};
}

Tensor per_channel(const Tensor& values, std::size_t rank) {
  std::vector<std::int64_t> sizes = {values.shape()[0]};
  for (std::size_t axis = 2; axis < rank; ++axis) sizes.push_back(1);
  return values.reshape(Shape(sizes));
}

}  // namespace plimsoll::internal
