#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/casts.h"
#include "plimsoll/kernels/internal/reduce_loops.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kTile = 512;
constexpr std::int64_t kGrain = 16384;

void softmax_row(const float* x, float* y, std::int64_t n, bool log) noexcept {
  const ReduceLoops& loops = reduce_loops();
  float largest = -std::numeric_limits<float>::infinity();
  loops.folds[kFoldMax][kNativeF32].run(x, n, &largest);
  if (!log) {
    const double sum = loops.exp_shifted_f32(x, y, n, largest);
    loops.scale_f32(y, y, n, static_cast<float>(1 / sum));
    return;
  }
  float unused[kTile];
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kTile)
    sum += loops.exp_shifted_f32(x + i, unused, std::min(kTile, n - i), largest);
  loops.subtract_f32(x, y, n, largest, static_cast<float>(std::log(sum)));
}

void softmax_row(const double* x, double* y, std::int64_t n, bool log) noexcept {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  reduce_loops().folds[kFoldMax][kNativeF64].run(x, n, &largest);
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  const double offset = std::log(sum);
  for (std::int64_t i = 0; i < n; ++i) y[i] = log ? (x[i] - largest) - offset : std::exp(x[i] - largest) / sum;
}

// Halves: the row is converted three times, tile by tile, rather than kept.
void softmax_half_row(const std::byte* x, std::byte* y, DType dtype, std::int64_t n, bool log) noexcept {
  const ReduceLoops& loops = reduce_loops();
  const Loop widen = cast_loop(dtype, f32), narrow = cast_loop(f32, dtype);
  float tile[kTile], exps[kTile];
  const auto load = [&](std::int64_t i) {
    const void* in = x + 2 * i;
    widen(&in, tile, std::min(kTile, n - i));
    return std::min(kTile, n - i);
  };
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < n; i += kTile) loops.folds[kFoldMax][kNativeF32].run(tile, load(i), &largest);
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kTile) sum += loops.exp_shifted_f32(tile, exps, load(i), largest);
  for (std::int64_t i = 0; i < n; i += kTile) {
    const std::int64_t m = load(i);
    if (log) {
      loops.subtract_f32(tile, exps, m, largest, static_cast<float>(std::log(sum)));
    } else {
      loops.exp_shifted_f32(tile, exps, m, largest);
      loops.scale_f32(exps, exps, m, static_cast<float>(1 / sum));
    }
    const void* in = exps;
    narrow(&in, y + 2 * i, m);
  }
}

void softmax_rows(const ConstTensorView& x, const TensorView& out, bool log) noexcept {
  PLIMSOLL_CHECK(is_floating(x.dtype()) && x.rank() > 0);
  if (x.size() == 0) return;
  const DType dtype = x.dtype();
  const std::int64_t n = x.shape().back(), rows = static_cast<std::int64_t>(x.size()) / n;
  const std::size_t row_bytes = static_cast<std::size_t>(n) * size_of(dtype);
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::byte* from = x.bytes() + static_cast<std::size_t>(r) * row_bytes;
      std::byte* to = out.bytes() + static_cast<std::size_t>(r) * row_bytes;
      if (dtype == f32)
        softmax_row(reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), n, log);
      else if (dtype == f64)
        softmax_row(reinterpret_cast<const double*>(from), reinterpret_cast<double*>(to), n, log);
      else
        softmax_half_row(from, to, dtype, n, log);
    }
  });
}

}  // namespace

void softmax(const ConstTensorView& x, const TensorView& out) noexcept { softmax_rows(x, out, false); }
void log_softmax(const ConstTensorView& x, const TensorView& out) noexcept { softmax_rows(x, out, true); }

}  // namespace plimsoll
