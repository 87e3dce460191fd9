// Where a rectified result is above zero, in one bit per element: all that the gradient of a fused relu needs.
//
//   relu_mask(y, mask);                       // mask: relu_mask_bytes(y.size())
//   relu_mask_gradient(dy, mask, dx);         // dx = y > 0 ? dy : 0, the bits of BinaryOp::relu_grad; dx may be dy
//
// Requires f32 or f64. Thread safety: any thread. Cost: memory speed; no allocation, never throws.
#pragma once

#include <cstddef>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

// A 32nd of f32's bytes, in whole lines of 64.
PLIMSOLL_API std::size_t relu_mask_bytes(std::size_t elements) noexcept;

// `mask` is aligned to 4 bytes.
PLIMSOLL_API void relu_mask(const ConstTensorView& y, std::byte* mask) noexcept;
PLIMSOLL_API void relu_mask_gradient(const ConstTensorView& dy, const std::byte* mask, const TensorView& dx) noexcept;

}  // namespace plimsoll::internal
