// Layer normalization: normalizes the last axes of each item to mean 0 and variance 1, then scales and shifts them.
//
//   layer_norm(x, gamma, beta)                       // x [8, 128, 256], gamma and beta [256]
//   layer_norm(x, gamma, beta, {.axis = 1})          // over [128, 256], the shape of gamma and beta then
//   layer_norm(x, {}, {}, {.epsilon = 1e-5})         // without gamma, beta or both
//
// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. Under a tape it saves x (which it shares), and mean and 1 /
// sqrt(variance + epsilon) of each item. Gradients of every order. Takes floats; f16 and bf16 are computed in f32 and
// rounded once. Throws InvalidArgument for an axis that does not exist, parameters of another shape, and an epsilon
// that is negative or NaN. Cost: memory speed; results do not depend on the number of threads.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct LayerNormOptions {
  double epsilon = 1e-3;
  std::int64_t axis = -1;  // The first normalized axis; all after it are normalized too.
};

PLIMSOLL_API Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                               const LayerNormOptions& options = {});

}  // namespace plimsoll
