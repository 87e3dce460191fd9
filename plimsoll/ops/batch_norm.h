// Batch normalization, channels last: normalizes each channel to mean 0 and variance 1 over all other axes, then scales
// and shifts it; in training with the batch's own moments, otherwise with moving averages of them.
//
//   Variable mean(zeros({32}), {.trainable = false}), variance(ones({32}), {.trainable = false});
//   batch_norm(x, gamma, beta, mean, variance, {.training = true})   // updates the averages, once
//   batch_norm(x, gamma, beta, mean, variance)                       // reads them
//   batch_norm(x, {}, {}, mean, variance, {.activation = "relu"})    // no gamma and beta; relu in the same pass
//   BatchNormResult r = batch_norm_training(x, gamma, beta);         // r.y, r.mean, r.variance; changes nothing
//
// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. The variance is that of the batch itself (divided by the
// number of elements), in y and in the average. An average becomes average * momentum + batch's * (1 - momentum), after
// everything that can fail; an empty batch leaves it unchanged. This happens only in this call: never when a gradient
// is computed or a value recomputed. Fused relu gives the same bits as relu() of the result.
// Saved under a tape: x (shared), mean and deviation. Gradients of every order.
// Takes floats; f16 and bf16 are computed in f32 and rounded once; the averages may be f32 then.
// Throws InvalidArgument for parameters or averages of another shape or dtype, a momentum outside [0, 1], a negative
// epsilon, and another activation; Disposed and OutOfMemory. The averages are then unchanged.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct BatchNormOptions {
  bool training = false;
  double momentum = 0.99;
  double epsilon = 1e-3;
  std::string activation = "linear";  // Or "relu".
};

struct BatchNormResult {
  Tensor y, mean, variance;  // mean and variance are the batch's: [channels].
};

PLIMSOLL_API Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Variable& moving_mean,
                               const Variable& moving_variance, const BatchNormOptions& options = {});

PLIMSOLL_API BatchNormResult batch_norm_training(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                                 const BatchNormOptions& options = {});
PLIMSOLL_API Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& mean,
                                         const Tensor& variance, const BatchNormOptions& options = {});

}  // namespace plimsoll
