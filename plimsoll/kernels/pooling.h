// Maximum and average pooling of f32 and f64 images [batch, rows, columns, channels], and their gradients.
//
//   Pooling pool = {2, 2, {.row_stride = 2, .column_stride = 2}};
//   max_pool(x, y, pool, positions);                  // x [8, 28, 28, 6], y [8, 14, 14, 6]
//   max_pool_gradient(dy, positions, dx, pool);
//
// Padding is not part of a window: it never is the maximum and is not counted in the average. A window with nothing but
// padding yields the lowest value (-infinity) or 0, and its gradient is dropped. NaN is the maximum; among equals the
// first in order of rows and columns, which alone gets the gradient.
// The gradient of a maximum needs neither x nor y, only the position of the maximum in its window: 1, 2, 4 or 8 bits
// per output for windows of up to 2, 4, 16 or 256 taps, 32 bits above.
// Thread safety: any thread. Cost: no allocation, never throws; cut by shape alone, so results do not depend on the
// number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/kernels/convolution_window.h"

namespace plimsoll::internal {

struct Pooling {
  std::int64_t rows = 1, columns = 1;  // The window's size.
  Window window;
};

// f32 and f64; other dtypes are converted by the caller.
PLIMSOLL_API bool is_pooling_supported(DType dtype) noexcept;

// Bytes of the positions of the maxima of an output of this shape.
PLIMSOLL_API std::size_t max_pool_positions_bytes(const Shape& y, const Pooling& pooling) noexcept;

// All require y (or dy) with the batch and channels of x (or dx) and as many rows and columns as the window has
// positions; one dtype, no overlap. The output is overwritten.

// `positions` is null when no gradient is needed, else max_pool_positions_bytes() aligned to 4 bytes.
PLIMSOLL_API void max_pool(const ConstTensorView& x, const TensorView& y, const Pooling& pooling,
                           std::byte* positions) noexcept;
PLIMSOLL_API void max_pool_gradient(const ConstTensorView& dy, const std::byte* positions, const TensorView& dx,
                                    const Pooling& pooling) noexcept;

// y[i] = x at the position of maximum i: the gradient of max_pool_gradient().
PLIMSOLL_API void max_pool_take(const ConstTensorView& x, const std::byte* positions, const TensorView& y,
                                const Pooling& pooling) noexcept;

PLIMSOLL_API void average_pool(const ConstTensorView& x, const TensorView& y, const Pooling& pooling) noexcept;
PLIMSOLL_API void average_pool_gradient(const ConstTensorView& dy, const TensorView& dx,
                                        const Pooling& pooling) noexcept;

}  // namespace plimsoll::internal
