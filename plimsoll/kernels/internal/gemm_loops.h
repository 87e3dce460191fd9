// GemmLoops: packing and the innermost product of matrix multiplication, one table per instruction set.
//
// The product is built from panels: `rows` rows of A and `columns` columns of B at a time, packed so that the kernel
// reads both in order. Panels are padded with zeros.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll {

struct GemmLoops {
  std::int64_t rows, columns;  // Of the kernel's tile.
  // Packs `count` (<= rows or columns) vectors of length k: element (i, p) is x[i * along + p * deep].
  void (*pack_rows)(const void* x, std::int64_t count, std::int64_t k, std::int64_t along, std::int64_t deep, void* to);
  void (*pack_columns)(const void* x, std::int64_t count, std::int64_t k, std::int64_t along, std::int64_t deep,
                       void* to);
  // c (m by n, at most a tile, rows `stride` apart) = or += the product of two panels of depth k.
  void (*tile)(const void* a, const void* b, std::int64_t k, void* c, std::int64_t stride, std::int64_t m,
               std::int64_t n, bool accumulate);
};

struct GemmTable {
  GemmLoops f32, f64;
};

const GemmTable& gemm_loops() noexcept;
const GemmTable& gemm_loops_baseline() noexcept;
const GemmTable& gemm_loops_avx2() noexcept;
const GemmTable& gemm_loops_avx512() noexcept;

}  // namespace plimsoll
