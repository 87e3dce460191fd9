// Bits of integers: and, or, exclusive or, shifts, not; with broadcasting.
//
//   bitwise(BitwiseOp::bit_and, a, b, out);
//
// Of every integer dtype, one for all. A shift by as many bits as there are, or more, gives 0; right shifts fill
// with zeros, of signed integers with the sign. Requires an output that does not overlap the operands, or is one of
// them of the same shape. Thread safety: any thread. No allocation, never throws.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

enum class BitwiseOp : unsigned char { bit_and, bit_or, bit_xor, shift_left, shift_right };

PLIMSOLL_API void bitwise(BitwiseOp op, const ConstTensorView& a, const ConstTensorView& b,
                          const TensorView& out) noexcept;

}  // namespace plimsoll::internal
