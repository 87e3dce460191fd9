// run_tiles: applies a loop to broadcast operands of any dtype, tile by tile and in parallel.
//
//   TileOperand operands[] = {{&a, f32}, {&b, f32}};
//   run_tiles(loops, operands, 2, out, f32, kLightGrain);
//
// Each tile's operands are dense elements of the dtype the loop wants, or one element where a loop takes that: in place
// where they already are, else gathered, repeated or converted into a buffer on the stack (about 20 KiB).
#pragma once

#include "plimsoll/base/tensor_view.h"
#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll::internal {

inline constexpr std::int64_t kLightGrain = 32768;   // Elements of a chunk: memory decides the time.
inline constexpr std::int64_t kHeavyGrain = 8192;    // Arithmetic decides the time.
inline constexpr std::int64_t kSmall = kHeavyGrain;  // Fewer elements always run in one thread.

struct TileOperand {
  const ConstTensorView* view;
  DType wanted;  // The loop's input type.
};

// `loops` is a LoopSet for `count` operands. `made` is what the loop writes; it is converted when `out` has another
// dtype.
void run_tiles(const Loop* loops, const TileOperand* operands, int count, const TensorView& out, DType made,
               std::int64_t grain) noexcept;

}  // namespace plimsoll::internal
