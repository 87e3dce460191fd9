// Window: how a window of a convolution or a pooling moves over images of [batch, rows, columns, channels].
//
//   Window window = {.row_stride = 2, .column_stride = 2, .top = 1, .bottom = 1, .left = 1, .right = 1};
//   window.positions_down(32, 3)      // 16: output rows of 32 input rows and a window of 3
//
// A window of `size` taps, `dilation` apart, covers (size - 1) * dilation + 1 elements. Padding surrounds the image:
// zeros for a convolution, nothing for a pooling. Requires strides and dilations >= 1, padding >= 0.
// Thread safety: a value.
#pragma once

#include <cstdint>

namespace plimsoll::internal {

struct Window {
  std::int64_t row_stride = 1, column_stride = 1;
  std::int64_t row_dilation = 1, column_dilation = 1;
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;

  // Positions along an axis of `size` elements, 0 when the window is larger than the padded axis.
  static constexpr std::int64_t positions(std::int64_t size, std::int64_t taps, std::int64_t stride,
                                          std::int64_t dilation, std::int64_t before, std::int64_t after) noexcept {
    const std::int64_t left_over = size + before + after - ((taps - 1) * dilation + 1);
    return left_over < 0 ? 0 : left_over / stride + 1;
  }
  constexpr std::int64_t positions_down(std::int64_t rows, std::int64_t taps) const noexcept {
    return positions(rows, taps, row_stride, row_dilation, top, bottom);
  }
  constexpr std::int64_t positions_across(std::int64_t columns, std::int64_t taps) const noexcept {
    return positions(columns, taps, column_stride, column_dilation, left, right);
  }
};

}  // namespace plimsoll::internal
