// MatmulProduct: one product of two matrices, read in place when small, through packed panels when large.
//
//   if (product.is_direct()) product.multiply_item(i);       // For every i < product.items(); no scratch.
//   else product.multiply_packed(scratch);                   // With packed_bytes(), in parallel.
//
// The method and the split of the work depend only on the sizes and the dtype. The epilogue is applied to each piece
// of the result as soon as it is finished, while it is in the caches.
// Thread safety: items may run at once. No allocation.
#pragma once

#include <cstddef>

#include "plimsoll/kernels/internal/loops.h"
#include "plimsoll/kernels/internal/matmul_loops.h"

namespace plimsoll::internal {

// What follows the product: a bias and a rectifier in registers; else with the loops of the elementwise kernels. The
// bits equal those of separate calls.
struct MatmulFinish {
  const std::byte* bias = nullptr;
  Rectifier rectifier = {};
  Loop add = nullptr, activation = nullptr;  // Null when there is none, or the product does it.

  void add_to(MatmulBlock& block) const noexcept;
  void apply(std::byte* c, std::int64_t row_bytes, std::int64_t rows, std::int64_t columns) const noexcept;
};

struct MatmulProduct {
  DType source;  // The dtype of a and b: f32, f64, or a half type, which is packed as f32.
  std::int64_t m, n, k;
  const std::byte *a, *b;
  std::int64_t a_row, a_column, b_row, b_column;  // In elements.
  std::byte* c;                                   // f32 or f64, rows c_row elements apart.
  std::int64_t c_row;
  bool accumulate;
  std::int64_t part_of_rows = 0;  // Of a product with so many, whose method it takes: where sums over k are split.
  MatmulFinish finish = {};

  bool is_direct() const noexcept;
  std::int64_t items() const noexcept;
  void multiply_item(std::int64_t item) const noexcept;

  std::size_t packed_bytes() const noexcept;
  void multiply_packed(std::byte* scratch) const noexcept;

  // m * n * k. From kMatmulItem on, a product is worth its own thread.
  double work() const noexcept { return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }

 private:
  struct Cut;
  struct Region;
  std::size_t size() const noexcept { return source == f64 ? 8 : 4; }  // Bytes of an element of c and of panels.
  const MatmulLoops& loops() const noexcept { return source == f64 ? matmul_loops().f64 : matmul_loops().f32; }
  std::byte* at(std::byte* data, std::int64_t offset) const noexcept {
    return data + offset * static_cast<std::int64_t>(size());
  }
  const std::byte* source_at(const std::byte* data, std::int64_t offset) const noexcept {
    return data + offset * static_cast<std::int64_t>(size_of(source));
  }
  Cut cut() const noexcept;
  void pack_panels(const Region& region, std::int64_t begin, std::int64_t end) const noexcept;
  void multiply_piece(const Region& region, std::int64_t piece) const noexcept;
  void multiply_region(const Region& region) const noexcept;
};

inline constexpr double kMatmulItem = 64 * 64 * 32;

// The packed product sums over an inner size of k in parts of so many, each in order and then added to the result.
std::int64_t matmul_depth(std::int64_t k) noexcept;

}  // namespace plimsoll::internal
