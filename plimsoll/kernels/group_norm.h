// Group normalization, channels last: normalizes each group of channels of each item to mean 0 and variance 1, then
// scales and shifts each channel; and its gradient.
//
//   group_norm(x, 8, gamma, beta, 1e-3, {y, mean, rstd}, scratch);   // x [4, 32, 32, 64]: 8 groups of 8 channels
//   group_norm_gradient(x, 8, gamma, mean, rstd, dy, {dx, dgamma, dbeta}, scratch);
//
// y = (x - mean) rstd gamma + beta with the mean and variance over all positions and the group's channels. As many
// groups as channels is instance normalization. Requires f32 or f64, one dtype, channels a multiple of the groups.
// Views without an address are skipped; y may be x, and dx may be dy.
// Thread safety: any thread, with its own scratch. Cost: two reads and a write; items of the batch run in parallel; no
// allocation, never throws, split by shape only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct GroupNormOutputs {
  TensorView y;
  TensorView mean, rstd;  // [batch, groups]: what the gradient needs.
};
struct GroupNormGradients {
  TensorView x;
  TensorView gamma, beta;  // [channels]
};

// For both functions. Aligned to 64 bytes.
PLIMSOLL_API std::size_t group_norm_scratch_bytes(const Shape& x, DType dtype) noexcept;

PLIMSOLL_API void group_norm(const ConstTensorView& x, std::int64_t groups, const ConstTensorView& gamma,
                             const ConstTensorView& beta, double epsilon, const GroupNormOutputs& out,
                             std::span<std::byte> scratch) noexcept;

PLIMSOLL_API void group_norm_gradient(const ConstTensorView& x, std::int64_t groups, const ConstTensorView& gamma,
                                      const ConstTensorView& mean, const ConstTensorView& rstd,
                                      const ConstTensorView& dy, const GroupNormGradients& out,
                                      std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
