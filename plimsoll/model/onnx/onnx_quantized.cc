// Quantized tensors: bytes that stand for numbers by a scale and a zero point; products of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plimsoll/model/onnx/onnx_layout.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/model/onnx/onnx_window.h"
#include "plimsoll/ops/byte_products.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/tensor/tracer.h"

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
  Tensor x = node.in(input).cast(dtype);
  if (!node.has(zero)) return x;
  Tensor by = node.in(zero).cast(dtype);
  if (by.size() == 1) by = by.reshape(Shape::scalar());
  if (rows && by.rank() == 1) by = by.expand_dims(1);
  return x - by;
}

// As a list of one element, or of one for each channel; absent zero points are 0.
Tensor zero_list(const OnnxNode& node, std::size_t input) {
  if (node.has(input)) return node.in(input).cast(i32).flatten();
  const TraceWith nobody(nullptr);
  return zeros({1}, i32);
}
Tensor scale_list(const OnnxNode& node, std::size_t input) { return node.in(input).cast(f32).flatten(); }

// Which operands a product of bytes has: those of MatMulInteger and ConvInteger, or of their quantized forms.
struct BytePlaces {
  std::size_t w, x_zero, w_zero;
  bool quantized;
};
constexpr BytePlaces kIntegerPlaces = {1, 2, 3, false}, kQuantizedPlaces = {3, 2, 5, true};

std::vector<Tensor> byte_operands(const OnnxNode& node, const BytePlaces& places, Tensor x, Tensor filter) {
  std::vector<Tensor> operands = {std::move(x), std::move(filter), zero_list(node, places.x_zero),
                                  zero_list(node, places.w_zero)};
  if (!places.quantized) return operands;
  for (const std::size_t scale : {1, 4, 6}) operands.push_back(scale_list(node, scale));
  operands.push_back(zero_list(node, 7));
  if (node.has(8)) operands.push_back(node.in(8));
  return operands;
}

// Whether each number that a product has is one, or one for each column: else it is made of other operations.
bool fits_bytes(const OnnxNode& node, const BytePlaces& places) {
  const auto one = [&](std::size_t input) { return !node.has(input) || node.shape(input).size() == 1; };
  const auto columns = [&](std::size_t input) {
    return one(input) || (node.rank(input) == 1 && node.shape(input)[0] == node.shape(places.w).back());
  };
  const bool numbers =
      one(places.x_zero) && columns(places.w_zero) && (!places.quantized || (one(1) && columns(4) && one(6) && one(7)));
  return numbers && node.rank(places.w) == 2 && node.rank(0) >= 2 && node.shape(places.w)[1] > 0;
}

// Rows times a matrix: a convolution without places.
void matmul_bytes(OnnxNode& node, const BytePlaces& places) {
  const Tensor &x = node.in(0), &w = node.in(places.w);
  const std::int64_t deep = w.shape()[0], columns = w.shape()[1];
  if (x.shape().back() != deep) node.invalid(fmt::format("{} times {}", x.shape().to_string(), w.shape().to_string()));
  std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end() - 1);
  std::int64_t rows = 1;
  for (const std::int64_t size : sizes) rows *= size;
  sizes.push_back(columns);
  const std::vector<Tensor> operands =
      byte_operands(node, places, x.reshape({rows, 1, 1, 1, deep}), w.reshape({1, 1, 1, deep, columns}));
  const DType dtype = places.quantized ? node.dtype(7) : i32;
  node.give(byte_convolution(operands, {}, {1, 1, 1}, dtype).reshape(Shape(sizes)));
}

void matmul_integer(OnnxNode& node) {
  if (fits_bytes(node, kIntegerPlaces)) return matmul_bytes(node, kIntegerPlaces);
  node.give(matmul(centered(node, 0, 2, i32, true), centered(node, 1, 3, i32, false)));
}

Tensor scale_in(const OnnxNode& node, std::size_t input, bool rows) {
  const Tensor scale = node.in(input).cast(f64);
  if (scale.size() == 1) return scale.reshape(Shape::scalar());
  return rows && scale.rank() == 1 ? scale.expand_dims(1) : scale;
}

void matmul_quantized(OnnxNode& node) {
  if (fits_bytes(node, kQuantizedPlaces)) return matmul_bytes(node, kQuantizedPlaces);
  const Tensor product = matmul(centered(node, 0, 2, i32, true), centered(node, 3, 5, i32, false)).cast(f64);
  const Tensor scaled = product * (scale_in(node, 1, true) * scale_in(node, 4, false)) / scale_in(node, 6, false);
  node.give(
      saturated(scaled, node.in(7).size() == 1 ? node.in(7).reshape(Shape::scalar()) : node.in(7), node.dtype(7)));
}

// Channels last, with three axes of places.
Tensor as_volume(const Tensor& x, std::size_t axes) {
  Tensor result = x;
  for (std::size_t i = axes; i < 3; ++i) result = result.expand_dims(1);
  return result;
}

void convolve_bytes(OnnxNode& node, const BytePlaces& places) {
  const std::size_t rank = node.rank(0), axes = rank - std::min<std::size_t>(2, rank);
  const Shape w = node.shape(places.w);
  if (axes < 1 || axes > 3) node.unsupported(fmt::format("a convolution of {} axes", axes));
  if (w.rank() != rank) node.invalid(fmt::format("a filter {}", w.to_string()));
  const OnnxWindow window = OnnxWindow::of(node, spatial_sizes(w), spatial_sizes(node.shape(0)));
  ByteWindow bytes{.groups = node.integer("group", 1)};
  std::array<std::int64_t, 3> sizes = {1, 1, 1};
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t axis = 3 - axes + i;
    bytes.stride[axis] = window.stride[i], bytes.dilation[axis] = window.dilation[i];
    bytes.before[axis] = window.before[i], sizes[axis] = window.positions[i];
  }
  const Tensor x = as_volume(node.value(0).as(channels_last(rank)), axes);
  Tensor filter = node.value(places.w).as(filter_last(rank));
  for (std::size_t i = axes; i < 3; ++i) filter = filter.expand_dims(0);
  const DType dtype = places.quantized ? node.dtype(7) : i32;
  Tensor y = byte_convolution(byte_operands(node, places, x, filter), bytes, sizes, dtype);
  std::vector<std::int64_t> shape = {y.shape()[0]};
  shape.insert(shape.end(), window.positions.begin(), window.positions.end());
  shape.push_back(y.shape()[4]);
  node.give(OnnxValue(y.reshape(Shape(shape)), channels_last(rank)));
}

void convolve_integer(OnnxNode& node) { convolve_bytes(node, kIntegerPlaces); }
void convolve_quantized(OnnxNode& node) { convolve_bytes(node, kQuantizedPlaces); }

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
