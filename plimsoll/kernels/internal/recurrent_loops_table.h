// Builds the table of recurrent loops for the instruction set this file is compiled for. Included by the
// recurrent_loops_*.cc files only.
#pragma once

#include "plimsoll/kernels/internal/recurrent_gates.h"
#include "plimsoll/kernels/internal/recurrent_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll {
namespace {

template <class T>
struct Panel {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  static constexpr std::int64_t kWidth = kVectorBytes / sizeof(T);
  static constexpr std::int64_t kColumns = 2 * kWidth;
  static V get(const T* p) noexcept {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void put(T* p, V v) noexcept { __builtin_memcpy(p, &v, sizeof v); }
};

// Four by four, from rows `from_stride` apart to rows `to_stride` apart.
inline void transpose_4(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) noexcept {
  typedef float F4 __attribute__((vector_size(16)));
  F4 r[4];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(&r[i], from + i * from_stride, sizeof(F4));
  const F4 low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
           high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const F4 low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
           high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * to_stride, &r[i], sizeof(F4));
}

// One panel of `count` columns.
template <class T>
void pack_panel(const T* b, std::int64_t k, std::int64_t count, std::int64_t deep, std::int64_t along, T* to) noexcept {
  constexpr std::int64_t kColumns = Panel<T>::kColumns;
  std::int64_t p = 0;
  if (count == kColumns && along == 1)
    for (; p < k; ++p) __builtin_memcpy(to + p * kColumns, b + p * deep, sizeof(T) * kColumns);
  if constexpr (sizeof(T) == 4)
    if (count == kColumns && deep == 1)
      for (; p + 4 <= k; p += 4)
        for (std::int64_t i = 0; i < kColumns; i += 4)
          transpose_4(b + i * along + p, along, to + p * kColumns + i, kColumns);
  for (; p < k; ++p)
    for (std::int64_t i = 0; i < kColumns; ++i) to[p * kColumns + i] = i < count ? b[p * deep + i * along] : T(0);
}

template <class T>
void pack_panels(const T* b, std::int64_t k, std::int64_t n, std::int64_t deep, std::int64_t along, T* to) {
  constexpr std::int64_t kColumns = Panel<T>::kColumns;
  for (std::int64_t j = 0; j < n; j += kColumns)
    pack_panel(b + j * along, k, n - j < kColumns ? n - j : kColumns, deep, along, to + j * k);
}

constexpr int kTileRows = 6;

template <class T, int kRows>
void multiply_tile(const T* a, std::int64_t a_along, std::int64_t a_deep, std::int64_t k, const T* panel,
                   std::int64_t n, T* c, std::int64_t c_stride, bool accumulate) noexcept {
  using X = Panel<T>;
  using V = typename X::V;
  V sum[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = V{};
  for (std::int64_t p = 0; p < k; ++p, panel += X::kColumns, a += a_deep) {
    const V b0 = X::get(panel), b1 = X::get(panel + X::kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V ai = a[i * a_along] - V{};
      sum[i][0] += ai * b0;
      sum[i][1] += ai * b1;
    }
  }
  if (n == X::kColumns) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += c_stride) {
      X::put(c, accumulate ? sum[i][0] + X::get(c) : sum[i][0]);
      X::put(c + X::kWidth, accumulate ? sum[i][1] + X::get(c + X::kWidth) : sum[i][1]);
    }
    return;
  }
  alignas(64) T row[X::kColumns];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += c_stride) {
    X::put(row, sum[i][0]);
    X::put(row + X::kWidth, sum[i][1]);
    for (std::int64_t j = 0; j < n; ++j) c[j] = accumulate ? c[j] + row[j] : row[j];
  }
}

template <class T>
void multiply_panels(const T* a, std::int64_t a_along, std::int64_t a_deep, std::int64_t m, std::int64_t k,
                     const T* panels, std::int64_t n, T* c, std::int64_t c_stride, bool accumulate) {
  constexpr std::int64_t kColumns = Panel<T>::kColumns;
  using Tile = void (*)(const T*, std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, T*, std::int64_t,
                        bool) noexcept;
  constexpr Tile kTiles[kTileRows] = {multiply_tile<T, 1>, multiply_tile<T, 2>, multiply_tile<T, 3>,
                                      multiply_tile<T, 4>, multiply_tile<T, 5>, multiply_tile<T, 6>};
  const std::int64_t tiles = (m + kTileRows - 1) / kTileRows;
  for (std::int64_t j = 0; j < n; j += kColumns, panels += k * kColumns) {
    const std::int64_t count = n - j < kColumns ? n - j : kColumns;
    for (std::int64_t t = 0, row = 0; t < tiles; ++t) {  // As even as can be.
      const std::int64_t rows = (m - row + tiles - t - 1) / (tiles - t);
      kTiles[rows - 1](a + row * a_along, a_along, a_deep, k, panels, count, c + row * c_stride + j, c_stride,
                       accumulate);
      row += rows;
    }
  }
}

template <class T>
constexpr RecurrentLoopsOf<T> kRecurrentOf = {Panel<T>::kColumns,
                                              pack_panels<T>,
                                              multiply_panels<T>,
                                              by_activations<SimpleGate, T>,
                                              by_activations<LstmGates, T>,
                                              by_activations<GruGates, T>,
                                              by_activations<GruReset<false>, T>,
                                              by_activations<GruReset<true>, T>,
                                              by_activations<LstmOutput, T>,
                                              by_activations<SimpleBack, T>,
                                              by_activations<LstmBack, T>,
                                              by_activations<GruBack, T>,
                                              by_activations<GruResetBack<false>, T>,
                                              by_activations<GruResetBack<true>, T>};

constexpr RecurrentLoops kRecurrentLoops = {kRecurrentOf<float>, kRecurrentOf<double>};

}  // namespace
}  // namespace plimsoll
