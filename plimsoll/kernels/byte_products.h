// Convolutions and products of bytes that stand for numbers by a scale and a zero point: operands stay bytes.
//
//   byte_convolution(rule, {.x = x, .filter = w, .x_zero = zx, .w_zero = zw}, y);     // y of i32: exact sums
//   byte_convolution(rule, {..., .x_scale = sx, .w_scale = sw, .y_scale = sy, .y_zero = zy, .bias = b}, y);  // y bytes
//
// x [batch, 3 axes of places, channels], filter [3 axes of taps, channels / groups, channels out], y [batch, 3 axes of
// places, channels out]; a product of matrices is one without places. y = sum of (x - x_zero) (w - w_zero), what lies
// in the padding counting as x_zero; with scales, y = round((sum + bias) w_scale x_scale / y_scale) + y_zero, halves to
// even, held to what the dtype has. Zeros and the bias are of i32, scales of f32: one element, or one for each channel
// out where the name begins with w. Requires x, filter and bytes of y to be u8 or i8. Thread safety: any thread. No
// allocation, no scratch, never throws; results do not depend on the number of threads.
#pragma once

#include <array>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct ByteWindow {
  std::array<std::int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1}, before{0, 0, 0};
  std::int64_t groups = 1;
  bool operator==(const ByteWindow&) const = default;
};

struct ByteOperands {
  ConstTensorView x, filter, x_zero, w_zero;
  ConstTensorView x_scale, w_scale, y_scale, y_zero;  // Views without an address: y is the sums.
  ConstTensorView bias;                               // Optional, beside scales.
};

PLIMSOLL_API void byte_convolution(const ByteWindow& window, const ByteOperands& in, const TensorView& y) noexcept;

}  // namespace plimsoll::internal
