// Builds the table of matrix product loops for the instruction set this file is compiled for. Included by the
// gemm_loops_*.cc files only.
#pragma once

#include "plimsoll/kernels/internal/gemm_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll {
namespace {

#if defined(__AVX512F__)
constexpr int kTileRows = 12;  // 24 of 32 registers accumulate.
#elif defined(__AVX2__)
constexpr int kTileRows = 6;  // 12 of 16.
#else
constexpr int kTileRows = 4;
#endif

template <class T>
struct Tile {
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

template <class T, int kCount>
void pack(const void* data, std::int64_t count, std::int64_t k, std::int64_t along, std::int64_t deep, void* panel) {
  const T* x = static_cast<const T*>(data);
  T* to = static_cast<T*>(panel);
  if (count == kCount && along == 1) {
    for (std::int64_t p = 0; p < k; ++p, to += kCount)
      for (int i = 0; i < kCount; ++i) to[i] = x[p * deep + i];
    return;
  }
  if (count == kCount && deep == 1) {
    for (std::int64_t p = 0; p < k; ++p, to += kCount)
      for (int i = 0; i < kCount; ++i) to[i] = x[i * along + p];
    return;
  }
  for (std::int64_t p = 0; p < k; ++p, to += kCount)
    for (std::int64_t i = 0; i < kCount; ++i) to[i] = i < count ? x[i * along + p * deep] : T(0);
}

template <class T>
void multiply_tile(const void* a_panel, const void* b_panel, std::int64_t k, void* out, std::int64_t stride,
                   std::int64_t m, std::int64_t n, bool accumulate) {
  using X = Tile<T>;
  using V = typename X::V;
  const T* a = static_cast<const T*>(a_panel);
  const T* b = static_cast<const T*>(b_panel);
  T* c = static_cast<T*>(out);
  V sum[kTileRows][2] = {};
  for (std::int64_t p = 0; p < k; ++p, a += kTileRows, b += X::kColumns) {
    const V b0 = X::get(b), b1 = X::get(b + X::kWidth);
    __builtin_prefetch(b + 8 * X::kColumns);
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) {
      const V ai = a[i] - V{};
      sum[i][0] += ai * b0;
      sum[i][1] += ai * b1;
    }
  }
  if (m == kTileRows && n == X::kColumns) {
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i, c += stride) {
      X::put(c, accumulate ? sum[i][0] + X::get(c) : sum[i][0]);
      X::put(c + X::kWidth, accumulate ? sum[i][1] + X::get(c + X::kWidth) : sum[i][1]);
    }
    return;
  }
  alignas(64) T whole[kTileRows * X::kColumns];
  for (int i = 0; i < kTileRows; ++i) {
    X::put(whole + i * X::kColumns, sum[i][0]);
    X::put(whole + i * X::kColumns + X::kWidth, sum[i][1]);
  }
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const T value = whole[i * X::kColumns + j];
      c[i * stride + j] = accumulate ? c[i * stride + j] + value : value;
    }
}

template <class T>
constexpr GemmLoops kGemmOf = {kTileRows, Tile<T>::kColumns, pack<T, kTileRows>, pack<T, Tile<T>::kColumns>,
                               multiply_tile<T>};

constexpr GemmTable kGemmTable = {kGemmOf<float>, kGemmOf<double>};

}  // namespace
}  // namespace plimsoll
