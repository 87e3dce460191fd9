#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kGrain = 16384;
constexpr std::int64_t kColumns = 256;  // Walked together, row after row, when the axis is not the innermost.

template <class T, bool kMax>
bool beats(T a, T best) noexcept {
  return (kMax ? a > best : a < best) || (a != a && best == best);  // NaN wins, the first of them.
}

template <class T, bool kMax>
void run_position(const T* x, std::int64_t n, std::int64_t* out) noexcept {
  T best = x[0];
  std::int64_t where = 0;
  for (std::int64_t i = 1; i < n; ++i)
    if (beats<T, kMax>(x[i], best)) best = x[i], where = i;
  *out = where;
}

template <class T, bool kMax>
void column_positions(const T* x, std::int64_t n, std::int64_t stride, std::int64_t columns,
                      std::int64_t* out) noexcept {
  T best[kColumns];
  for (std::int64_t c = 0; c < columns; ++c) best[c] = x[c], out[c] = 0;
  for (std::int64_t i = 1; i < n; ++i)
    for (std::int64_t c = 0; c < columns; ++c)
      if (const T value = x[i * stride + c]; beats<T, kMax>(value, best[c])) best[c] = value, out[c] = i;
}

template <class T, bool kMax>
void positions(const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t* out) noexcept {
  const std::int64_t tiles = (inner + kColumns - 1) / kColumns;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / (n * std::min(inner, kColumns)));
  parallel_for(outer * tiles, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t block = t / tiles, column = t % tiles * kColumns;
      const T* from = x + block * n * inner + column;
      std::int64_t* to = out + block * inner + column;
      if (inner == 1)
        run_position<T, kMax>(from, n, to);
      else
        column_positions<T, kMax>(from, n, inner, std::min(kColumns, inner - column), to);
    }
  });
}

template <bool kMax>
void position_of_extreme(const ConstTensorView& x, std::size_t axis, const TensorView& out) noexcept {
  if (out.size() == 0) return;
  const Shape& shape = x.shape();
  PLIMSOLL_CHECK(out.dtype() == i64 && axis < shape.rank() && shape[axis] > 0);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    positions<T, kMax>(x.data<T>(), outer, shape[axis], inner, out.data<std::int64_t>());
  });
}

}  // namespace

void argmax(const ConstTensorView& x, std::size_t axis, const TensorView& out) noexcept {
  position_of_extreme<true>(x, axis, out);
}
void argmin(const ConstTensorView& x, std::size_t axis, const TensorView& out) noexcept {
  position_of_extreme<false>(x, axis, out);
}

}  // namespace plimsoll
