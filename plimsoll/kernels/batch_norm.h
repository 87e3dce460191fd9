// Batch normalisation over all axes but the last, of f32 and f64, and its gradient.
//
//   batch_norm_training(x, {&gamma, &beta}, y, {mean, variance, rstd}, {.epsilon = 1e-3, .relu = true}, scratch);
//   batch_norm_gradient(x, dy, mean, rstd, {&gamma, &beta}, true, {dx, dgamma, dbeta}, scratch);  // relu was fused
//   batch_norm_apply(x, mean, rstd, {&gamma, &beta}, true, y, scratch);                          // y again, to the bit
//   batch_norm_inference(x, mean, variance, {&gamma, &beta}, y, {}, scratch);
//
// y = (x - mean) * (gamma / sqrt(variance + epsilon)) + beta, per channel; the variance is that of the batch itself
// (divided by n). A fused relu returns exactly the bits of relu() on the unfused result. The gradient needs x, mean and
// rstd; it recomputes where a fused relu was above zero. Means and variances are computed in two steps per block of 64
// rows and merged in f64: no cancellation, one pass over memory. Thread safety: any thread, with its own scratch. Cost:
// no allocation, never throws; split by shape only, so results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct BatchNormSettings {
  double epsilon = 1e-3;
  bool relu = false;
};

// [channels] each. Null: 1 and 0.
struct BatchNormParameters {
  const ConstTensorView* gamma = nullptr;
  const ConstTensorView* beta = nullptr;
};

// [channels] each, of x's dtype: rstd is 1 / sqrt(variance + epsilon). Without rows mean and variance are 0.
struct BatchNormMoments {
  TensorView mean, variance, rstd;
};

struct BatchNormGradients {
  TensorView dx, dgamma, dbeta;
};

// Bytes of scratch for all of them: about 300 per channel.
PLIMSOLL_API std::size_t batch_norm_scratch_bytes(const Shape& x, DType dtype) noexcept;

// All require rank > 0, one dtype, and scratch of batch_norm_scratch_bytes() aligned to 64 bytes. y may be x.
PLIMSOLL_API void batch_norm_training(const ConstTensorView& x, const BatchNormParameters& parameters,
                                      const TensorView& y, const BatchNormMoments& moments,
                                      const BatchNormSettings& options, std::span<std::byte> scratch) noexcept;
PLIMSOLL_API void batch_norm_inference(const ConstTensorView& x, const ConstTensorView& mean,
                                       const ConstTensorView& variance, const BatchNormParameters& parameters,
                                       const TensorView& y, const BatchNormSettings& options,
                                       std::span<std::byte> scratch) noexcept;

// The result of batch_norm_training() again, from its moments.
PLIMSOLL_API void batch_norm_apply(const ConstTensorView& x, const ConstTensorView& mean, const ConstTensorView& rstd,
                                   const BatchNormParameters& parameters, bool relu, const TensorView& y,
                                   std::span<std::byte> scratch) noexcept;

// The gradient of batch_norm_training(). Without relu beta is not read. dx may be x or dy.
PLIMSOLL_API void batch_norm_gradient(const ConstTensorView& x, const ConstTensorView& dy, const ConstTensorView& mean,
                                      const ConstTensorView& rstd, const BatchNormParameters& parameters, bool relu,
                                      const BatchNormGradients& gradients, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
