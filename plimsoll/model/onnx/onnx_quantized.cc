// Quantized tensors: bytes that stand for numbers by a scale and a zero point; products of them.
#include <fmt/format.h>

#include "plimsoll/model/onnx/onnx_convolution.h"
#include "plimsoll/model/onnx/onnx_layout.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduce.h"

namespace plimsoll::internal {
namespace {

// Along `axis` of tensors of this rank, unless it is one number.
Tensor along(const Tensor& values, std::size_t axis, std::size_t rank) {
  if (values.size() == 1) return values.reshape(Shape::scalar());
  std::vector<std::int64_t> sizes(rank, 1);
  sizes[axis] = values.shape()[0];
  return values.reshape(Shape(sizes));
}

std::size_t axis_of(const OnnxNode& node, std::size_t rank) {
  return rank == 0 ? 0 : resolve_axis(rank == 1 && !node.find("axis") ? 0 : node.integer("axis", 1), rank, "axis");
}

void require_whole(const OnnxNode& node) {
  if (node.integer("block_size", 0) != 0) node.unsupported("block_size");
  if (node.has(1) && node.rank(1) > 1) node.unsupported(fmt::format("scales of {} axes", node.rank(1)));
}

// Rounded to even, shifted, and held to what the dtype has.
Tensor saturated(const Tensor& scaled, const Tensor& zero, DType dtype) {
  Tensor y = round(scaled);
  if (!zero.is_empty_handle()) y = y + zero.cast(y.dtype());
  const double low = dtype == u8   ? 0
                     : dtype == i8 ? -128
                                   : -32768,
               high = dtype == u8   ? 255
                      : dtype == i8 ? 127
                                    : 32767;
  return clip(y, low, high).cast(dtype);
}

void quantize(OnnxNode& node) {
  require_whole(node);
  const Tensor& x = node.in(0);
  const std::size_t axis = axis_of(node, x.rank());
  const Tensor zero = node.has(2) ? along(node.in(2), axis, x.rank()) : Tensor();
  const auto type = static_cast<std::int32_t>(node.integer("output_dtype", 0));
  const DType dtype = node.has(2) ? node.dtype(2) : type == 0 ? u8 : onnx::dtype_of(type).value_or(u8);
  if (dtype != u8 && dtype != i8 && dtype != i16)
    node.unsupported(std::string("the element type ") + dtype_name(dtype));
  const Tensor scale = along(node.in(1), axis, x.rank());
  node.give(saturated(x.cast(scale.dtype()) / scale, zero, dtype));
}

void dequantize(OnnxNode& node) {
  require_whole(node);
  const Tensor& x = node.in(0);
  const std::size_t axis = axis_of(node, x.rank());
  const Tensor scale = along(node.in(1), axis, x.rank());
  Tensor y = x.cast(scale.dtype());
  if (node.has(2)) y = y - along(node.in(2), axis, x.rank()).cast(scale.dtype());
  node.give(y * scale);
}

void quantize_dynamically(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const Tensor low = minimum(min(x), 0), high = maximum(max(x), 0);
  const Tensor scale = (high - low) / 255;
  const Tensor zero = round(clip(divide_no_nan(-low, scale), 0, 255));
  node.give(0, clip(round(divide_no_nan(x, scale)) + zero, 0, 255).cast(u8));
  node.give(1, scale);
  node.give(2, zero.cast(u8));
}

// Operand `input` less its zero point, as numbers of `dtype`; a zero point for each row, or for each column.
Tensor centered(const OnnxNode& node, std::size_t input, std::size_t zero, DType dtype, bool rows) {
  const Tensor x = node.in(input).cast(dtype);
  if (!node.has(zero)) return x;
  Tensor by = node.in(zero).cast(dtype);
  if (by.size() == 1) by = by.reshape(Shape::scalar());
  if (rows && by.rank() == 1) by = by.expand_dims(1);
  return x - by;
}

void matmul_integer(OnnxNode& node) {
  node.give(matmul(centered(node, 0, 2, i32, true), centered(node, 1, 3, i32, false)));
}

Tensor scale_in(const OnnxNode& node, std::size_t input, bool rows) {
  const Tensor scale = node.in(input).cast(f64);
  if (scale.size() == 1) return scale.reshape(Shape::scalar());
  return rows && scale.rank() == 1 ? scale.expand_dims(1) : scale;
}

void matmul_quantized(OnnxNode& node) {
  const Tensor product = matmul(centered(node, 0, 2, i32, true), centered(node, 3, 5, i32, false)).cast(f64);
  const Tensor scaled = product * (scale_in(node, 1, true) * scale_in(node, 4, false)) / scale_in(node, 6, false);
  node.give(
      saturated(scaled, node.in(7).size() == 1 ? node.in(7).reshape(Shape::scalar()) : node.in(7), node.dtype(7)));
}

// Sums of products of bytes are whole numbers, which doubles hold exactly.
OnnxValue convolve_bytes(const OnnxNode& node, std::size_t w, std::size_t x_zero, std::size_t w_zero) {
  Tensor filter = node.in(w).cast(f64);
  if (node.has(w_zero)) filter = filter - along(node.in(w_zero), 0, filter.rank()).cast(f64);
  return convolve_node(node, OnnxValue(centered(node, 0, x_zero, f64, false)), OnnxValue(filter), {});
}

void convolve_integer(OnnxNode& node) {
  const OnnxValue y = convolve_bytes(node, 1, 2, 3);
  node.give(OnnxValue(y.held().cast(i32), y.order()));
}

void convolve_quantized(OnnxNode& node) {
  const OnnxValue y = convolve_bytes(node, 3, 2, 5);  // Channels last.
  Tensor sum = y.held();
  if (node.has(8)) sum = sum + node.in(8).cast(f64);
  const Tensor w_scale = along(node.in(4), sum.rank() - 1, sum.rank()).cast(f64);
  const Tensor scaled = sum * (w_scale * scale_in(node, 1, false)) / scale_in(node, 6, false);
  node.give(OnnxValue(saturated(scaled, node.in(7).reshape(Shape::scalar()), node.dtype(7)), y.order()));
}

constexpr OnnxOperator kQuantizedRows[] = {
    {"ConvInteger", 10, kNewest, convolve_integer},
    {"DequantizeLinear", 10, kNewest, dequantize},
    {"DynamicQuantizeLinear", 11, kNewest, quantize_dynamically},
    {"MatMulInteger", 10, kNewest, matmul_integer},
    {"QLinearConv", 10, kNewest, convolve_quantized},
    {"QLinearMatMul", 10, kNewest, matmul_quantized},
    {"QuantizeLinear", 10, kNewest, quantize},
};

}  // namespace

OnnxOperators onnx_quantized_operators() { return kQuantizedRows; }

}  // namespace plimsoll::internal
