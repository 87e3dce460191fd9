// GroupNormLoops: the innermost loops of group_norm.h, over `rows` dense rows of n channels, one table per instruction
// set, as in loops.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

template <class T>
struct GroupNormLoopsOf {
  // Each adds to sums of channels: of x; of (x - mean)^2; of dy and of dy (x - mean) rstd.
  void (*add)(const T* x, std::int64_t rows, std::int64_t n, T* sums);
  void (*add_squares)(const T* x, std::int64_t rows, std::int64_t n, const T* mean, T* sums);
  void (*add_slopes)(const T* x, const T* dy, std::int64_t rows, std::int64_t n, const T* mean, const T* rstd, T* first,
                     T* second);
  // y = (x - mean) factor + shift
  void (*normalize)(const T* x, std::int64_t rows, std::int64_t n, const T* mean, const T* factor, const T* shift,
                    T* y);
  // dx = dy factor - first - (x - mean) second
  void (*gradient)(const T* x, const T* dy, std::int64_t rows, std::int64_t n, const T* mean, const T* factor,
                   const T* first, const T* second, T* dx);
};

struct GroupNormLoops {
  GroupNormLoopsOf<float> f32;
  GroupNormLoopsOf<double> f64;
};

PLIMSOLL_LOOPS(GroupNormLoops, group_norm_loops)

}  // namespace plimsoll::internal
