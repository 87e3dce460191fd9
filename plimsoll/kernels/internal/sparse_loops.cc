// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/sparse_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kAhead = 4;  // Entries whose rows of b are prefetched.

// kVectors vectors of each row from column `from` on: their sums stay in registers over a row's entries.
template <class T, int kVectors>
void multiply_panel(const SparseBlock<T>& a, const T* b, std::int64_t n, std::int64_t from, T* out) {
  constexpr std::int64_t kLanesHere = kLanesOf<T>;
  const std::int64_t last = a.splits[a.row_end];
  for (std::int64_t r = a.row_begin; r < a.row_end; ++r) {
    Vector<T> sum[kVectors] = {};
    for (std::int64_t k = a.splits[r], end = a.splits[r + 1]; k < end; ++k) {
      const T* row = b + a.columns[k] * n + from;
      if (k + kAhead < last) {
        const T* later = b + a.columns[k + kAhead] * n + from;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) __builtin_prefetch(later + v * kLanesHere);
      }
      const Vector<T> value = a.values[k] - Vector<T>{};
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[v] += value * load(row + v * kLanesHere);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(out + r * n + from + v * kLanesHere, sum[v]);
  }
}

// The last `count` columns, fewer than a vector.
template <class T>
void multiply_rest(const SparseBlock<T>& a, const T* b, std::int64_t n, std::int64_t from, std::int64_t count, T* out) {
  for (std::int64_t r = a.row_begin; r < a.row_end; ++r) {
    Vector<T> sum = {};
    for (std::int64_t k = a.splits[r], end = a.splits[r + 1]; k < end; ++k)
      sum += (a.values[k] - Vector<T>{}) * load_some(b + a.columns[k] * n + from, count);
    store_some(out + r * n + from, sum, count);
  }
}

template <class T>
void multiply_sparse(const SparseBlock<T>& a, const T* b, std::int64_t n, std::int64_t from, std::int64_t to, T* out) {
  constexpr std::int64_t kOne = kLanesOf<T>;
  for (; from + 8 * kOne <= to; from += 8 * kOne) multiply_panel<T, 8>(a, b, n, from, out);
  for (; from + 4 * kOne <= to; from += 4 * kOne) multiply_panel<T, 4>(a, b, n, from, out);
  for (; from + kOne <= to; from += kOne) multiply_panel<T, 1>(a, b, n, from, out);
  if (from < to) multiply_rest(a, b, n, from, to - from, out);
}

template <class T>
T dot(const T* x, const T* y, std::int64_t n) {
  constexpr std::int64_t kOne = kLanesOf<T>;
  Vector<T> sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * kOne <= n; i += 4 * kOne)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sums[v] += load(x + i + v * kOne) * load(y + i + v * kOne);
  for (; i + kOne <= n; i += kOne) sums[0] += load(x + i) * load(y + i);
  if (i < n) sums[1] += load_some(x + i, n - i) * load_some(y + i, n - i);
  const Vector<T> all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  T sum = 0;
  for (std::int64_t lane = 0; lane < kOne; ++lane) sum += all[lane];
  return sum;
}

template <class T>
void dots_of_rows(const SparseBlock<T>& a, const T* x, const T* y, std::int64_t n, T* out) {
  for (std::int64_t r = a.row_begin; r < a.row_end; ++r)
    for (std::int64_t k = a.splits[r], end = a.splits[r + 1]; k < end; ++k)
      out[k] = dot(x + r * n, y + a.columns[k] * n, n);
}

template <class T>
constexpr SparseLoopsOf<T> kSparseOf = {multiply_sparse<T>, dots_of_rows<T>};

}  // namespace

constinit const SparseLoops PLIMSOLL_INSTRUCTION_SET::sparse_loops = {kSparseOf<float>, kSparseOf<double>};

}  // namespace plimsoll::internal
