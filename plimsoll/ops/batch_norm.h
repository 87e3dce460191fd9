// Batch normalization, channels last: each channel to mean 0 and variance 1 over all other axes, then scaled and
// shifted; in training by the batch's own moments, else by moving averages of them.
//
//   Variable mean(zeros({32}), {.trainable = false}), variance(ones({32}), {.trainable = false});
//   batch_norm(x, gamma, beta, mean, variance, {.training = true})   // moves the averages, once
//   batch_norm(x, gamma, beta, mean, variance)                       // reads them
//   batch_norm(x, {}, {}, mean, variance, {.activation = "relu"})    // no gamma and beta; relu in the same pass
//   BatchNormResult r = batch_norm_training(x, gamma, beta);         // r.y, r.mean, r.variance; changes nothing
//
// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. The variance is that of the batch itself (divided by the
// number of elements), in y and in the average. An average becomes average * momentum + batch's * (1 - momentum), after
// everything that can fail, and is not touched by an empty batch. It happens here and now: never when a gradient is
// taken or a value recomputed. Fused relu has the bits of relu() of the result.
// Saved under a tape: x (shared), mean and deviation. Gradients of every order.
// Of floats; f16 and bf16 are computed in f32 and rounded once; averages may be f32 beside them.
// Throws InvalidArgument for parameters or averages of another shape or dtype, a momentum outside of [0, 1], a negative
// epsilon, and another activation; Disposed, OutOfMemory: then the averages are as they were.
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
