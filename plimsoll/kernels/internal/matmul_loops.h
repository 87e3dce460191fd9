// MatmulLoops: packing and the product of blocks of matrices.
//
// A block's operands are read in place or from packed panels: `rows` rows of A and `columns` columns of B at a
// time, one after the other, so that the kernel reads both in order. A panel of B is padded with zeros to `columns`;
// the last panel of A may have fewer rows, in the same layout. Every element of the product is one chain of (fused)
// multiply-adds over k in order, whichever tile it is in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"
#include "plimsoll/kernels/rectifier.h"

namespace plimsoll::internal {

inline constexpr std::int64_t kMatmulStackDepth = 256;  // For a panel of B that multiply() packs on the stack.

// Lines of memory that are needed next: bit by bit, between tiles, they are fetched into the second cache.
struct MatmulAhead {
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0, lines = 1;  // Between rows; lines of a row.
  std::int64_t begin = 0, end = 0;        // Those to fetch now, of all rows.
};

// c (m x n) = or += a (m x k) b (k x n), then + bias and the rectifier. Steps and strides in elements.
struct MatmulBlock {
  const void *a, *b;
  void* c;
  std::int64_t m, n, k;
  bool is_a_packed, is_b_packed;
  std::int64_t a_row, a_column;  // Unless packed.
  std::int64_t b_row, b_column;  // Unless packed. With b_column other than 1, requires k <= kMatmulStackDepth.
  std::int64_t c_row;
  bool accumulate;
  const void* bias = nullptr;  // n elements, or null.
  Rectifier rectifier = {};
  MatmulAhead ahead = {};
};

struct MatmulLoops {
  std::int64_t rows, columns;  // Per tile.
  // Packs `count` (<= rows or columns) vectors of length k: element (i, p) is x[i * along + p * deep].
  void (*pack_rows)(const void* x, std::int64_t count, std::int64_t k, std::int64_t along, std::int64_t deep, void* to);
  void (*pack_columns)(const void* x, std::int64_t count, std::int64_t k, std::int64_t along, std::int64_t deep,
                       void* to);
  void (*multiply)(const MatmulBlock& block);
};

struct MatmulTable {
  MatmulLoops f32, f64;
};

PLIMSOLL_LOOPS(MatmulTable, matmul_loops)

}  // namespace plimsoll::internal
