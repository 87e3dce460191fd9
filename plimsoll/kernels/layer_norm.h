// Layer normalization: every row is normalized to mean 0 and variance 1, then scaled and shifted; and its gradient.
//
//   layer_norm(x, 256, gamma, beta, 1e-3, {.y = y, .mean = mean, .rstd = rstd});      // x [8, 128, 256], gamma [256]
//   layer_norm_gradient(x, 256, gamma, mean, rstd, dy, {dx, dgamma, dbeta}, scratch);
//
// y = (x - mean) rstd gamma + beta, rstd = 1 / sqrt(variance + epsilon), the variance that of the row divided by its
// length (two passes over the row, which stays in cache). A row is the last k axes together: `columns` elements.
// Not centered, the mean counts as 0: the row is divided by the root of the mean of its squares (RMS normalization); a
// gradient without a mean is that one's. Requires f32 or f64, one dtype, columns > 0. Views without an address are
// skipped.
// Thread safety: any thread, with its own scratch. Cost: memory speed; no allocation, never throws, split by shape
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct LayerNormOutputs {
  TensorView y;           // As x, and may be x.
  TensorView mean, rstd;  // [rows]: what the gradient needs.
};
PLIMSOLL_API void layer_norm(const ConstTensorView& x, std::int64_t columns, const ConstTensorView& gamma,
                             const ConstTensorView& beta, double epsilon, const LayerNormOutputs& out,
                             bool centered = true) noexcept;

struct LayerNormGradients {
  TensorView x;            // As x; may be dy.
  TensorView gamma, beta;  // [columns]
};
PLIMSOLL_API std::size_t layer_norm_gradient_scratch_bytes(std::int64_t rows, std::int64_t columns,
                                                           DType dtype) noexcept;

// Scratch of layer_norm_gradient_scratch_bytes(), aligned to 64 bytes; none is needed without gamma and beta.
PLIMSOLL_API void layer_norm_gradient(const ConstTensorView& x, std::int64_t columns, const ConstTensorView& gamma,
                                      const ConstTensorView& mean, const ConstTensorView& rstd,
                                      const ConstTensorView& dy, const LayerNormGradients& out,
                                      std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
