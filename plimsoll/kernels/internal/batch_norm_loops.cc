// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/batch_norm_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kBlockRows = 64;  // Rows that are summed in the element type.
constexpr int kGroup = 4;                // Vectors of channels at once.

// Calls visit.run<V, n>(channel) for groups of n vectors or elements until all channels are visited.
template <class T, class F>
inline void each_group(std::int64_t channels, const F& visit) noexcept {
  using V = Vector<T>;
  constexpr std::int64_t kWidth = kLanesOf<T>;
  std::int64_t c = 0;
  for (; c + kGroup * kWidth <= channels; c += kGroup * kWidth) visit.template run<V, kGroup>(c);
  for (; c + kWidth <= channels; c += kWidth) visit.template run<V, 1>(c);
  for (; c < channels; ++c) visit.template run<T, 1>(c);
}

// Merges the mean and the squares of one block into the running ones.
template <class T>
struct MomentsBlock {
  const T* x;
  std::int64_t rows, channels, before;
  double *mean, *squares;

  template <class V, int kVectors>
  void run(std::int64_t c) const noexcept {
    constexpr std::int64_t kWidth = sizeof(V) / sizeof(T);
    V mean_of[kVectors] = {}, error[kVectors] = {}, square[kVectors] = {};
    const T* row = x + c;
    for (std::int64_t r = 0; r < rows; ++r, row += channels) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) mean_of[i] += load_as<V>(row + i * kWidth);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) mean_of[i] = mean_of[i] / static_cast<T>(rows);
    row = x + c;
    for (std::int64_t r = 0; r < rows; ++r, row += channels) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        const V distance = load_as<V>(row + i * kWidth) - mean_of[i];
        error[i] += distance;  // The rounding error of the mean.
        square[i] += distance * distance;
      }
    }
    T means[kVectors * kWidth], errors[kVectors * kWidth], all[kVectors * kWidth];
    std::memcpy(means, mean_of, sizeof means);
    std::memcpy(errors, error, sizeof errors);
    std::memcpy(all, square, sizeof all);
    const double n = static_cast<double>(rows), share = n / (static_cast<double>(before) + n);
    for (std::int64_t i = 0; i < kVectors * kWidth; ++i) {
      const double left = static_cast<double>(errors[i]) / n;
      const double delta = static_cast<double>(means[i]) + left - mean[c + i];
      squares[c + i] +=
          static_cast<double>(all[i]) - left * left * n + delta * delta * share * static_cast<double>(before);
      mean[c + i] += delta * share;
    }
  }
};

template <class T>
void moments(const void* data, std::int64_t rows, std::int64_t channels, std::int64_t before, double* mean,
             double* squares) {
  const T* x = static_cast<const T*>(data);
  for (; rows > 0; rows -= kBlockRows, x += kBlockRows * channels, before += kBlockRows)
    each_group<T>(channels, MomentsBlock<T>{x, rows < kBlockRows ? rows : kBlockRows, channels, before, mean, squares});
}

template <class T, bool kMasked>
struct GradientSumsBlock {
  const T *x, *dy;
  std::int64_t rows, channels;
  const T *mean, *scale, *shift;
  double *sum, *product;

  template <class V, int kVectors>
  void run(std::int64_t c) const noexcept {
    constexpr std::int64_t kWidth = sizeof(V) / sizeof(T);
    V sums[kVectors] = {}, products[kVectors] = {}, means[kVectors], scales[kVectors] = {}, shifts[kVectors] = {};
    for (int i = 0; i < kVectors; ++i) {
      means[i] = load_as<V>(mean + c + i * kWidth);
      if constexpr (kMasked)
        scales[i] = load_as<V>(scale + c + i * kWidth), shifts[i] = load_as<V>(shift + c + i * kWidth);
    }
    std::int64_t at = c;
    for (std::int64_t r = 0; r < rows; ++r, at += channels)
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        const V distance = load_as<V>(x + at + i * kWidth) - means[i];
        V d = load_as<V>(dy + at + i * kWidth);
        if constexpr (kMasked) d = distance * scales[i] + shifts[i] > V{} ? d : V{};
        sums[i] += d;
        products[i] += d * distance;
      }
    T first[kVectors * kWidth], second[kVectors * kWidth];
    std::memcpy(first, sums, sizeof first);
    std::memcpy(second, products, sizeof second);
    for (std::int64_t i = 0; i < kVectors * kWidth; ++i) {
      sum[c + i] += static_cast<double>(first[i]);
      product[c + i] += static_cast<double>(second[i]);
    }
  }
};

template <class T>
void gradient_sums(const void* x, const void* dy, const BatchNormForward& forward, std::int64_t rows,
                   std::int64_t channels, double* sum, double* product) {
  const T *mean = static_cast<const T*>(forward.mean), *scale = static_cast<const T*>(forward.scale),
          *shift = static_cast<const T*>(forward.shift);
  for (std::int64_t r = 0; r < rows; r += kBlockRows) {
    const std::int64_t count = rows - r < kBlockRows ? rows - r : kBlockRows;
    const T *xs = static_cast<const T*>(x) + r * channels, *dys = static_cast<const T*>(dy) + r * channels;
    if (scale)
      each_group<T>(channels, GradientSumsBlock<T, true>{xs, dys, count, channels, mean, scale, shift, sum, product});
    else
      each_group<T>(channels, GradientSumsBlock<T, false>{xs, dys, count, channels, mean, scale, shift, sum, product});
  }
}

template <class T, bool kRelu>
void apply_rows(const T* x, T* y, std::int64_t rows, std::int64_t channels, const T* mean, const T* scale,
                const T* shift) noexcept {
  for (std::int64_t r = 0; r < rows; ++r, x += channels, y += channels)
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const T value = (x[c] - mean[c]) * scale[c] + shift[c];
      y[c] = kRelu && value < T(0) ? T(0) : value;
    }
}

template <class T>
void apply(const void* x, void* y, std::int64_t rows, std::int64_t channels, const void* mean, const void* scale,
           const void* shift, bool relu) {
  (relu ? apply_rows<T, true> : apply_rows<T, false>)(static_cast<const T*>(x), static_cast<T*>(y), rows, channels,
                                                      static_cast<const T*>(mean), static_cast<const T*>(scale),
                                                      static_cast<const T*>(shift));
}

template <class T, bool kMasked>
void gradient_rows(const T* x, const T* dy, const BatchNormForward& forward, T* dx, std::int64_t rows,
                   std::int64_t channels, const T* scale, const T* slope, const T* shift) noexcept {
  const T *mean = static_cast<const T*>(forward.mean), *y_scale = static_cast<const T*>(forward.scale),
          *y_shift = static_cast<const T*>(forward.shift);
  for (std::int64_t i = 0; i < rows * channels; i += channels)
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const T distance = x[i + c] - mean[c];
      const T d = !kMasked || distance * y_scale[c] + y_shift[c] > T(0) ? dy[i + c] : T(0);
      dx[i + c] = d * scale[c] + (distance * slope[c] + shift[c]);
    }
}

template <class T>
void gradient(const void* x, const void* dy, const BatchNormForward& forward, void* dx, std::int64_t rows,
              std::int64_t channels, const void* scale, const void* slope, const void* shift) {
  (forward.scale ? gradient_rows<T, true>
                 : gradient_rows<T, false>)(static_cast<const T*>(x), static_cast<const T*>(dy), forward,
                                            static_cast<T*>(dx), rows, channels, static_cast<const T*>(scale),
                                            static_cast<const T*>(slope), static_cast<const T*>(shift));
}

template <class T>
constexpr BatchNormLoops kBatchNormOf = {moments<T>, gradient_sums<T>, apply<T>, gradient<T>};

}  // namespace

constinit const BatchNormTable PLIMSOLL_INSTRUCTION_SET::batch_norm_loops = {kBatchNormOf<float>, kBatchNormOf<double>};

}  // namespace plimsoll::internal
