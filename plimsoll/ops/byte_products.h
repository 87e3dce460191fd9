// Convolutions and products of bytes with scales and zero points; weights stay bytes, however large they are.
//
//   byte_convolution({x, filter, x_zero, w_zero}, window, {1, 8, 8}, i32)                  // Exact sums.
//   byte_convolution({x, filter, x_zero, w_zero, x_scale, w_scale, y_scale, y_zero, bias}, window, {1, 8, 8}, u8)
//
// Operands as in kernels/byte_products.h; the bias may be left out. `places`: sizes of the result between batch and
// channels. No scratch, no gradient. Throws InvalidArgument for dtypes and shapes that do not go together.
#pragma once

#include <array>
#include <vector>

#include "plimsoll/kernels/byte_products.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

Tensor byte_convolution(const std::vector<Tensor>& operands, const ByteWindow& window,
                        const std::array<std::int64_t, 3>& places, DType dtype);

}  // namespace plimsoll::internal
