// ReduceLoops: the innermost loops of reductions.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"
#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll::internal {

enum Fold { kFoldSum, kFoldProduct, kFoldMax, kFoldMin, kNumFolds };

inline constexpr std::int64_t kFoldColumns = 512;  // Columns that rows() takes at once.

// Accumulators: of sums and products double for floats and std::int64_t for integers; of max and min the element type.
struct FoldLoops {
  void (*run)(const void* x, std::int64_t n, void* accumulator);  // Folds n elements into one accumulator.
  // Folds each of up to kFoldColumns columns into its accumulator; rows are `stride` elements apart.
  void (*rows)(const void* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, void* accumulators);
};

// Positions of the first extreme; NaN wins.
struct PositionLoops {
  std::int64_t (*run)(const void* x, std::int64_t n);  // Requires n > 0.
  // For each of up to kPositionColumns columns; rows are `stride` elements apart. Requires 0 < rows < 2^31.
  void (*columns)(const void* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, std::int64_t* out);
};
inline constexpr std::int64_t kPositionColumns = 256;

struct ReduceLoops {
  FoldLoops folds[kNumFolds][kNumNative];  // Null for sums of bools.
  PositionLoops largest[kNumNative], smallest[kNumNative];
};

PLIMSOLL_LOOPS(ReduceLoops, reduce_loops)

}  // namespace plimsoll::internal
