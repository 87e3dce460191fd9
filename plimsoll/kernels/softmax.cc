#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/casts.h"
#include "plimsoll/kernels/internal/softmax_loops.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kTile = 512;
constexpr std::int64_t kGrain = 16384;

// A row of halves, converted to f32 tile by tile whenever it is read instead of being kept.
struct HalfRow {
  HalfRow(const void* data, DType dtype, std::int64_t n) noexcept
      : data_(static_cast<const std::byte*>(data)), n_(n), widen_(cast_loop(dtype, f32)) {}

  // The elements from i on, and how many: at most kTile.
  std::int64_t load(std::int64_t i, float* tile) const noexcept {
    const void* in = data_ + 2 * i;
    const std::int64_t count = std::min(kTile, n_ - i);
    widen_(&in, tile, count);
    return count;
  }

 private:
  const std::byte* data_;
  std::int64_t n_;
  Loop widen_;
};

void store_halves(const float* tile, void* out, std::int64_t i, std::int64_t count, DType dtype) noexcept {
  const void* in = tile;
  cast_loop(f32, dtype)(&in, static_cast<std::byte*>(out) + 2 * i, count);
}

void softmax_half_row(const void* x, void* y, DType dtype, std::int64_t n, bool log) noexcept {
  const SoftmaxLoops<float>& loops = softmax_loops().f32;
  const HalfRow row(x, dtype, n);
  float tile[kTile], exps[kTile];
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < n; i += kTile) largest = std::max(largest, loops.largest(tile, row.load(i, tile)));
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kTile) sum += loops.sum_exp(tile, row.load(i, tile), largest);
  for (std::int64_t i = 0; i < n; i += kTile) {
    const std::int64_t count = row.load(i, tile);
    if (log) {
      loops.subtract(tile, exps, count, largest, static_cast<float>(std::log(sum)));
    } else {
      loops.exp_shifted(tile, exps, count, largest);
      loops.scale(exps, count, static_cast<float>(1 / sum));
    }
    store_halves(exps, y, i, count, dtype);
  }
}

void half_grad_row(const void* y, const void* dy, void* out, DType dtype, std::int64_t n, bool log) noexcept {
  const SoftmaxLoops<float>& loops = softmax_loops().f32;
  const HalfRow values(y, dtype, n), gradients(dy, dtype, n);
  float a[kTile], b[kTile];
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kTile) {
    const std::int64_t count = gradients.load(i, b);
    values.load(i, a);
    sum += log ? loops.sum(b, count) : loops.dot(a, b, count);
  }
  for (std::int64_t i = 0; i < n; i += kTile) {
    const std::int64_t count = gradients.load(i, b);
    values.load(i, a);
    (log ? loops.apply_log_grad : loops.apply_grad)(a, b, b, count, static_cast<float>(sum));
    store_halves(b, out, i, count, dtype);
  }
}

// Calls row(bytes from the start) for each row along the last axis.
template <class Row>
void each_row(const ConstTensorView& x, std::size_t element_bytes, Row row) noexcept {
  const auto size = static_cast<std::int64_t>(x.size());
  const std::int64_t n = x.shape().back(), rows = size == n ? 1 : size / n;
  const std::size_t row_bytes = static_cast<std::size_t>(n) * element_bytes;
  parallel_for(rows, size <= kGrain ? rows : std::max<std::int64_t>(1, kGrain / n),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) row(static_cast<std::size_t>(r) * row_bytes);
               });
}

template <class T>
void softmax_rows(const ConstTensorView& x, const TensorView& out, void (*row)(const T*, T*, std::int64_t)) noexcept {
  const std::int64_t n = x.shape().back();
  each_row(x, sizeof(T), [&](std::size_t at) {
    row(reinterpret_cast<const T*>(x.bytes() + at), reinterpret_cast<T*>(out.bytes() + at), n);
  });
}

template <class T>
void grad_rows(const ConstTensorView& y, const ConstTensorView& dy, const TensorView& out,
               void (*row)(const T*, const T*, T*, std::int64_t)) noexcept {
  const std::int64_t n = y.shape().back();
  each_row(y, sizeof(T), [&](std::size_t at) {
    row(reinterpret_cast<const T*>(y.bytes() + at), reinterpret_cast<const T*>(dy.bytes() + at),
        reinterpret_cast<T*>(out.bytes() + at), n);
  });
}

void run(const ConstTensorView& x, const TensorView& out, bool log) noexcept {
  const DType dtype = x.dtype();
  PLIMSOLL_CHECK(is_floating(dtype) && x.rank() > 0);
  if (x.size() == 0) return;
  const SoftmaxTable& table = softmax_loops();
  if (dtype == f32) return softmax_rows(x, out, log ? table.f32.log_softmax : table.f32.softmax);
  if (dtype == f64) return softmax_rows(x, out, log ? table.f64.log_softmax : table.f64.softmax);
  const std::int64_t n = x.shape().back();
  each_row(x, 2, [&](std::size_t at) { softmax_half_row(x.bytes() + at, out.bytes() + at, dtype, n, log); });
}

void run_grad(const ConstTensorView& y, const ConstTensorView& dy, const TensorView& out, bool log) noexcept {
  const DType dtype = y.dtype();
  PLIMSOLL_CHECK(is_floating(dtype) && y.rank() > 0);
  if (y.size() == 0) return;
  const SoftmaxTable& table = softmax_loops();
  if (dtype == f32) return grad_rows(y, dy, out, log ? table.f32.log_softmax_grad : table.f32.softmax_grad);
  if (dtype == f64) return grad_rows(y, dy, out, log ? table.f64.log_softmax_grad : table.f64.softmax_grad);
  const std::int64_t n = y.shape().back();
  each_row(y, 2,
           [&](std::size_t at) { half_grad_row(y.bytes() + at, dy.bytes() + at, out.bytes() + at, dtype, n, log); });
}

}  // namespace

void softmax(const ConstTensorView& x, const TensorView& out) noexcept { run(x, out, false); }
void log_softmax(const ConstTensorView& x, const TensorView& out) noexcept { run(x, out, true); }
void softmax_grad(const ConstTensorView& y, const ConstTensorView& dy, const TensorView& out) noexcept {
  run_grad(y, dy, out, false);
}
void log_softmax_grad(const ConstTensorView& y, const ConstTensorView& dy, const TensorView& out) noexcept {
  run_grad(y, dy, out, true);
}

}  // namespace plimsoll::internal
