// RMS normalization: the last axes of each item divided by the root of the mean of their squares, then scaled.
//
//   rms_norm(x, gamma)                               // x [8, 128, 256], gamma [256]
//   rms_norm(x, {}, {.epsilon = 1e-6, .axis = 1})    // over [128, 256], without gamma
//
// y = x / sqrt(mean(x^2) + epsilon) * gamma. Under a tape it saves x (which it shares) and one number for each item.
// Gradients of every order. Of floats; f16 and bf16 are computed in f32 and rounded once. Throws InvalidArgument for an
// axis that is not there, a gamma of another shape, and an epsilon that is negative or NaN. Cost: memory speed; results
// do not depend on the number of threads.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct RmsNormOptions {
  double epsilon = 1e-6;
  std::int64_t axis = -1;  // The first that is normalized; all after it are too.
};

PLIMSOLL_API Tensor rms_norm(const Tensor& x, const Tensor& gamma = {}, const RmsNormOptions& options = {});

}  // namespace plimsoll
