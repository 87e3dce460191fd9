#include "plimsoll/kernels/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/batch_norm_loops.h"

namespace plimsoll::internal {
namespace {

bool is_supported(DType dtype) noexcept { return dtype == f32 || dtype == f64; }

constexpr std::int64_t kMaxPieces = 16;  // The most pieces that the rows of a sum are cut into.
constexpr std::int64_t kGrain = 32768;   // Elements of a chunk.

struct Extent {
  std::int64_t rows, channels;
  std::int64_t piece_rows, pieces;

  explicit Extent(const Shape& x) noexcept : channels(x.back()) {
    rows = channels == 0 ? 0 : static_cast<std::int64_t>(x.size()) / channels;
    const std::int64_t least = std::max(divide_up(rows, kMaxPieces), kGrain / std::max<std::int64_t>(channels, 1));
    piece_rows = round_up(std::max<std::int64_t>(least, 1), 64);  // Whole blocks of the loops.
    pieces = std::max<std::int64_t>(1, divide_up(rows, piece_rows));
  }

  // Calls visit(row, rows) for chunks, in parallel.
  template <class F>
  void each_chunk(F visit) const noexcept {
    parallel_for(rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(channels, 1)),
                 [&](std::int64_t begin, std::int64_t end) { visit(begin, end - begin); });
  }
};

// Two sums per channel and piece, then five factors per channel.
template <class T>
struct Scratch {
  const Extent& extent;
  std::byte* data;

  double* sums(std::int64_t piece, int which) const noexcept {
    return reinterpret_cast<double*>(data) + (piece * 2 + which) * extent.channels;
  }
  T* factors(int which) const noexcept {
    return reinterpret_cast<T*>(sums(extent.pieces, 0)) + which * extent.channels;
  }
  static std::size_t bytes(const Extent& e) noexcept {
    return static_cast<std::size_t>(e.channels) *
           (static_cast<std::size_t>(e.pieces) * 2 * sizeof(double) + 5 * sizeof(T));
  }

  // Zeroes each piece's sums and calls visit(first row, rows, sums, sums) for it, in parallel.
  template <class F>
  void each_piece(F visit) const noexcept {
    parallel_for(extent.pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        std::fill_n(sums(p, 0), 2 * extent.channels, 0.0);
        const std::int64_t row = p * extent.piece_rows, left = extent.rows - row;
        visit(row, std::clamp<std::int64_t>(left, 0, extent.piece_rows), sums(p, 0), sums(p, 1));
      }
    });
  }
};

template <class T>
T value_or(const ConstTensorView* view, std::int64_t c, T otherwise) noexcept {
  return view ? static_cast<const T*>(static_cast<const void*>(view->bytes()))[c] : otherwise;
}

template <class T>
T* elements(const TensorView& view) noexcept {
  return static_cast<T*>(static_cast<void*>(view.bytes()));
}
template <class T>
const T* elements(const ConstTensorView& view) noexcept {
  return static_cast<const T*>(static_cast<const void*>(view.bytes()));
}

// Merges the pieces' means and squares into the first piece's.
template <class T>
void join_moments(const Extent& extent, const Scratch<T>& scratch) noexcept {
  double *mean = scratch.sums(0, 0), *squares = scratch.sums(0, 1);
  for (std::int64_t p = 1; p < extent.pieces; ++p) {
    const std::int64_t before = p * extent.piece_rows, rows = std::min(extent.piece_rows, extent.rows - before);
    const double share = static_cast<double>(rows) / static_cast<double>(before + rows);
    for (std::int64_t c = 0; c < extent.channels; ++c) {
      const double delta = scratch.sums(p, 0)[c] - mean[c];
      squares[c] += scratch.sums(p, 1)[c] + delta * delta * share * static_cast<double>(before);
      mean[c] += delta * share;
    }
  }
}

// The factors that turn x - mean into y.
template <class T>
void fill_scale_and_shift(const Extent& extent, const T* rstd, const BatchNormParameters& parameters, T* scale,
                          T* shift) noexcept {
  for (std::int64_t c = 0; c < extent.channels; ++c) {
    scale[c] = value_or(parameters.gamma, c, T(1)) * rstd[c];
    shift[c] = value_or(parameters.beta, c, T(0));
  }
}

template <class T>
void apply(const Extent& extent, const ConstTensorView& x, const TensorView& y, const T* mean, const T* rstd,
           const BatchNormParameters& parameters, bool relu, const Scratch<T>& scratch) noexcept {
  T *scale = scratch.factors(0), *shift = scratch.factors(1);
  fill_scale_and_shift(extent, rstd, parameters, scale, shift);
  const BatchNormLoops& loops = batch_norm_loops().of(x.dtype());
  extent.each_chunk([&](std::int64_t row, std::int64_t rows) {
    const std::int64_t at = row * extent.channels;
    loops.apply(elements<T>(x) + at, elements<T>(y) + at, rows, extent.channels, mean, scale, shift, relu);
  });
}

template <class T>
void train(const ConstTensorView& x, const BatchNormParameters& parameters, const TensorView& y,
           const BatchNormMoments& moments, const BatchNormSettings& options, std::byte* memory) noexcept {
  const Extent extent(x.shape());
  const Scratch<T> scratch = {extent, memory};
  const BatchNormLoops& loops = batch_norm_loops().of(x.dtype());
  scratch.each_piece([&](std::int64_t row, std::int64_t rows, double* mean, double* squares) {
    loops.moments(elements<T>(x) + row * extent.channels, rows, extent.channels, 0, mean, squares);
  });
  join_moments(extent, scratch);
  T *mean = elements<T>(moments.mean), *variance = elements<T>(moments.variance), *rstd = elements<T>(moments.rstd);
  for (std::int64_t c = 0; c < extent.channels; ++c) {
    const double spread = scratch.sums(0, 1)[c] / static_cast<double>(std::max<std::int64_t>(extent.rows, 1));
    mean[c] = static_cast<T>(scratch.sums(0, 0)[c]);
    variance[c] = static_cast<T>(spread);
    rstd[c] = static_cast<T>(1 / std::sqrt(spread + options.epsilon));
  }
  apply(extent, x, y, mean, rstd, parameters, options.relu, scratch);
}

template <class T>
void infer(const ConstTensorView& x, const ConstTensorView& mean, const ConstTensorView& variance,
           const BatchNormParameters& parameters, const TensorView& y, const BatchNormSettings& options,
           std::byte* memory) noexcept {
  const Extent extent(x.shape());
  const Scratch<T> scratch = {extent, memory};
  T* rstd = scratch.factors(2);
  for (std::int64_t c = 0; c < extent.channels; ++c)
    rstd[c] = static_cast<T>(1 / std::sqrt(static_cast<double>(elements<T>(variance)[c]) + options.epsilon));
  apply(extent, x, y, elements<T>(mean), rstd, parameters, options.relu, scratch);
}

template <class T>
void apply_again(const ConstTensorView& x, const ConstTensorView& mean, const ConstTensorView& rstd,
                 const BatchNormParameters& parameters, bool relu, const TensorView& y, std::byte* memory) noexcept {
  const Extent extent(x.shape());
  apply(extent, x, y, elements<T>(mean), elements<T>(rstd), parameters, relu, Scratch<T>{extent, memory});
}

template <class T>
void differentiate(const ConstTensorView& x, const ConstTensorView& dy, const ConstTensorView& mean,
                   const ConstTensorView& rstd, const BatchNormParameters& parameters, bool relu,
                   const BatchNormGradients& gradients, std::byte* memory) noexcept {
  const Extent extent(x.shape());
  const Scratch<T> scratch = {extent, memory};
  const BatchNormLoops& loops = batch_norm_loops().of(x.dtype());
  fill_scale_and_shift(extent, elements<T>(rstd), parameters, scratch.factors(3), scratch.factors(4));
  const BatchNormForward forward = {elements<T>(mean), relu ? scratch.factors(3) : nullptr, scratch.factors(4)};
  scratch.each_piece([&](std::int64_t row, std::int64_t rows, double* sum, double* product) {
    const std::int64_t at = row * extent.channels;
    loops.gradient_sums(elements<T>(x) + at, elements<T>(dy) + at, forward, rows, extent.channels, sum, product);
  });
  double *sum = scratch.sums(0, 0), *product = scratch.sums(0, 1);
  for (std::int64_t p = 1; p < extent.pieces; ++p)
    for (std::int64_t c = 0; c < 2 * extent.channels; ++c) sum[c] += scratch.sums(p, 0)[c];
  T *scale = scratch.factors(0), *slope = scratch.factors(1), *shift = scratch.factors(2);
  const double n = static_cast<double>(std::max<std::int64_t>(extent.rows, 1));
  for (std::int64_t c = 0; c < extent.channels; ++c) {
    const double r = static_cast<double>(elements<T>(rstd)[c]),
                 factor = static_cast<double>(value_or(parameters.gamma, c, T(1))) * r;
    elements<T>(gradients.dgamma)[c] = static_cast<T>(product[c] * r);
    elements<T>(gradients.dbeta)[c] = static_cast<T>(sum[c]);
    scale[c] = static_cast<T>(factor);
    slope[c] = static_cast<T>(-factor * r * r * product[c] / n);
    shift[c] = static_cast<T>(-factor * sum[c] / n);
  }
  extent.each_chunk([&](std::int64_t row, std::int64_t rows) {
    const std::int64_t at = row * extent.channels;
    loops.gradient(elements<T>(x) + at, elements<T>(dy) + at, forward, elements<T>(gradients.dx) + at, rows,
                   extent.channels, scale, slope, shift);
  });
}

}  // namespace

std::size_t batch_norm_scratch_bytes(const Shape& x, DType dtype) noexcept {
  const Extent extent(x);
  return dtype == f32 ? Scratch<float>::bytes(extent) : Scratch<double>::bytes(extent);
}

void batch_norm_training(const ConstTensorView& x, const BatchNormParameters& parameters, const TensorView& y,
                         const BatchNormMoments& moments, const BatchNormSettings& options,
                         std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(is_supported(x.dtype()) && x.shape() == y.shape() &&
                 scratch.size() >= batch_norm_scratch_bytes(x.shape(), x.dtype()));
  (x.dtype() == f32 ? train<float> : train<double>)(x, parameters, y, moments, options, scratch.data());
}

void batch_norm_inference(const ConstTensorView& x, const ConstTensorView& mean, const ConstTensorView& variance,
                          const BatchNormParameters& parameters, const TensorView& y, const BatchNormSettings& options,
                          std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(is_supported(x.dtype()) && x.shape() == y.shape() &&
                 scratch.size() >= batch_norm_scratch_bytes(x.shape(), x.dtype()));
  (x.dtype() == f32 ? infer<float> : infer<double>)(x, mean, variance, parameters, y, options, scratch.data());
}

void batch_norm_apply(const ConstTensorView& x, const ConstTensorView& mean, const ConstTensorView& rstd,
                      const BatchNormParameters& parameters, bool relu, const TensorView& y,
                      std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(is_supported(x.dtype()) && x.shape() == y.shape() &&
                 scratch.size() >= batch_norm_scratch_bytes(x.shape(), x.dtype()));
  (x.dtype() == f32 ? apply_again<float> : apply_again<double>)(x, mean, rstd, parameters, relu, y, scratch.data());
}

void batch_norm_gradient(const ConstTensorView& x, const ConstTensorView& dy, const ConstTensorView& mean,
                         const ConstTensorView& rstd, const BatchNormParameters& parameters, bool relu,
                         const BatchNormGradients& gradients, std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(is_supported(x.dtype()) && x.shape() == dy.shape() &&
                 scratch.size() >= batch_norm_scratch_bytes(x.shape(), x.dtype()));
  (x.dtype() == f32 ? differentiate<float> : differentiate<double>)(x, dy, mean, rstd, parameters, relu, gradients,
                                                                    scratch.data());
}

}  // namespace plimsoll::internal
