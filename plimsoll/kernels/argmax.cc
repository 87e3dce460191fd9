#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/reduce_loops.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 16384;

// For dtypes without a loop.
template <class T, bool kMax>
std::int64_t position_in_run(const T* x, std::int64_t n) noexcept {
  T best = x[0];
  std::int64_t where = 0;
  for (std::int64_t i = 1; i < n; ++i)
    if ((kMax ? x[i] > best : x[i] < best) || (x[i] != x[i] && best == best)) best = x[i], where = i;
  return where;
}

template <class T, bool kMax>
void positions_in_columns(const T* x, std::int64_t n, std::int64_t stride, std::int64_t columns,
                          std::int64_t* out) noexcept {
  T best[kPositionColumns];
  for (std::int64_t c = 0; c < columns; ++c) best[c] = x[c], out[c] = 0;
  for (std::int64_t i = 1; i < n; ++i)
    for (std::int64_t c = 0; c < columns; ++c)
      if (const T v = x[i * stride + c]; (kMax ? v > best[c] : v < best[c]) || (v != v && best[c] == best[c]))
        best[c] = v, out[c] = i;
}

// A tensor viewed as [outer, n, inner]; positions are along n.
struct Axis {
  std::int64_t outer, n, inner;
};

// Calls run(first element, out) for each run along a dense axis, columns(first element, count, out) for others.
template <class Run, class Columns>
void each_tile(const Axis& axis, std::int64_t* out, Run run, Columns columns) noexcept {
  const std::int64_t tiles = divide_up(axis.inner, kPositionColumns);
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / (axis.n * std::min(axis.inner, kPositionColumns)));
  parallel_for(axis.outer * tiles, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t block = t / tiles, column = t % tiles * kPositionColumns;
      const std::int64_t from = block * axis.n * axis.inner + column;
      if (axis.inner == 1)
        out[block] = run(from);
      else
        columns(from, std::min(kPositionColumns, axis.inner - column), out + block * axis.inner + column);
    }
  });
}

template <bool kMax>
void position_of_extreme(const ConstTensorView& x, std::size_t at, const TensorView& out) noexcept {
  if (out.size() == 0) return;
  const Shape& shape = x.shape();
  PLIMSOLL_CHECK(out.dtype() == i64 && at < shape.rank() && shape[at] > 0);
  Axis axis = {1, shape[at], 1};
  for (std::size_t i = 0; i < at; ++i) axis.outer *= shape[i];
  for (std::size_t i = at + 1; i < shape.rank(); ++i) axis.inner *= shape[i];
  const DType dtype = x.dtype();
  auto* const to = out.data<std::int64_t>();
  if (native_dtype(dtype) == dtype && axis.n <= INT32_MAX) {
    const PositionLoops& loops = (kMax ? reduce_loops().largest : reduce_loops().smallest)[native_type(dtype)];
    const auto element = [&](std::int64_t i) { return x.bytes() + static_cast<std::size_t>(i) * size_of(dtype); };
    return each_tile(
        axis, to, [&](std::int64_t from) { return loops.run(element(from), axis.n); },
        [&](std::int64_t from, std::int64_t columns, std::int64_t* positions) {
          loops.columns(element(from), axis.n, axis.inner, columns, positions);
        });
  }
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    const T* data = x.data<T>();
    each_tile(
        axis, to, [&](std::int64_t from) { return position_in_run<T, kMax>(data + from, axis.n); },
        [&](std::int64_t from, std::int64_t columns, std::int64_t* positions) {
          positions_in_columns<T, kMax>(data + from, axis.n, axis.inner, columns, positions);
        });
  });
}

}  // namespace

void argmax(const ConstTensorView& x, std::size_t axis, const TensorView& out) noexcept {
  position_of_extreme<true>(x, axis, out);
}
void argmin(const ConstTensorView& x, std::size_t axis, const TensorView& out) noexcept {
  position_of_extreme<false>(x, axis, out);
}

}  // namespace plimsoll::internal
