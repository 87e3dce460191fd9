// Rows of a tensor combined with others at indices: products, maxima, minima.
//
//   scatter_reduce(ScatterReduction::maximum, updates, indices, out);   // out[indices[i]] = max(itself, updates[i])
//
// In order of i for each row. Requires f32, f64, i32 or i64; indices of i32 or i64 within range; updates with the shape
// of the indices, then that of a row. Thread safety: any thread. No allocation, never throws.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

enum class ScatterReduction : unsigned char { multiply, maximum, minimum };

PLIMSOLL_API void scatter_reduce(ScatterReduction reduction, const ConstTensorView& updates,
                                 const ConstTensorView& indices, const TensorView& out) noexcept;

}  // namespace plimsoll::internal
