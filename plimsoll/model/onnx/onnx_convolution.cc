// Convolutions of sequences and images.
#include <fmt/format.h>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/model/onnx/onnx_window.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

// A sequence is an image of one row.
Tensor with_rows(const Tensor& x, std::size_t axis) { return x.expand_dims(static_cast<std::int64_t>(axis)); }

void convolve(OnnxNode& node) {
  const std::size_t rank = node.rank(0);
  if (rank != 3 && rank != 4)
    node.unsupported(fmt::format("a convolution of {} axes", rank - std::min<std::size_t>(2, rank)));
  const Shape x_shape = node.shape(0), w_shape = node.shape(1);
  if (w_shape.rank() != rank) node.invalid(fmt::format("a filter {} for {}", w_shape.to_string(), x_shape.to_string()));
  const std::vector<std::int64_t> lengths = spatial_sizes(x_shape);
  const OnnxWindow window = OnnxWindow::of(node, node.integers("kernel_shape", spatial_sizes(w_shape)), lengths);
  Tensor x = node.value(0).as(channels_last(rank)), filter = node.value(1).as(filter_last(rank));
  const bool same = window.is_padded(lengths) && window.is_same(lengths);
  if (!same && window.is_padded(lengths)) {
    Paddings paddings(rank, {0, 0});
    for (std::size_t i = 0; i < window.rank(); ++i) paddings[i + 1] = {window.before[i], window.after[i]};
    x = pad(x, paddings);
  }
  ConvOptions options{.padding = same ? "same" : "valid", .groups = node.integer("group", 1)};
  options.strides = {rank == 3 ? 1 : window.stride[0], window.stride.back()};
  options.dilations = {rank == 3 ? 1 : window.dilation[0], window.dilation.back()};
  if (rank == 3) x = with_rows(x, 1), filter = with_rows(filter, 0);
  Tensor y =
      node.has(2) ? conv2d_bias_activation(x, filter, node.in(2), "linear", options) : conv2d(x, filter, options);
  if (rank == 3) y = y.squeeze({1});
  node.give(OnnxValue(std::move(y), channels_last(rank)));
}

constexpr OnnxOperator kRows[] = {
    {"Conv", 1, kNewest, convolve},
};

}  // namespace

OnnxOperators onnx_convolution_operators() { return kRows; }

}  // namespace plimsoll
