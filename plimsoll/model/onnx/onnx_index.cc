// Choosing and placing elements by index.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/scatter_reduce.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

// Indices from 0 on: negative ones count from the end of an axis of this size.
Tensor from_zero(const Tensor& indices, std::int64_t size) {
  const Tensor wide = indices.dtype() == i32 || indices.dtype() == i64 ? indices : indices.cast(i64);
  return where(wide < 0, wide + size, wide);
}

void gather_of(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::size_t axis = node.axis("axis", 0, x.rank());
  node.give(gather(x, from_zero(node.in(1), x.shape()[axis]), static_cast<std::int64_t>(axis)));
}

void gather_elements(OnnxNode& node) {
  Tensor x = node.in(0);
  const Tensor& indices = node.in(1);
  const std::size_t axis = node.axis("axis", 0, x.rank());
  if (indices.rank() != x.rank()) node.invalid("data and indices have different ranks");
  std::vector<std::int64_t> sizes(indices.shape().begin(), indices.shape().end());
  sizes[axis] = x.shape()[axis];
  if (!(Shape(sizes) == x.shape())) x = slice(x, std::vector<std::int64_t>(x.rank(), 0), sizes);
  node.give(take_along_axis(x, from_zero(indices, x.shape()[axis]), static_cast<std::int64_t>(axis)));
}

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t result = 1;
  for (std::size_t axis = begin; axis < end; ++axis) result *= shape[axis];
  return result;
}

// Rows that index vectors (the last axis of `indices`) stand for: places among all combinations of the axes from
// `first` on, as many as a vector has elements.
Tensor linear_rows(const OnnxNode& node, const Shape& data, const Tensor& indices, std::size_t first) {
  const auto depth = static_cast<std::size_t>(indices.shape().back());
  if (first + depth > data.rank()) node.invalid(fmt::format("indices of {} axes into {}", depth, data.to_string()));
  std::vector<std::int64_t> sizes, strides;
  for (std::size_t i = 0; i < depth; ++i) {
    sizes.push_back(data[first + i]);
    strides.push_back(product(data, first + i + 1, first + depth));
  }
  const Tensor wide = indices.cast(i64), size = constant_numbers(sizes);
  const Tensor positive = where(wide < 0, wide + size, wide);
  return sum(positive * constant_numbers(strides), {-1});
}

void gather_nd(OnnxNode& node) {
  const Tensor &x = node.in(0), &indices = node.in(1);
  const auto batches = static_cast<std::size_t>(node.integer("batch_dims", 0));
  if (indices.rank() <= batches || x.rank() < batches) node.invalid("batch_dims is larger than the ranks");
  const std::size_t depth = static_cast<std::size_t>(indices.shape().back());
  Tensor rows = linear_rows(node, x.shape(), indices, batches);
  const std::int64_t batch = product(x.shape(), 0, batches), inner = product(x.shape(), batches, batches + depth);
  if (batches > 0) {
    std::vector<std::int64_t> beside(rows.rank(), 1);
    std::copy(x.shape().begin(), x.shape().begin() + batches, beside.begin());
    rows = rows + (arange(batch).cast(i64) * inner).reshape(Shape(beside));
  }
  std::vector<std::int64_t> sizes = {batch * inner};
  sizes.insert(sizes.end(), x.shape().begin() + batches + depth, x.shape().end());
  node.give(gather(x.reshape(Shape(sizes)), rows));
}

// One of a set of rows, updated: `none` puts in place, the others combine.
Tensor updated(const OnnxNode& node, const Tensor& x, const Tensor& rows, const Tensor& updates) {
  const std::string reduction = node.text("reduction", "none");
  if (reduction == "none") return scatter_update(x, rows, updates);
  if (reduction == "add") return scatter_add(x, rows, updates);
  if (reduction == "mul") return scatter_reduce(x, rows, updates, ScatterReduction::multiply);
  if (reduction == "max") return scatter_reduce(x, rows, updates, ScatterReduction::maximum);
  if (reduction == "min") return scatter_reduce(x, rows, updates, ScatterReduction::minimum);
  node.unsupported(fmt::format("the reduction \"{}\"", reduction));
}

void scatter_nd(OnnxNode& node) {
  const Tensor &x = node.in(0), &indices = node.in(1), &updates = node.in(2);
  if (indices.rank() == 0) node.invalid("indices have no axis");
  const auto depth = static_cast<std::size_t>(indices.shape().back());
  const Tensor rows = linear_rows(node, x.shape(), indices, 0);
  std::vector<std::int64_t> sizes = {product(x.shape(), 0, depth)};
  sizes.insert(sizes.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(depth), x.shape().end());
  node.give(updated(node, x.reshape(Shape(sizes)), rows, updates).reshape(x.shape()));
}

void scatter_elements(OnnxNode& node) {
  const Tensor &x = node.in(0), &indices = node.in(1), &updates = node.in(2);
  const std::size_t axis = node.axis("axis", 0, x.rank());
  const Strides strides = row_major_strides(x.shape());
  Tensor places = from_zero(indices, x.shape()[axis]).cast(i64) * strides[axis];
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (i == axis) continue;
    std::vector<std::int64_t> beside(x.rank(), 1);
    beside[i] = indices.shape()[i];
    places = places + (arange(indices.shape()[i]).cast(i64) * strides[i]).reshape(Shape(beside));
  }
  node.give(updated(node, x.flatten(), places.flatten(), updates.flatten()).reshape(x.shape()));
}

void one_hot_of(OnnxNode& node) {
  const Tensor& indices = node.in(0);
  const std::int64_t depth = node.integer_in(1);
  const Tensor& values = node.in(2);
  const Tensor wide = indices.dtype() == i32 || indices.dtype() == i64 ? indices : indices.cast(i64);
  const Tensor on = one_hot(from_zero(wide, depth), depth, boolean);
  const Tensor result =
      where(on, values.slice({1}, {1}).reshape(Shape::scalar()), values.slice({0}, {1}).reshape(Shape::scalar()));
  const std::size_t axis = resolve_axis(node.integer("axis", -1), indices.rank() + 1, "OneHot");
  if (axis == indices.rank()) return node.give(result);
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < indices.rank(); ++i) {
    if (i == axis) order.push_back(static_cast<std::int64_t>(indices.rank()));
    order.push_back(static_cast<std::int64_t>(i));
  }
  node.give(transpose(result, order));
}

void top_k_of(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::size_t axis = node.axis("axis", -1, x.rank());
  const std::int64_t k = node.version() < 10 ? node.integer("k", 1) : node.integer_in(1);
  if (k < 0 || k > x.shape()[axis]) node.invalid(fmt::format("k is {}, the axis has {}", k, x.shape()[axis]));
  const auto along = static_cast<std::int64_t>(axis);
  const bool largest = node.integer("largest", 1) != 0;
  if (largest && axis + 1 == x.rank() && k > 0) {
    const TopK found = top_k(x, k);
    node.give(0, found.values);
    return node.give(1, found.indices);
  }
  std::vector<std::int64_t> begin(x.rank(), 0), count(x.rank(), -1);
  count[axis] = k;
  const Tensor places = slice(argsort(x, along, {.descending = largest}), begin, count);
  node.give(0, take_along_axis(x, places, along));
  node.give(1, places);
}

void non_zero(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const Tensor mask = x.dtype() == boolean ? x : not_equal(x, 0);
  if (x.rank() == 0) return node.give(transpose(where_true(mask.reshape({1}))).slice({0}, {0}));
  node.give(transpose(where_true(mask)));
}

void compress(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::vector<std::int64_t> condition = node.integers(std::size_t{1});
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) places.push_back(static_cast<std::int64_t>(i));
  if (!node.find("axis")) return node.give(gather(x.flatten(), constant_numbers(places)));
  node.give(gather(x, constant_numbers(places), static_cast<std::int64_t>(node.axis("axis", 0, x.rank()))));
}

constexpr OnnxOperator kIndexRows[] = {
    {"Compress", 9, kNewest, compress, kOperand1},
    {"Gather", 1, kNewest, gather_of},
    {"GatherElements", 11, kNewest, gather_elements},
    {"GatherND", 11, kNewest, gather_nd},
    {"NonZero", 9, kNewest, non_zero},
    {"OneHot", 9, kNewest, one_hot_of, kOperand1},
    {"Scatter", 9, kNewest, scatter_elements},
    {"ScatterElements", 11, kNewest, scatter_elements},
    {"ScatterND", 11, kNewest, scatter_nd},
    {"TopK", 1, 9, top_k_of},
    {"TopK", 10, kNewest, top_k_of, kOperand1},
};

}  // namespace

OnnxOperators onnx_index_operators() { return kIndexRows; }

}  // namespace plimsoll::internal
