// SoftmaxLoops: softmax of one row and its gradient, whole and in the pieces that halves are made from, one table per
// instruction set, as in loops.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

template <class T>
struct SoftmaxLoops {
  void (*softmax)(const T* x, T* y, std::int64_t n);
  void (*log_softmax)(const T* x, T* y, std::int64_t n);
  void (*softmax_grad)(const T* y, const T* dy, T* out, std::int64_t n);
  void (*log_softmax_grad)(const T* y, const T* dy, T* out, std::int64_t n);

  T (*largest)(const T* x, std::int64_t n);                          // Ignores NaN; -infinity for no elements.
  double (*exp_shifted)(const T* x, T* y, std::int64_t n, T shift);  // y = exp(x - shift) for x <= shift; their sum.
  double (*sum_exp)(const T* x, std::int64_t n, T shift);            // That sum alone.
  void (*scale)(T* y, std::int64_t n, T factor);                     // y = y factor
  void (*subtract)(const T* x, T* y, std::int64_t n, T first, T second);  // y = (x - first) - second
  double (*dot)(const T* y, const T* dy, std::int64_t n);
  double (*sum)(const T* dy, std::int64_t n);
  void (*apply_grad)(const T* y, const T* dy, T* out, std::int64_t n, T dot);      // out = y (dy - dot)
  void (*apply_log_grad)(const T* y, const T* dy, T* out, std::int64_t n, T sum);  // out = dy - exp(y) sum
};

struct SoftmaxTable {
  SoftmaxLoops<float> f32;
  SoftmaxLoops<double> f64;
};

PLIMSOLL_LOOPS(SoftmaxTable, softmax_loops)

}  // namespace plimsoll::internal
