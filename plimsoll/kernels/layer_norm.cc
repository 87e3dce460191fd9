#include "plimsoll/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/layer_norm_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 16384;  // Elements per chunk.
constexpr std::int64_t kMaxPieces =
    16;  // The most pieces that rows are split into for the gradients of gamma and beta.
constexpr std::int64_t kRowsPerBlock = 64;  // Rows whose gradients are summed in their own type; blocks in f64.

template <class T>
const LayerNormLoopsOf<T>& loops_of() noexcept {
  if constexpr (std::is_same_v<T, float>)
    return layer_norm_loops().f32;
  else
    return layer_norm_loops().f64;
}

template <class T, class View>
auto* data_or_null(const View& view) noexcept {
  return view.base() ? view.template data<T>() : nullptr;
}

template <class T>
void normalize_rows(const ConstTensorView& x, std::int64_t columns, const ConstTensorView& gamma,
                    const ConstTensorView& beta, double epsilon, const LayerNormOutputs& out, bool centered) noexcept {
  const LayerNormLoopsOf<T>& loops = loops_of<T>();
  const T *from = x.data<T>(), *scale = data_or_null<T>(gamma), *shift = data_or_null<T>(beta);
  T *to = out.y.data<T>(), *means = data_or_null<T>(out.mean), *rstds = data_or_null<T>(out.rstd);
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / columns;
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / columns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = from + r * columns;
      const T mean = centered ? static_cast<T>(loops.sum(row, columns) / double(columns)) : T(0);
      const double variance = loops.squares(row, columns, mean) / double(columns);
      const T rstd = static_cast<T>(1 / std::sqrt(variance + epsilon));
      loops.normalize(row, columns, mean, rstd, scale, shift, to + r * columns);
      if (means) means[r] = mean;
      if (rstds) rstds[r] = rstd;
    }
  });
}

// How rows are split, by shape only. Each piece has sums of dgamma and dbeta: for a block, then for all.
struct Cut {
  std::int64_t pieces, rows_per_piece;
  std::size_t block_bytes, piece_bytes;

  Cut(std::int64_t rows, std::int64_t columns, DType dtype) noexcept {
    pieces =
        std::clamp<std::int64_t>(rows * columns / kGrain, 1, std::min(kMaxPieces, std::max<std::int64_t>(rows, 1)));
    rows_per_piece = divide_up(rows, pieces);
    const auto rounded = [](std::size_t bytes) { return round_up(bytes, 64); };
    block_bytes = rounded(2 * static_cast<std::size_t>(columns) * size_of(dtype));
    piece_bytes = block_bytes + rounded(2 * static_cast<std::size_t>(columns) * sizeof(double));
  }
};

template <class T>
struct Gradient {
  std::int64_t rows, columns;
  const T *x, *dy, *gamma, *mean, *rstd;
  T *dx, *dgamma, *dbeta;
  std::byte* scratch;
  Cut cut;

  bool has_parameters() const noexcept { return dgamma || dbeta; }

  double* totals(std::int64_t piece) const noexcept {
    return reinterpret_cast<double*>(scratch + static_cast<std::size_t>(piece) * cut.piece_bytes + cut.block_bytes);
  }

  void run_rows(std::int64_t begin, std::int64_t end, T* block) const noexcept {
    for (std::int64_t r = begin; r < end; ++r) {
      const T *row = x + r * columns, *up = dy + r * columns;
      double sums[2];
      const T middle = mean ? mean[r] : T(0);
      loops_of<T>().gradient_sums(row, up, columns, middle, rstd[r], gamma, block, block ? block + columns : nullptr,
                                  sums);
      if (!mean) sums[0] = 0;  // Nothing was subtracted.
      if (dx)
        loops_of<T>().gradient(row, up, columns, middle, rstd[r], gamma, static_cast<T>(sums[0] / double(columns)),
                               static_cast<T>(sums[1] / double(columns)), dx + r * columns);
    }
  }

  void run_piece(std::int64_t piece) const noexcept {
    T* block = reinterpret_cast<T*>(scratch + static_cast<std::size_t>(piece) * cut.piece_bytes);
    double* total = totals(piece);
    std::fill_n(total, 2 * columns, 0.0);
    const std::int64_t end = std::min(rows, (piece + 1) * cut.rows_per_piece);
    for (std::int64_t r = piece * cut.rows_per_piece; r < end; r += kRowsPerBlock) {
      std::fill_n(block, 2 * columns, T(0));
      run_rows(r, std::min(end, r + kRowsPerBlock), block);
      for (std::int64_t c = 0; c < 2 * columns; ++c) total[c] += double(block[c]);
    }
  }

  void combine(std::int64_t begin, std::int64_t end) const noexcept {
    for (std::int64_t c = begin; c < end; ++c) {
      double sums[2] = {};
      for (std::int64_t p = 0; p < cut.pieces; ++p) {
        sums[0] += totals(p)[c];
        sums[1] += totals(p)[columns + c];
      }
      if (dgamma) dgamma[c] = static_cast<T>(sums[0]);
      if (dbeta) dbeta[c] = static_cast<T>(sums[1]);
    }
  }

  void run() const noexcept {
    if (!has_parameters())
      return parallel_for(rows, std::max<std::int64_t>(1, kGrain / columns),
                          [&](std::int64_t begin, std::int64_t end) { run_rows(begin, end, nullptr); });
    parallel_for(cut.pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) run_piece(p);
    });
    parallel_for(columns, 2048, [&](std::int64_t begin, std::int64_t end) { combine(begin, end); });
  }
};

}  // namespace

void layer_norm(const ConstTensorView& x, std::int64_t columns, const ConstTensorView& gamma,
                const ConstTensorView& beta, double epsilon, const LayerNormOutputs& out, bool centered) noexcept {
  if (x.size() == 0) return;
  PLIMSOLL_CHECK((x.dtype() == f32 || x.dtype() == f64) && out.y.size() == x.size());
  if (x.dtype() == f32)
    normalize_rows<float>(x, columns, gamma, beta, epsilon, out, centered);
  else
    normalize_rows<double>(x, columns, gamma, beta, epsilon, out, centered);
}

std::size_t layer_norm_gradient_scratch_bytes(std::int64_t rows, std::int64_t columns, DType dtype) noexcept {
  const Cut cut(rows, columns, dtype);
  return static_cast<std::size_t>(cut.pieces) * cut.piece_bytes;
}

void layer_norm_gradient(const ConstTensorView& x, std::int64_t columns, const ConstTensorView& gamma,
                         const ConstTensorView& mean, const ConstTensorView& rstd, const ConstTensorView& dy,
                         const LayerNormGradients& out, std::span<std::byte> scratch) noexcept {
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / columns;
  const auto run = [&]<class T>(TypeTag<T>) {
    const Gradient<T> gradient = {rows,
                                  columns,
                                  x.data<T>(),
                                  dy.data<T>(),
                                  data_or_null<T>(gamma),
                                  data_or_null<T>(mean),
                                  rstd.data<T>(),
                                  data_or_null<T>(out.x),
                                  data_or_null<T>(out.gamma),
                                  data_or_null<T>(out.beta),
                                  scratch.data(),
                                  Cut(rows, columns, x.dtype())};
    PLIMSOLL_CHECK(!gradient.has_parameters() ||
                   scratch.size() >= layer_norm_gradient_scratch_bytes(rows, columns, x.dtype()));
    gradient.run();
  };
  PLIMSOLL_CHECK((x.dtype() == f32 || x.dtype() == f64) && dy.size() == x.size());
  if (x.dtype() == f32)
    run(TypeTag<float>{});
  else
    run(TypeTag<double>{});
}

}  // namespace plimsoll::internal
