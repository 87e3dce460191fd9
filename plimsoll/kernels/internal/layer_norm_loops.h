// LayerNormLoops: the innermost loops of layer_norm.h and group_norm.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

template <class T>
struct LayerNormLoopsOf {
  double (*sum)(const T* x, std::int64_t n);
  double (*squares)(const T* x, std::int64_t n, T mean);  // Sum of (x - mean)^2.
  // y = (x - mean) rstd gamma + beta; gamma and beta may be null.
  void (*normalize)(const T* x, std::int64_t n, T mean, T rstd, const T* gamma, const T* beta, T* y);
  // sums[0] = sum of dy gamma, sums[1] = sum of dy gamma xhat, where xhat = (x - mean) rstd. Unless null,
  // dgamma += dy xhat and dbeta += dy (both or none).
  void (*gradient_sums)(const T* x, const T* dy, std::int64_t n, T mean, T rstd, const T* gamma, T* dgamma, T* dbeta,
                        double* sums);
  // dx = rstd (dy gamma - first - xhat second)
  void (*gradient)(const T* x, const T* dy, std::int64_t n, T mean, T rstd, const T* gamma, T first, T second, T* dx);
};

struct LayerNormLoops {
  LayerNormLoopsOf<float> f32;
  LayerNormLoopsOf<double> f64;
};

PLIMSOLL_LOOPS(LayerNormLoops, layer_norm_loops)

}  // namespace plimsoll::internal
