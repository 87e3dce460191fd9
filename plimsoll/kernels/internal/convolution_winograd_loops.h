// The transforms of Winograd's short convolutions: F(2x2, 3x3), with
//   B' = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1],  A' = [1 1 1 0; 0 1 -1 -1],  G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0
//   0 1].
// Included by convolution_loops.cc only.
#pragma once

#include "plimsoll/kernels/internal/convolution_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

// Patches of 4x4 pixels to B' d B. A row of B' d needs two rows of d, which are read again for each: sixteen vectors
// would not fit in registers.
template <class T>
void winograd_input(const void* const* pixels, std::int64_t channels, void* to, std::int64_t plane) {
  using V = Vector<T>;
  const auto row = [&](int i, std::int64_t c, V* d) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) d[j] = load(static_cast<const T*>(pixels[i * 4 + j]) + c);
  };
  const auto finish = [&](int i, std::int64_t c, const V* d) {
    T* const at = static_cast<T*>(to) + i * 4 * plane + c;
    store(at, d[0] - d[2]);
    store(at + plane, d[1] + d[2]);
    store(at + 2 * plane, d[2] - d[1]);
    store(at + 3 * plane, d[1] - d[3]);
  };
  for (std::int64_t c = 0; c < channels; c += kLanesOf<T>) {
    V a[4], b[4], d[4];
    row(0, c, a), row(2, c, b);
    for (int j = 0; j < 4; ++j) d[j] = a[j] - b[j];
    finish(0, c, d);
    row(1, c, a);
    for (int j = 0; j < 4; ++j) d[j] = a[j] + b[j];
    finish(1, c, d);
    for (int j = 0; j < 4; ++j) d[j] = b[j] - a[j];
    finish(2, c, d);
    row(3, c, b);
    for (int j = 0; j < 4; ++j) d[j] = a[j] - b[j];
    finish(3, c, d);
  }
}

// A' m A, then + bias and the rectifier, to 2x2 pixels; null ones are skipped.
template <class T>
void winograd_output(const void* from, std::int64_t plane, std::int64_t channels, const void* bias,
                     const Rectifier& rectifier, void* const* pixels) {
  using V = Vector<T>;
  const V most = all<V>(rectifier.most);
  for (std::int64_t c = 0; c < channels; c += kLanesOf<T>) {
    V half[8];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto at = [&](int i) { return load(static_cast<const T*>(from) + (i * 4 + j) * plane + c); };
      const V sum = at(1) + at(2), difference = at(1) - at(2);
      half[j] = at(0) + sum, half[4 + j] = difference - at(3);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const V* row = half + i * 4;
      V result[2] = {row[0] + row[1] + row[2], row[1] - row[2] - row[3]};
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        if (bias) result[j] += load(static_cast<const T*>(bias) + c);
        if (rectifier.on) result[j] = rectified(result[j], most);
        if (pixels[i * 2 + j]) store(static_cast<T*>(pixels[i * 2 + j]) + c, result[j]);
      }
    }
  }
}

// 2x2 pixels of dy to A dy A'.
template <class T>
void winograd_slope(const void* const* pixels, std::int64_t channels, void* to, std::int64_t plane) {
  using V = Vector<T>;
  for (std::int64_t c = 0; c < channels; c += kLanesOf<T>) {
    V half[8];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const V above = load(static_cast<const T*>(pixels[j]) + c);
      const V below = load(static_cast<const T*>(pixels[2 + j]) + c);
      half[j] = above, half[2 + j] = above + below, half[4 + j] = above - below, half[6 + j] = V{} - below;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const V a = half[i * 2], b = half[i * 2 + 1];
      T* const row = static_cast<T*>(to) + i * 4 * plane + c;
      store(row, a);
      store(row + plane, a + b);
      store(row + 2 * plane, a - b);
      store(row + 3 * plane, V{} - b);
    }
  }
}

// G g G' of one vector or one element: taps `tap` apart, results `plane` apart.
template <class V, class T>
inline void winograd_filter_at(const T* g, std::int64_t tap, T* to, std::int64_t plane) noexcept {
  const auto get = [&](int t) {
    V v;
    __builtin_memcpy(&v, g + t * tap, sizeof v);
    return v;
  };
  const auto put = [&](int q, V v) { __builtin_memcpy(to + q * plane, &v, sizeof v); };
  V half[12];
  for (int i = 0; i < 3; ++i) {
    const V ends = get(i) + get(6 + i), middle = get(3 + i);
    half[i] = get(i), half[3 + i] = (ends + middle) * T(0.5), half[6 + i] = (ends - middle) * T(0.5);
    half[9 + i] = get(6 + i);
  }
  for (int i = 0; i < 4; ++i) {
    const V ends = half[i * 3] + half[i * 3 + 2], middle = half[i * 3 + 1];
    put(i * 4, half[i * 3]), put(i * 4 + 1, (ends + middle) * T(0.5)), put(i * 4 + 2, (ends - middle) * T(0.5));
    put(i * 4 + 3, half[i * 3 + 2]);
  }
}

// Row p of `to` is made of x[p * deep + j * along] for j < n.
template <class T>
void winograd_filter(const void* from, std::int64_t tap, std::int64_t k, std::int64_t deep, std::int64_t along,
                     std::int64_t n, void* to, std::int64_t plane) {
  constexpr std::int64_t kWidth = kLanesOf<T>;
  const T* g = static_cast<const T*>(from);
  T* row = static_cast<T*>(to);
  for (std::int64_t p = 0; p < k; ++p, g += deep, row += n) {
    if (along == 1)
      for (std::int64_t j = 0; j < n; j += kWidth) winograd_filter_at<Vector<T>, T>(g + j, tap, row + j, plane);
    else
      for (std::int64_t j = 0; j < n; ++j) winograd_filter_at<T, T>(g + j * along, tap, row + j, plane);
  }
}

// G' s G: n of the 4x4 sums, `plane` apart, to 3x3 taps, `tap` apart.
template <class T>
void winograd_taps(const void* from, std::int64_t plane, std::int64_t n, void* to, std::int64_t tap) {
  using V = Vector<T>;
  const auto join = [](const V& a, const V& b, const V& c, const V& d, V* result, int step) {
    const V sum = (b + c) * T(0.5), difference = (b - c) * T(0.5);
    result[0] = a + sum, result[step] = difference, result[2 * step] = sum + d;
  };
  for (std::int64_t e = 0; e < n; e += kLanesOf<T>) {
    V half[12];
    for (int j = 0; j < 4; ++j) {
      const auto at = [&](int i) { return load(static_cast<const T*>(from) + (i * 4 + j) * plane + e); };
      join(at(0), at(1), at(2), at(3), half + j, 4);
    }
    for (int i = 0; i < 3; ++i) {
      V taps[3];
      join(half[i * 4], half[i * 4 + 1], half[i * 4 + 2], half[i * 4 + 3], taps, 1);
      for (int j = 0; j < 3; ++j) store(static_cast<T*>(to) + (i * 3 + j) * tap + e, taps[j]);
    }
  }
}

}  // namespace
}  // namespace plimsoll::internal
