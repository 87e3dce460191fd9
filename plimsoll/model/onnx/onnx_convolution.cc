// Convolutions of sequences, images and volumes, and transposed ones.
#include "plimsoll/model/onnx/onnx_convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
namespace {

using Integers = std::vector<std::int64_t>;

// Volumes: the images that a row of the filter sees, one row after the other.
Tensor convolve_volumes(const Tensor& x, const Tensor& filter, const OnnxConvolution& options) {
  const std::int64_t batch = x.shape()[0], taps = filter.shape()[0], reach = (taps - 1) * options.dilation[0] + 1;
  const std::int64_t depth = (x.shape()[1] - reach) / options.stride[0] + 1;
  const OnnxConvolution images{
      {options.stride[1], options.stride[2]}, {options.dilation[1], options.dilation[2]}, options.groups};
  Tensor total;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t first = tap * options.dilation[0];
    const Tensor seen =
        strided_slice(x, {kOpen, first}, {kOpen, first + (depth - 1) * options.stride[0] + 1}, {1, options.stride[0]});
    const Tensor rows = seen.reshape({batch * depth, x.shape()[2], x.shape()[3], x.shape()[4]});
    const Tensor part = convolve_places(rows, filter.slice({tap}, {1}).squeeze({0}), images);
    total = total.is_empty_handle() ? part : total + part;
  }
  return total.reshape({batch, depth, total.shape()[1], total.shape()[2], total.shape()[3]});
}

// With `between` zeros after each element of an axis but the last.
Tensor stretched(const Tensor& x, std::size_t axis, std::int64_t stride) {
  const std::int64_t length = x.shape()[axis];
  if (stride == 1 || length == 0) return x;
  Paddings paddings(x.rank() + 1, {0, 0});
  paddings[axis + 1] = {0, stride - 1};
  Integers sizes(x.shape().begin(), x.shape().end()), begin(x.rank(), 0), count(x.rank(), -1);
  sizes[axis] = length * stride;
  count[axis] = (length - 1) * stride + 1;
  return slice(pad(x.expand_dims(static_cast<std::int64_t>(axis) + 1), paddings).reshape(Shape(sizes)), begin, count);
}

// Padded, or cut where the padding is negative.
Tensor widened(const Tensor& x, std::size_t axis, std::int64_t before, std::int64_t after) {
  Tensor result = x;
  if (before < 0 || after < 0) {
    Integers begin(x.rank(), 0), count(x.shape().begin(), x.shape().end());
    begin[axis] = std::max<std::int64_t>(0, -before);
    count[axis] += std::min<std::int64_t>(0, before) + std::min<std::int64_t>(0, after);
    result = slice(result, begin, count);
  }
  Paddings paddings(x.rank(), {0, 0});
  paddings[axis] = {std::max<std::int64_t>(0, before), std::max<std::int64_t>(0, after)};
  return before > 0 || after > 0 ? pad(result, paddings) : result;
}

// Whether the padding is smaller than the window, so that none lies in the padding alone; else the image is padded.
bool is_covered(const OnnxWindow& window, std::size_t rank) {
  for (std::size_t i = 0; i < window.rank(); ++i)
    if (window.before[i] >= window.reach(i) || window.after[i] >= window.reach(i)) return false;
  return rank < 5;
}

// Whether a window sees one place, each place once, and all channels.
bool is_product(const OnnxWindow& window, const OnnxConvolution& options, const Shape& x) {
  if (options.groups != 1 || x.size() == 0) return false;
  for (std::size_t i = 0; i < window.rank(); ++i)
    if (window.size[i] != 1 || window.stride[i] != 1 || window.before[i] != 0 || window.after[i] != 0) return false;
  return true;
}

void convolve(OnnxNode& node) { node.give(convolve_node(node, node.value(0), node.value(1), node.in_or(2))); }

// What a transposed convolution's attributes say of one axis.
struct TransposedAxis {
  std::int64_t taps, stride, dilation, before = 0, after = 0, extra = 0;
};

TransposedAxis transposed_axis(const OnnxNode& node, std::size_t i, std::int64_t taps, std::int64_t length) {
  const auto at = [&](const char* name, std::size_t index, std::int64_t missing) {
    const Integers values = node.integers(name);
    return index < values.size() ? values[index] : missing;
  };
  const std::size_t axes = node.rank(0) - 2;
  TransposedAxis axis{taps,
                      at("strides", i, 1),
                      at("dilations", i, 1),
                      at("pads", i, 0),
                      at("pads", i + axes, 0),
                      at("output_padding", i, 0)};
  const std::int64_t most = std::int64_t{1} << 30;
  for (const std::int64_t value : {axis.stride, axis.dilation, axis.before, axis.after, axis.extra})
    if (value < 0 || value > most) node.invalid(fmt::format("a {} among strides, dilations and padding", value));
  if (axis.stride < 1 || axis.dilation < 1) node.invalid("strides and dilations are 1 or more");
  const std::int64_t whole = (length - 1) * axis.stride + (taps - 1) * axis.dilation + 1 + axis.extra;
  const std::string automatic = node.text("auto_pad", "NOTSET");
  std::int64_t wanted = at("output_shape", node.integers("output_shape").size() > axes ? i + 2 : i, -1);
  if (wanted < 0 && (automatic == "SAME_UPPER" || automatic == "SAME_LOWER")) wanted = length * axis.stride;
  if (wanted >= 0) {
    const std::int64_t total = whole - wanted;
    axis.before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    axis.after = total - axis.before;
  }
  return axis;
}

// Zeros between the elements, then a convolution with the filter turned around.
void convolve_transposed(OnnxNode& node) {
  const std::size_t rank = node.rank(0), axes = rank - std::min<std::size_t>(2, rank);
  if (axes < 1 || axes > 3) node.unsupported(fmt::format("a convolution of {} axes", axes));
  const Shape w = node.shape(1);  // [channels, channels out / groups, places ...]
  const std::int64_t groups = node.integer("group", 1);
  if (w.rank() != rank || groups < 1 || w[0] % groups != 0) node.invalid(fmt::format("a filter {}", w.to_string()));
  if (!node.integers("output_shape").empty()) node.unsupported("output_shape");
  Tensor x = node.value(0).as(channels_last(rank));
  OnnxConvolution options{Integers(axes, 1), {}, groups};
  for (std::size_t i = 0; i < axes; ++i) {
    const TransposedAxis axis = transposed_axis(node, i, w[i + 2], node.shape(0)[i + 2]);
    const std::int64_t reach = (axis.taps - 1) * axis.dilation;
    x = widened(stretched(x, i + 1, axis.stride), i + 1, reach - axis.before, reach - axis.after + axis.extra);
    options.dilation.push_back(axis.dilation);
  }
  // [groups, channels, out, places] to [places, channels, groups out], places backwards.
  Integers parts = {groups, w[0] / groups, w[1]}, order, turned, sizes;
  for (std::size_t i = 0; i < axes; ++i) {
    parts.push_back(w[i + 2]);
    sizes.push_back(w[i + 2]);
    order.push_back(static_cast<std::int64_t>(i) + 3);
    turned.push_back(static_cast<std::int64_t>(i));
  }
  order.insert(order.end(), {1, 0, 2});
  sizes.insert(sizes.end(), {w[0] / groups, groups * w[1]});
  const Tensor filter = reverse(transpose(node.in(1).reshape(Shape(parts)), order), Axes(turned)).reshape(Shape(sizes));
  Tensor y = convolve_places(x, filter, options);
  if (node.has(2)) y = y + node.in(2);
  node.give(OnnxValue(std::move(y), channels_last(rank)));
}

constexpr OnnxOperator kConvolutionRows[] = {
    {"Conv", 1, kNewest, convolve},
    {"ConvTranspose", 1, kNewest, convolve_transposed},
};

}  // namespace

Tensor convolve_places(const Tensor& x, const Tensor& filter, const OnnxConvolution& options) {
  if (x.rank() == 5) return convolve_volumes(x, filter, options);
  ConvOptions with{.groups = options.groups};
  if (!options.around.empty()) {
    with.around.emplace();
    std::copy(options.around.begin(), options.around.end(),
              with.around->end() - static_cast<long>(options.around.size()));
  }
  if (x.rank() == 4) {
    with.strides = {options.stride[0], options.stride[1]};
    with.dilations = {options.dilation[0], options.dilation[1]};
    return conv2d(x, filter, with);
  }
  with.strides = {1, options.stride[0]};  // A sequence is an image of one row.
  with.dilations = {1, options.dilation[0]};
  return conv2d(x.expand_dims(1), filter.expand_dims(0), with).squeeze({1});
}

OnnxValue convolve_node(const OnnxNode& node, const OnnxValue& image, const OnnxValue& weights, const Tensor& bias) {
  const Shape x_shape = image.shape(), w_shape = weights.shape();
  const std::size_t rank = x_shape.rank();
  if (rank < 3 || rank > 5) node.unsupported(fmt::format("operands of {} axes", rank));
  if (w_shape.rank() != rank) node.invalid(fmt::format("a filter {} for {}", w_shape.to_string(), x_shape.to_string()));
  const Integers lengths = spatial_sizes(x_shape);
  const OnnxWindow window = OnnxWindow::of(node, node.integers("kernel_shape", spatial_sizes(w_shape)), lengths);
  Tensor x = image.as(channels_last(rank));
  const Tensor& filter = weights.as(filter_last(rank));
  OnnxConvolution options{window.stride, window.dilation, node.integer("group", 1)};
  const auto finished = [&](const Tensor& y) {  // Plans make one operation of a convolution, its bias and activation.
    return OnnxValue(bias.is_empty_handle() ? y : y + bias, channels_last(rank));
  };
  if (is_product(window, options, x_shape))  // Each place by itself: rows times a matrix.
    return finished(matmul(x, filter.reshape({filter.shape()[rank - 2], filter.shape()[rank - 1]})));
  if (window.is_padded(lengths) && is_covered(window, rank)) {
    for (std::size_t i = 0; i < window.rank(); ++i)
      options.around.insert(options.around.end(), {window.before[i], window.after[i]});
  } else if (window.is_padded(lengths)) {
    Paddings paddings(rank, {0, 0});
    for (std::size_t i = 0; i < window.rank(); ++i) paddings[i + 1] = {window.before[i], window.after[i]};
    x = pad(x, paddings);
  }
  return finished(convolve_places(x, filter, options));
}

OnnxOperators onnx_convolution_operators() { return kConvolutionRows; }

}  // namespace plimsoll::internal
