#include "plimsoll/kernels/sparse_products.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/sparse_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 131072;    // Multiplications per chunk.
constexpr std::int64_t kPanelBytes = 512;  // Of a row of b at a time, so that what many rows read stays in the cache.
constexpr std::int64_t kMaxTriplePieces = 8;  // The most pieces that rows are split into, each with its own marks.

template <class T>
const SparseLoopsOf<T>& loops_of() noexcept {
  if constexpr (std::is_same_v<T, float>)
    return sparse_loops().f32;
  else
    return sparse_loops().f64;
}

std::int64_t rows_per_chunk(const SparseRows& a, std::int64_t n) noexcept {
  const std::int64_t per_row = (a.entries() / a.rows + 1) * std::max<std::int64_t>(n, 1);
  return std::max<std::int64_t>(1, kGrain / per_row);
}

// Integers wrap.
template <class T>
T multiply_add(T sum, T x, T y) noexcept {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(sum) +
                          static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  else
    return sum + x * y;
}

template <class T>
void multiply(const SparseRows& a, const T* values, const T* b, std::int64_t n, T* out) noexcept {
  const std::int64_t panel = kPanelBytes / static_cast<std::int64_t>(sizeof(T)), panels = divide_up(n, panel);
  const std::int64_t chunk = rows_per_chunk(a, std::min(n, panel)), chunks = divide_up(a.rows, chunk);
  parallel_for(panels * chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t from = i / chunks * panel, to = std::min(n, from + panel), row = i % chunks * chunk;
      const std::int64_t row_end = std::min(a.rows, row + chunk);
      if constexpr (std::is_floating_point_v<T>) {
        loops_of<T>().multiply({values, a.splits, a.columns, row, row_end}, b, n, from, to, out);
      } else {
        for (std::int64_t r = row; r < row_end; ++r) {
          std::fill(out + r * n + from, out + r * n + to, T(0));
          for (std::int64_t k = a.splits[r]; k < a.splits[r + 1]; ++k)
            for (std::int64_t c = from; c < to; ++c)
              out[r * n + c] = multiply_add(out[r * n + c], values[k], b[a.columns[k] * n + c]);
        }
      }
    }
  });
}

template <class T>
void dots(const SparseRows& a, const T* x, const T* y, std::int64_t n, T* out) noexcept {
  parallel_for(a.rows, rows_per_chunk(a, n), [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_floating_point_v<T>) {
      loops_of<T>().dots({nullptr, a.splits, a.columns, begin, end}, x, y, n, out);
    } else {
      for (std::int64_t r = begin; r < end; ++r)
        for (std::int64_t k = a.splits[r]; k < a.splits[r + 1]; ++k) {
          out[k] = 0;
          for (std::int64_t c = 0; c < n; ++c) out[k] = multiply_add(out[k], x[r * n + c], y[a.columns[k] * n + c]);
        }
    }
  });
}

// Calls f with the dtype's tag.
template <class F>
void visit_product_dtype(DType dtype, F&& f) noexcept {
  visit_dtype(dtype, [&]<class T>(TypeTag<T> tag) {
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4)
      f(tag);
    else
      PLIMSOLL_CHECK(is_sparse_product_dtype(kDTypeOf<T>));
  });
}

// Columns of row r of a b that `mark` sees for the first time.
template <class F>
void each_new_column(const SparseRows& a, const SparseRows& b, std::int64_t r, std::int64_t* marks, F&& f) noexcept {
  for (std::int64_t k = a.splits[r]; k < a.splits[r + 1]; ++k)
    for (std::int64_t l = b.splits[a.columns[k]]; l < b.splits[a.columns[k] + 1]; ++l)
      if (std::int64_t& mark = marks[b.columns[l]]; mark != r) {
        mark = r;
        f(b.columns[l]);
      }
}

// Rows [begin, end) of a; `places` says where in c a column of the row is.
template <class T>
void triple_rows(SparseFactor of, const SparseTriple& t, const T* p, const T* q, std::int64_t begin, std::int64_t end,
                 std::int64_t* places, T* out) noexcept {
  for (std::int64_t r = begin; r < end; ++r) {
    for (std::int64_t m = t.c.splits[r]; m < t.c.splits[r + 1]; ++m) places[t.c.columns[m]] = m;
    for (std::int64_t k = t.a.splits[r]; k < t.a.splits[r + 1]; ++k)
      for (std::int64_t l = t.b.splits[t.a.columns[k]]; l < t.b.splits[t.a.columns[k] + 1]; ++l) {
        const std::int64_t m = places[t.b.columns[l]];
        if (of == SparseFactor::a)
          out[k] = multiply_add(out[k], p[l], q[m]);
        else if (of == SparseFactor::b)
          out[l] = multiply_add(out[l], p[k], q[m]);
        else
          out[m] = multiply_add(out[m], p[k], q[l]);
      }
  }
}

std::int64_t triple_pieces(std::int64_t rows) noexcept {
  return std::clamp<std::int64_t>(rows / 64, 1, kMaxTriplePieces);
}

}  // namespace

bool is_sparse_product_dtype(DType dtype) noexcept {
  return dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64;
}

void sparse_matmul(const SparseRows& a, const ConstTensorView& values, const ConstTensorView& b,
                   const TensorView& out) noexcept {
  if (out.size() == 0) return;
  visit_product_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    multiply(a, values.data<T>(), b.data<T>(), out.shape()[1], out.data<T>());
  });
}

void sparse_row_dots(const SparseRows& a, const ConstTensorView& x, const ConstTensorView& y,
                     const TensorView& out) noexcept {
  if (out.size() == 0) return;
  visit_product_dtype(out.dtype(),
                      [&]<class T>(TypeTag<T>) { dots(a, x.data<T>(), y.data<T>(), x.shape()[1], out.data<T>()); });
}

void sparse_product_splits(const SparseRows& a, const SparseRows& b, std::int64_t* marks,
                           std::int64_t* splits) noexcept {
  std::fill_n(marks, b.width, std::int64_t{-1});
  splits[0] = 0;
  for (std::int64_t r = 0; r < a.rows; ++r) {
    splits[r + 1] = splits[r];
    each_new_column(a, b, r, marks, [&](std::int64_t) { ++splits[r + 1]; });
  }
}

void sparse_product_columns(const SparseRows& a, const SparseRows& b, std::int64_t* marks, const std::int64_t* splits,
                            std::int64_t* columns) noexcept {
  std::fill_n(marks, b.width, std::int64_t{-1});
  for (std::int64_t r = 0; r < a.rows; ++r) {
    std::int64_t* to = columns + splits[r];
    each_new_column(a, b, r, marks, [&](std::int64_t column) { *to++ = column; });
    std::sort(columns + splits[r], to);
  }
}

std::size_t sparse_triple_scratch_bytes(std::int64_t rows, std::int64_t width) noexcept {
  return static_cast<std::size_t>(triple_pieces(rows) * width) * sizeof(std::int64_t);
}

void sparse_triple(SparseFactor of, const SparseTriple& triple, const ConstTensorView& p, const ConstTensorView& q,
                   const TensorView& out, std::span<std::byte> scratch) noexcept {
  if (out.size() == 0) return;
  PLIMSOLL_CHECK(scratch.size() >= sparse_triple_scratch_bytes(triple.a.rows, triple.c.width));
  std::memset(out.bytes(), 0, out.nbytes());
  // Rows of a and c belong to one piece; those of b to several.
  const std::int64_t rows = triple.a.rows, pieces = of == SparseFactor::b ? 1 : triple_pieces(rows);
  visit_product_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        triple_rows(of, triple, p.data<T>(), q.data<T>(), rows * i / pieces, rows * (i + 1) / pieces,
                    reinterpret_cast<std::int64_t*>(scratch.data()) + i * triple.c.width, out.data<T>());
    });
  });
}

}  // namespace plimsoll::internal
