// Moving elements: joining, cutting, padding, repeating.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plimsoll/base/rounding.h"
#include "plimsoll/model/onnx/onnx_layout.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

void concat_of(OnnxNode& node) {
  const AxisOrder order = node.value(0).order();
  const std::size_t rank = node.rank(0), axis = node.axis("axis", node.version() < 4 ? 1 : 0, rank);
  const bool together = [&] {
    for (std::size_t i = 0; i < node.num_inputs(); ++i)
      if (node.value(i).order() != order) return false;
    return true;
  }();
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < node.num_inputs(); ++i) parts.push_back(together ? node.value(i).held() : node.in(i));
  if (!together || order.empty()) return node.give(concat(parts, static_cast<std::int64_t>(axis)));
  const auto place = std::find(order.begin(), order.end(), static_cast<std::int64_t>(axis)) - order.begin();
  node.give(OnnxValue(concat(parts, place), order));
}

void split_of(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::size_t axis = node.axis("axis", 0, x.rank());
  std::vector<std::int64_t> sizes = node.integers("split", std::size_t{1});
  if (sizes.empty()) {
    const std::int64_t size = x.shape()[axis];
    const std::int64_t parts = node.integer("num_outputs", static_cast<std::int64_t>(node.num_outputs()));
    if (parts < 1) node.invalid("there are no parts");
    const std::int64_t each = divide_up(size, parts);
    for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<std::int64_t>(size - i * each, 0, each));
  }
  const std::vector<Tensor> parts = split(x, sizes, static_cast<std::int64_t>(axis));
  for (std::size_t i = 0; i < parts.size(); ++i) node.give(i, parts[i]);
}

void slice_of(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const bool operands = node.version() >= 10;
  const std::vector<std::int64_t> starts = operands ? node.integers(std::size_t{1}) : node.integers("starts");
  const std::vector<std::int64_t> ends = operands ? node.integers(std::size_t{2}) : node.integers("ends");
  std::vector<std::int64_t> axes = operands && node.has(3) ? node.integers(std::size_t{3}) : node.integers("axes");
  const std::vector<std::int64_t> steps =
      operands && node.has(4) ? node.integers(std::size_t{4}) : std::vector<std::int64_t>();
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (ends.size() != starts.size() || axes.size() != starts.size() || (!steps.empty() && steps.size() != starts.size()))
    node.invalid(
        fmt::format("{} starts, {} ends, {} axes, {} steps", starts.size(), ends.size(), axes.size(), steps.size()));
  std::vector<std::int64_t> begin(x.rank(), kOpen), end(x.rank(), kOpen), stride(x.rank(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = resolve_axis(axes[i], x.rank(), "Slice");
    stride[axis] = steps.empty() ? 1 : steps[i];
    // Positions far outside mean the edge.
    const std::int64_t far = std::numeric_limits<std::int64_t>::max() / 4;
    begin[axis] = std::clamp(starts[i], -far, far);
    end[axis] = std::clamp(ends[i], -far, far);
  }
  if (x.rank() == 0) return node.give(x);
  node.give(strided_slice(x, begin, end, stride));
}

void tile_by_one(OnnxNode& node) {
  const Tensor& x = node.in(0);
  std::vector<std::int64_t> multiples(x.rank(), 1);
  multiples[resolve_axis(node.integer_in(2), x.rank(), "Tile")] = node.integer_in(1);
  node.give(tile(x, multiples));
}
void tile_of(OnnxNode& node) { node.give(tile(node.in(0), node.integers(std::size_t{1}))); }

// Where the elements of a padded axis come from.
std::vector<std::int64_t> source_of(const OnnxNode& node, const std::string& mode, std::int64_t size,
                                    std::int64_t before, std::int64_t after) {
  if (size == 0) node.invalid("an axis without elements can only be padded with a constant");
  std::vector<std::int64_t> source;
  for (std::int64_t i = -before; i < size + after; ++i) {
    if (mode == "edge") {
      source.push_back(std::clamp<std::int64_t>(i, 0, size - 1));
    } else if (mode == "wrap") {
      source.push_back((i % size + size) % size);
    } else {  // reflect
      const std::int64_t period = std::max<std::int64_t>(1, 2 * (size - 1)), at = (i % period + period) % period;
      source.push_back(at < size ? at : period - at);
    }
  }
  return source;
}

void pad_by(OnnxNode& node, const std::vector<std::int64_t>& pads, const std::vector<std::int64_t>& given_axes,
            const Tensor& value) {
  Tensor x = node.in(0);
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : given_axes) axes.push_back(resolve_axis(axis, x.rank(), "Pad"));
  if (given_axes.empty())
    for (std::size_t axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  if (pads.size() != 2 * axes.size()) node.invalid(fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  Paddings paddings(x.rank(), {0, 0});
  std::vector<std::int64_t> begin(x.rank(), 0), count(x.shape().begin(), x.shape().end());
  bool cuts = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t before = pads[i], after = pads[i + axes.size()];
    if (before < 0) begin[axes[i]] = -before, count[axes[i]] += before, cuts = true, before = 0;
    if (after < 0) count[axes[i]] += after, cuts = true, after = 0;
    if (count[axes[i]] < 0) node.invalid("more is cut off than there is");
    paddings[axes[i]] = {before, after};
  }
  if (cuts) x = slice(x, begin, count);
  const std::string mode = node.text("mode", "constant");
  if (mode == "constant") {
    if (value.is_empty_handle()) return node.give(pad(x, paddings, node.real("value", 0)));
    if (is_symbolic(value)) {  // Where nothing was, the value.
      const Tensor inside = pad(ones(x.shape(), boolean), paddings, 0);
      return node.give(where(inside, pad(x, paddings, 0), value.reshape(Shape::scalar())));
    }
    const bool whole = !is_floating(value.dtype());
    return node.give(pad(x, paddings, whole ? Number(value.item<std::int64_t>()) : Number(value.item<double>())));
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap") node.unsupported(fmt::format("the mode \"{}\"", mode));
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const auto [before, after] = paddings[axis];
    if (before == 0 && after == 0) continue;
    x = gather(x, constant_numbers(source_of(node, mode, x.shape()[axis], before, after)),
               static_cast<std::int64_t>(axis));
  }
  node.give(x);
}

void pad_by_attributes(OnnxNode& node) {
  pad_by(node, node.integers(node.version() < 2 ? "paddings" : "pads"), {}, {});
}
void pad_by_operands(OnnxNode& node) {
  pad_by(node, node.integers(std::size_t{1}), node.has(3) ? node.integers(std::size_t{3}) : std::vector<std::int64_t>(),
         node.has(2) ? node.in(2) : zeros(Shape::scalar(), node.dtype(0)));
}

void depth_to_space(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::int64_t b = node.integer("blocksize", 1);
  if (x.rank() != 4 || b < 1) node.invalid("it takes [batch, channels, rows, columns] and a blocksize of 1 or more");
  const std::int64_t n = x.shape()[0], c = x.shape()[1], h = x.shape()[2], w = x.shape()[3];
  const bool rows_first = node.text("mode", "DCR") == "DCR";
  const Tensor parts = rows_first ? transpose(x.reshape({n, b, b, c / (b * b), h, w}), {0, 3, 4, 1, 5, 2})
                                  : transpose(x.reshape({n, c / (b * b), b, b, h, w}), {0, 1, 4, 2, 5, 3});
  node.give(parts.reshape({n, c / (b * b), h * b, w * b}));
}

void space_to_depth(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::int64_t b = node.integer("blocksize", 1);
  if (x.rank() != 4 || b < 1) node.invalid("it takes [batch, channels, rows, columns] and a blocksize of 1 or more");
  const std::int64_t n = x.shape()[0], c = x.shape()[1], h = x.shape()[2], w = x.shape()[3];
  const bool rows_first = node.text("mode", "DCR") == "DCR";
  const std::vector<std::int64_t> order =
      rows_first ? std::vector<std::int64_t>{0, 3, 5, 1, 2, 4} : std::vector<std::int64_t>{0, 1, 3, 5, 2, 4};
  node.give(transpose(x.reshape({n, c, h / b, b, w / b, b}), order).reshape({n, c * b * b, h / b, w / b}));
}

// True where column - row >= k.
Tensor above_diagonal(std::int64_t rows, std::int64_t columns, std::int64_t k) {
  const Tensor down = arange(rows).reshape({rows, 1}), across = arange(columns).reshape({1, columns});
  return across - down >= k;
}

void trilu(OnnxNode& node) {
  const Tensor& x = node.in(0);
  if (x.rank() < 2) node.invalid("it takes matrices");
  const std::int64_t rows = x.shape()[x.rank() - 2], columns = x.shape()[x.rank() - 1];
  const std::int64_t k = node.has(1) ? node.integer_in(1) : 0;
  const bool upper = node.integer("upper", 1) != 0;
  const Tensor kept = upper ? above_diagonal(rows, columns, k) : !above_diagonal(rows, columns, k + 1);
  node.give(where(kept, x, zeros(Shape::scalar(), x.dtype())));
}

void eye_like(OnnxNode& node) {
  const Shape shape = node.shape(0);
  const auto type = static_cast<std::int32_t>(node.integer("dtype", onnx::element_type_of(node.dtype(0))));
  const std::optional<DType> dtype = onnx::dtype_of(type);
  if (!dtype) node.unsupported("the element type " + onnx::element_type_name(type));
  if (shape.rank() != 2) node.invalid("it takes a matrix");
  const std::int64_t k = node.integer("k", 0);
  const Tensor on = above_diagonal(shape[0], shape[1], k) && !above_diagonal(shape[0], shape[1], k + 1);
  node.give(on.cast(*dtype));
}

void cumsum_of(OnnxNode& node) {
  node.give(cumsum(node.in(0), node.integer_in(1),
                   {.exclusive = node.integer("exclusive", 0) != 0, .reverse = node.integer("reverse", 0) != 0}));
}

void reverse_sequence(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::size_t time = node.axis("time_axis", 0, x.rank()), batch = node.axis("batch_axis", 1, x.rank());
  std::vector<std::int64_t> steps(x.rank(), 1), rows(x.rank(), 1);
  steps[time] = x.shape()[time];
  rows[batch] = x.shape()[batch];
  const Tensor t = arange(x.shape()[time]).cast(i64).reshape(Shape(steps));
  const Tensor length = node.in(1).cast(i64).reshape(Shape(rows));
  const Tensor from = where(t < length, length - 1 - t, t + zeros(Shape(rows), i64));
  node.give(take_along_axis(x, broadcast_to(from, x.shape()), static_cast<std::int64_t>(time)));
}

constexpr OnnxOperator kMovementRows[] = {
    {"Concat", 1, kNewest, concat_of},
    {"CumSum", 11, kNewest, cumsum_of, kOperand1},
    {"DepthToSpace", 1, kNewest, depth_to_space},
    {"EyeLike", 9, kNewest, eye_like},
    {"Pad", 1, 10, pad_by_attributes},
    {"Pad", 11, kNewest, pad_by_operands, kOperand1 | kOperand3},
    {"ReverseSequence", 10, kNewest, reverse_sequence},
    {"Slice", 1, 9, slice_of},
    {"Slice", 10, kNewest, slice_of, kOperandsFrom1},
    {"SpaceToDepth", 1, kNewest, space_to_depth},
    {"Split", 1, kNewest, split_of, kOperand1},
    {"Tile", 1, 5, tile_by_one, kOperand1 | kOperand2},
    {"Tile", 6, kNewest, tile_of, kOperand1},
    {"Trilu", 14, kNewest, trilu, kOperand1},
};

}  // namespace

OnnxOperators onnx_movement_operators() { return kMovementRows; }

}  // namespace plimsoll::internal
