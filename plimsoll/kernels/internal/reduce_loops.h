// ReduceLoops: the innermost loops of reductions, one table per instruction set, as in loops.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll {

enum Fold { kFoldSum, kFoldProduct, kFoldMax, kFoldMin, kNumFolds };

inline constexpr std::int64_t kFoldColumns = 512;  // Columns that rows() takes at once.

// Accumulators: of sums and products double for floats and std::int64_t for integers; of max and min the element type.
struct FoldLoops {
  void (*run)(const void* x, std::int64_t n, void* accumulator);  // Folds n elements into one accumulator.
  // Folds each of up to kFoldColumns columns into its accumulator; rows are `stride` elements apart.
  void (*rows)(const void* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, void* accumulators);
};

struct ReduceLoops {
  FoldLoops folds[kNumFolds][kNumNative];  // Null for sums of bools.
  // y[i] = exp(x[i] - shift); returns their sum.
  double (*exp_shifted_f32)(const float* x, float* y, std::int64_t n, float shift);
  void (*scale_f32)(const float* x, float* y, std::int64_t n, float factor);  // y = x factor
  void (*subtract_f32)(const float* x, float* y, std::int64_t n, float first,
                       float second);  // y = (x - first) - second
};

const ReduceLoops& reduce_loops() noexcept;
const ReduceLoops& reduce_loops_baseline() noexcept;
const ReduceLoops& reduce_loops_avx2() noexcept;
const ReduceLoops& reduce_loops_avx512() noexcept;

}  // namespace plimsoll
