// Bits of integers: and, or, exclusive or, shifts, with broadcasting.
//
//   bitwise(BitwiseOp::shift_left, x, constant({1, 2}))
//
// Of every integer dtype, one for both. They have no gradient. Throws InvalidArgument for other dtypes and shapes.
#pragma once

#include "plimsoll/kernels/bitwise.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

Tensor bitwise(BitwiseOp op, const Tensor& a, const Tensor& b);

// The same bits as another dtype of the same size.
Tensor bit_cast_to(const Tensor& x, DType dtype);

}  // namespace plimsoll::internal
