// Signals: discrete Fourier transforms, whole and of windows; and products along an axis.
//
// A transform is a product with a matrix of cosines and sines, which is made while the graph is built.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/determinant.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kLongest = 8192;  // A transform's matrix has the square of that.

struct Transform {
  std::int64_t length = 0;
  bool inverse = false, onesided = false;
};

// cos and sin of 2 pi n k / length, [rows n, columns k], each column times factor(k).
template <class F>
Tensor waves(bool sine, std::int64_t rows, std::int64_t columns, std::int64_t length, DType dtype, F factor) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t k = 0; k < columns; ++k) {
      const double turn = 2 * std::numbers::pi * double(n * k % length) / double(length);
      values.push_back((sine ? std::sin(turn) : std::cos(turn)) * factor(n, k));
    }
  const TraceWith nobody(nullptr);
  return from_vector(values, {rows, columns}).cast(dtype);
}

// The last axis cut, or padded with zeros, to a size.
Tensor sized(const Tensor& x, std::int64_t size) {
  const std::int64_t have = x.shape().back();
  std::vector<std::int64_t> begin(x.rank(), 0), count(x.rank(), -1);
  count.back() = std::min(size, have);
  Paddings paddings(x.rank(), {0, 0});
  paddings.back() = {0, std::max<std::int64_t>(0, size - have)};
  return pad(have > size ? slice(x, begin, count) : x, paddings);
}

// Parts along the last axis of x [.., n, 1 or 2], over the axis before it.
Tensor transformed(const OnnxNode& node, const Tensor& x, const Transform& transform) {
  const std::int64_t n = transform.length, half = n / 2 + 1;
  if (n < 1 || n > kLongest) node.unsupported(fmt::format("a transform of {}; at most {} are offered", n, kLongest));
  if (x.shape().back() != 1 && x.shape().back() != 2) node.invalid("the last axis has one or two parts");
  const bool to_real = transform.inverse && transform.onesided;
  const std::int64_t in = to_real ? half : n, out = transform.onesided && !transform.inverse ? half : n;
  const std::vector<Tensor> parts = unstack(x, -1);
  const Tensor real = sized(parts[0], in), other = parts.size() == 2 ? sized(parts[1], in) : Tensor();
  // Of half a spectrum, all but the ends count twice.
  const auto factor = [&](std::int64_t row, std::int64_t) {
    const double twice = to_real && row != 0 && 2 * row != n ? 2 : 1;
    return transform.inverse ? twice / double(n) : 1.0;
  };
  const Tensor c = waves(false, in, out, n, x.dtype(), factor), s = waves(true, in, out, n, x.dtype(), factor);
  const auto with = [&](const Tensor& part, const Tensor& wave) { return matmul(part, wave); };
  // Forwards a turn is e^-i, backwards e^i.
  const double sign = transform.inverse ? -1 : 1;
  Tensor y = with(real, c);
  if (!other.is_empty_handle()) y = y + with(other, s) * sign;
  if (to_real) return y.expand_dims(-1);
  Tensor z = with(real, s) * -sign;
  if (!other.is_empty_handle()) z = z + with(other, c);
  return stack({y, z}, -1);
}

// An axis brought to the place before the last, or back.
Tensor moved(const Tensor& x, std::size_t from, std::size_t to) {
  if (from == to) return x;
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(static_cast<std::int64_t>(i));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
  return transpose(x, order);
}

void fourier(OnnxNode& node) {
  const DType given = node.dtype(0);
  const Tensor x = is_half(given) ? node.in(0).cast(f32) : node.in(0);
  if (x.rank() < 2) node.invalid("it takes [.., places, parts]");
  const std::int64_t asked = node.version() < 20 ? node.integer("axis", 1) : node.has(2) ? node.integer_in(2) : -2;
  const std::size_t axis = resolve_axis(asked, x.rank(), "DFT");
  if (axis + 1 == x.rank()) node.invalid("the axis of the parts");
  Transform transform{.inverse = node.integer("inverse", 0) != 0, .onesided = node.integer("onesided", 0) != 0};
  const std::int64_t have = x.shape()[axis];
  transform.length = node.has(1) ? node.integer_in(1) : transform.inverse && transform.onesided ? 2 * (have - 1) : have;
  const Tensor y = transformed(node, moved(x, axis, x.rank() - 2), transform);
  node.give(moved(y, x.rank() - 2, axis).cast(given));
}

void fourier_of_frames(OnnxNode& node) {
  const DType given = node.dtype(0);
  Tensor x = is_half(given) ? node.in(0).cast(f32) : node.in(0);
  if (x.rank() == 2) x = x.expand_dims(2);
  if (x.rank() != 3) node.invalid("it takes [batch, places, parts]");
  const std::int64_t step = node.integer_in(1), places = x.shape()[1];
  const std::int64_t length = node.has(3) ? node.integer_in(3) : node.has(2) ? node.shape(2)[0] : places;
  if (step < 1 || length < 1 || length > places)
    node.invalid(fmt::format("frames of {} every {} of {} places", length, step, places));
  const std::int64_t frames = (places - length) / step + 1;
  std::vector<std::int64_t> where;
  for (std::int64_t frame = 0; frame < frames; ++frame)
    for (std::int64_t i = 0; i < length; ++i) where.push_back(frame * step + i);
  Tensor cut = gather(x, constant_numbers(where), 1).reshape({x.shape()[0], frames, length, x.shape()[2]});
  if (node.has(2)) cut = cut * node.in(2).cast(x.dtype()).reshape({length, 1});
  const bool onesided = node.integer("onesided", 1) != 0;
  node.give(transformed(node, cut, {.length = length, .onesided = onesided}).cast(given));
}

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Triangles over the bins of a spectrum, evenly spaced on the mel scale.
void mel_weights(OnnxNode& node) {
  const std::int64_t bins = node.integer_in(0), length = node.integer_in(1);
  const double rate = node.real_in(2), low = to_mel(node.real_in(3)), high = to_mel(node.real_in(4));
  const auto type = static_cast<std::int32_t>(node.integer("output_datatype", onnx::kFloat));
  const std::optional<DType> dtype = onnx::dtype_of(type);
  if (!dtype) node.unsupported("the element type " + onnx::element_type_name(type));
  if (bins < 1 || bins > 1 << 16 || length < 1 || length > 1 << 20 || !(rate > 0))
    node.invalid(fmt::format("{} bins of a transform of {} at {} Hz", bins, length, rate));
  const std::int64_t rows = length / 2 + 1;
  const auto bin = [&](std::int64_t i) {
    const double hertz = to_hertz(low + double(i) * (high - low) / double(bins + 2));
    return static_cast<std::int64_t>(std::floor(double(length + 1) * hertz / rate));
  };
  std::vector<double> weights(static_cast<std::size_t>(rows * bins), 0.0);
  const auto set = [&](std::int64_t row, std::int64_t column, double value) {
    if (row >= 0 && row < rows) weights[static_cast<std::size_t>(row * bins + column)] = value;
  };
  for (std::int64_t i = 0; i < bins; ++i) {
    const std::int64_t left = bin(i), top = bin(i + 1), right = bin(i + 2);
    if (top == left) set(top, i, 1);
    for (std::int64_t row = left; row <= top && top > left; ++row) set(row, i, double(row - left) / double(top - left));
    for (std::int64_t row = top; row < right; ++row) set(row, i, double(right - row) / double(right - top));
  }
  node.give(from_vector(weights, {rows, bins}).cast(*dtype));
}

// Each element times those before it: by one, two, four ... places, so in a few steps.
void running_product(OnnxNode& node) {
  Tensor x = node.in(0);
  const std::size_t axis = resolve_axis(node.integer_in(1), x.rank(), "CumProd");
  const std::int64_t size = x.shape()[axis];
  const Axes along({static_cast<std::int64_t>(axis)});
  const bool backwards = node.integer("reverse", 0) != 0;
  const DType given = x.dtype();
  if (backwards) x = reverse(x, along);
  const auto later = [&](const Tensor& t, std::int64_t by) {  // Ones come in from the front.
    std::vector<std::int64_t> begin(t.rank(), 0), count(t.rank(), -1);
    count[axis] = size - by;
    Paddings paddings(t.rank(), {0, 0});
    paddings[axis] = {by, 0};
    return pad(slice(t, begin, count), paddings, 1);
  };
  if (node.integer("exclusive", 0) != 0 && size > 0) x = later(x, 1);
  for (std::int64_t by = 1; by < size; by *= 2) x = x * later(x, by);
  node.give((backwards ? reverse(x, along) : x).cast(given));
}

void determinant_of(OnnxNode& node) {
  const DType given = node.dtype(0);
  node.give(determinant(is_half(given) ? node.in(0).cast(f32) : node.in(0)).cast(given));
}

constexpr OnnxOperator kSignalRows[] = {
    {"CumProd", 26, kNewest, running_product, kOperand1},
    {"DFT", 17, kNewest, fourier, kOperand1 | kOperand2},
    {"Det", 11, kNewest, determinant_of},
    {"MelWeightMatrix", 17, kNewest, mel_weights, kOperand0 | kOperand1 | kOperand2 | kOperand3 | kOperand4},
    {"STFT", 17, kNewest, fourier_of_frames, kOperand1 | kOperand3},
};

}  // namespace

OnnxOperators onnx_signal_operators() { return kSignalRows; }

}  // namespace plimsoll::internal
