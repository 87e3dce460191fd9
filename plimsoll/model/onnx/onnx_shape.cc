// Shapes: asking for them, changing them.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
namespace {

Tensor numbers(const std::vector<std::int64_t>& values) {
  return from_vector(values, {static_cast<std::int64_t>(values.size())});
}

void shape_of(OnnxNode& node) {
  const Shape shape = node.shape(0);
  const auto rank = static_cast<std::int64_t>(shape.rank());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t begin = place(node.integer("start", 0)), end = place(node.integer("end", rank));
  std::vector<std::int64_t> sizes;
  for (std::int64_t axis = begin; axis < end; ++axis) sizes.push_back(shape[static_cast<std::size_t>(axis)]);
  node.give(numbers(sizes));
}

void size_of_tensor(OnnxNode& node) { node.give(constant(static_cast<std::int64_t>(node.shape(0).size()))); }

void reshape_to(OnnxNode& node, std::vector<std::int64_t> sizes) {
  const Tensor& x = node.in(0);
  const bool zeros = node.integer("allowzero", 0) != 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != 0 || zeros) continue;
    if (axis >= x.rank())
      node.invalid(fmt::format("size {} is copied from an axis that {} lacks", axis, x.shape().to_string()));
    sizes[axis] = x.shape()[axis];
  }
  if (x.size() == 0)  // What is left cannot be found by dividing.
    for (std::int64_t& size : sizes)
      if (size == -1) {
        std::int64_t others = 1;
        for (const std::int64_t other : sizes) others *= other == -1 ? 1 : other;
        size = others == 0 ? 0 : static_cast<std::int64_t>(x.size()) / others;
      }
  node.give(x.reshape(sizes.empty() ? Shape::scalar() : Shape(sizes)));
}

void reshape_by_attribute(OnnxNode& node) { reshape_to(node, node.integers("shape")); }
void reshape_by_operand(OnnxNode& node) { reshape_to(node, node.integers(std::size_t{1})); }

void flatten(OnnxNode& node) {
  const Tensor& x = node.in(0);
  std::int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += static_cast<std::int64_t>(x.rank());
  if (axis < 0 || axis > static_cast<std::int64_t>(x.rank()))
    node.invalid(fmt::format("axis {} of {}", axis, x.shape().to_string()));
  std::int64_t rows = 1, columns = 1;
  for (std::size_t i = 0; i < x.rank(); ++i) (static_cast<std::int64_t>(i) < axis ? rows : columns) *= x.shape()[i];
  node.give(x.reshape({rows, columns}));
}

void squeeze(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::vector<std::int64_t> axes = node.integers("axes", std::size_t{1});
  node.give(axes.empty() && node.has(1) ? x : x.squeeze(Axes(axes)));
}

void unsqueeze(OnnxNode& node) {
  const Tensor& x = node.in(0);
  std::vector<std::int64_t> axes = node.integers("axes", std::size_t{1});
  const auto rank = static_cast<std::int64_t>(x.rank() + axes.size());
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::vector<std::int64_t> sizes;
  for (std::int64_t axis = 0, next = 0; axis < rank; ++axis) {
    if (std::count(axes.begin(), axes.end(), axis) > 1) node.invalid(fmt::format("axis {} is given twice", axis));
    const bool is_new = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_new && next >= static_cast<std::int64_t>(x.rank())) node.invalid("an axis is outside of the result");
    sizes.push_back(is_new ? 1 : x.shape()[static_cast<std::size_t>(next++)]);
  }
  node.give(x.reshape(Shape(sizes)));
}

void expand(OnnxNode& node) {
  const Tensor& x = node.in(0);
  node.give(broadcast_to(x, broadcast_shapes(x.shape(), Shape(node.integers(std::size_t{1})), "Expand")));
}

// Nothing is moved yet: the result is the operand's elements under another order of axes. Whoever needs the file's
// order transposes; a transpose and its inverse cancel.
void transpose_of(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  const std::size_t rank = x.shape().rank();
  std::vector<std::int64_t> moves = node.integers("perm"), seen(rank, 0);
  if (moves.empty())
    for (std::size_t axis = rank; axis-- > 0;) moves.push_back(static_cast<std::int64_t>(axis));
  bool fits = moves.size() == rank;
  for (std::size_t i = 0; fits && i < rank; ++i)
    fits =
        moves[i] >= 0 && moves[i] < static_cast<std::int64_t>(rank) && ++seen[static_cast<std::size_t>(moves[i])] == 1;
  if (!fits) node.invalid(fmt::format("perm does not order the axes of {}", x.shape().to_string()));
  AxisOrder order = inverse(moves);
  if (!x.order().empty()) {
    const AxisOrder places = order;
    for (std::size_t i = 0; i < rank; ++i) order[i] = places[static_cast<std::size_t>(x.order()[i])];
  }
  if (std::is_sorted(order.begin(), order.end())) order.clear();
  node.give(OnnxValue(x.held(), order));
}

constexpr OnnxOperator kShapeRows[] = {
    {"Expand", 8, kNewest, expand, kOperand1},       {"Flatten", 1, kNewest, flatten},
    {"Reshape", 1, 4, reshape_by_attribute},         {"Reshape", 5, kNewest, reshape_by_operand, kOperand1},
    {"Shape", 1, kNewest, shape_of, 0, kGivesShape}, {"Size", 1, kNewest, size_of_tensor, 0, kGivesShape},
    {"Squeeze", 1, kNewest, squeeze, kOperand1},     {"Transpose", 1, kNewest, transpose_of},
    {"Unsqueeze", 1, kNewest, unsqueeze, kOperand1},
};

}  // namespace

OnnxOperators onnx_shape_operators() { return kShapeRows; }

}  // namespace plimsoll::internal
