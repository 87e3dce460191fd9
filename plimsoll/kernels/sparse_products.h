// Products with sparse matrices in compressed rows: with a dense matrix, and of two sparse ones.
//
//   const SparseRows a = {splits, columns, rows, width};
//   sparse_matmul(a, values, b, out);              // b [width, n], out [rows, n]
//   sparse_row_dots(a, x, y, out);                 // out[k] = x[row of k] . y[column of k]: the gradient of the values
//
// Entries that are not stored take no part, so that an infinity beside one does not become NaN. f32, f64, i32 and i64;
// integers wrap. Requires columns in [0, width), rising within a row. Thread safety: any thread. Cost: no allocation,
// never throws; cut by shape alone, so results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

// Entries splits[r] ... splits[r + 1] - 1 are those of row r.
struct SparseRows {
  const std::int64_t* splits;   // rows + 1 of them.
  const std::int64_t* columns;  // One for each entry.
  std::int64_t rows, width;
  std::int64_t entries() const noexcept { return splits[rows]; }
};

PLIMSOLL_API bool is_sparse_product_dtype(DType dtype) noexcept;

PLIMSOLL_API void sparse_matmul(const SparseRows& a, const ConstTensorView& values, const ConstTensorView& b,
                                const TensorView& out) noexcept;
PLIMSOLL_API void sparse_row_dots(const SparseRows& a, const ConstTensorView& x, const ConstTensorView& y,
                                  const TensorView& out) noexcept;

// The structure of c = a b: first the splits (a.rows + 1), then the columns they index. `marks` has b.width elements.
PLIMSOLL_API void sparse_product_splits(const SparseRows& a, const SparseRows& b, std::int64_t* marks,
                                        std::int64_t* splits) noexcept;
PLIMSOLL_API void sparse_product_columns(const SparseRows& a, const SparseRows& b, std::int64_t* marks,
                                         const std::int64_t* splits, std::int64_t* columns) noexcept;

// The sum of a[i, j] b[j, k] c[i, k] over all stored triples is linear in each; these are its slopes. `of` chooses the
// factor, `p` and `q` are the values of the other two in the order a, b, c.
enum class SparseFactor : unsigned char { a, b, c };
struct SparseTriple {
  SparseRows a, b, c;
};
PLIMSOLL_API std::size_t sparse_triple_scratch_bytes(std::int64_t rows, std::int64_t width) noexcept;
PLIMSOLL_API void sparse_triple(SparseFactor of, const SparseTriple& triple, const ConstTensorView& p,
                                const ConstTensorView& q, const TensorView& out, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
