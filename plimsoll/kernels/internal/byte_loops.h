// ByteLoops: the innermost loops of byte_products.h, one table per instruction set, as in loops.h. Sums are exact, so
// all tables give the same.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

inline constexpr std::int64_t kByteRows = 4;      // Rows of a tile.
inline constexpr std::int64_t kByteColumns = 64;  // Columns of a tile: how far apart rows of sums are.
inline constexpr std::int64_t kByteDepth = 256;   // Products at a time: how far apart rows of a are.

template <class W>
struct ByteLoopsOf {
  // sums[r][j] += a[r][k] w[k][j] for kByteRows rows, k < depth and j < columns; rows of w are `step` apart.
  void (*multiply)(const std::int16_t* a, std::int64_t depth, const W* w, std::int64_t step, std::int64_t columns,
                   std::int32_t* sums);
};

struct ByteLoops {
  ByteLoopsOf<std::int8_t> i8;
  ByteLoopsOf<std::uint8_t> u8;
};

PLIMSOLL_LOOPS(ByteLoops, byte_loops)

}  // namespace plimsoll::internal
