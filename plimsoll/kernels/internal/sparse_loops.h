// SparseLoops: the innermost loops of sparse_products.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

// Rows [row_begin, row_end) of a matrix of compressed rows.
template <class T>
struct SparseBlock {
  const T* values;
  const std::int64_t* splits;
  const std::int64_t* columns;
  std::int64_t row_begin, row_end;
};

template <class T>
struct SparseLoopsOf {
  // Columns [from, to) of out = a b, whose rows have n elements.
  void (*multiply)(const SparseBlock<T>& a, const T* b, std::int64_t n, std::int64_t from, std::int64_t to, T* out);
  // out[k] = x[row of k] . y[column of k], of n elements each; `a` without values.
  void (*dots)(const SparseBlock<T>& a, const T* x, const T* y, std::int64_t n, T* out);
};

struct SparseLoops {
  SparseLoopsOf<float> f32;
  SparseLoopsOf<double> f64;
};

PLIMSOLL_LOOPS(SparseLoops, sparse_loops)

}  // namespace plimsoll::internal
