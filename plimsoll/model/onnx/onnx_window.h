// OnnxWindow: how a window of a convolution or a pooling of ONNX moves over the axes after batch and channels.
//
//   const OnnxWindow window = OnnxWindow::of(node, {3, 3}, {32, 32});
//   window.before[0], window.after[0], window.positions[0]
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/model/onnx/onnx_node.h"

namespace plimsoll::internal {

struct OnnxWindow {
  std::vector<std::int64_t> size, stride, dilation;  // For each axis, as what follows.
  std::vector<std::int64_t> before, after;           // Padding. `after` is what the file says.
  std::vector<std::int64_t> positions;               // Of the window: sizes of the result.

  std::size_t rank() const noexcept { return size.size(); }
  std::int64_t reach(std::size_t axis) const { return (size[axis] - 1) * dilation[axis] + 1; }
  // Padding at the end so that all positions are inside; negative when the last elements are never read.
  std::int64_t needed_after(std::size_t axis, std::int64_t length) const {
    return (positions[axis] - 1) * stride[axis] + reach(axis) - length - before[axis];
  }
  bool is_dilated() const;
  bool is_padded(const std::vector<std::int64_t>& lengths) const;

  // From the attributes strides, dilations, pads, auto_pad, ceil_mode. Throws InvalidArgument.
  static OnnxWindow of(const OnnxNode& node, const std::vector<std::int64_t>& size,
                       const std::vector<std::int64_t>& lengths);
};

// Sizes after batch and channels, in the file's order.
std::vector<std::int64_t> spatial_sizes(const Shape& shape);

}  // namespace plimsoll::internal
