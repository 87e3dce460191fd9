// Determinants of square matrices, by elimination with the largest pivot.
//
//   determinant(x, y, scratch);                 // x [5, 3, 3], y [5]
//
// Requires f32 or f64. Thread safety: any thread, with its own scratch. No allocation, never throws.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

PLIMSOLL_API std::size_t determinant_scratch_bytes(const Shape& x) noexcept;  // Aligned to 64 bytes.
PLIMSOLL_API void determinant(const ConstTensorView& x, const TensorView& y, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
