// AttentionLoops: what attention does with rows of scores.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

template <class T>
struct AttentionLoopsOf {
  // s = s scale + added (unless null), -infinity where not allowed (unless null); returns the largest.
  T (*scale_and_mask)(T* s, std::int64_t n, T scale, const T* added, const bool* allowed);
  T (*exp_row)(T* s, std::int64_t n, T shift);                                   // s = exp(s - shift); returns the sum.
  void (*scale_row)(T* x, std::int64_t n, T factor);                             // x *= factor
  T (*dot)(const T* x, const T* y, std::int64_t n);                              // Sum of x y.
  void (*score_gradient)(const T* p, T* dp, std::int64_t n, T offset, T scale);  // dp = p (dp - offset) scale
};

struct AttentionLoops {
  AttentionLoopsOf<float> f32;
  AttentionLoopsOf<double> f64;
};

PLIMSOLL_LOOPS(AttentionLoops, attention_loops)

template <class T>
const AttentionLoopsOf<T>& attention_loops_of() noexcept {
  if constexpr (sizeof(T) == 4)
    return attention_loops().f32;
  else
    return attention_loops().f64;
}

}  // namespace plimsoll::internal
