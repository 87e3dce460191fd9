// Builds the table of attention loops for the instruction set this file is compiled for. Included by the
// attention_loops_*.cc files only.
#pragma once

#include "plimsoll/kernels/internal/attention_loops.h"
#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"

namespace plimsoll {
namespace {

constexpr int kChains = 2;

template <class T>
T scale_and_mask(T* s, std::int64_t n, T scale, const T* added, const bool* allowed) {
  constexpr T kNothing = -T(__builtin_inf());
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) s[i] *= scale;
  if (added) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) s[i] += added[i];
  }
  if (allowed)
    for (std::int64_t i = 0; i < n; ++i) s[i] = allowed[i] ? s[i] : kNothing;
  constexpr int kWidth = kChains * kVectorBytes / int(sizeof(T));
  T largest[kWidth];
  for (int c = 0; c < kWidth; ++c) largest[c] = kNothing;
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    for (int c = 0; c < kWidth; ++c) largest[c] = s[i + c] > largest[c] ? s[i + c] : largest[c];
  for (; i < n; ++i) largest[0] = s[i] > largest[0] ? s[i] : largest[0];
  for (int c = 1; c < kWidth; ++c) largest[0] = largest[c] > largest[0] ? largest[c] : largest[0];
  return largest[0];
}

float exp_row(float* s, std::int64_t n, float shift) {
  F32 sums[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes)
    for (int c = 0; c < kChains; ++c) {
      const F32 e = exp_of(load(s + i + c * kLanes) - shift);
      store(s + i + c * kLanes, e);
      sums[c] += e;
    }
  float total = 0;
  for (; i < n; i += kLanes) {
    const std::int64_t count = n - i < kLanes ? n - i : kLanes;
    const F32 e = exp_of(load_some(s + i, count) - shift);
    store_some(s + i, e, count);
    for (std::int64_t lane = 0; lane < count; ++lane) total += e[lane];
  }
  sums[0] += sums[1];
  for (int lane = 0; lane < kLanes; ++lane) total += sums[0][lane];
  return total;
}

double exp_row(double* s, std::int64_t n, double shift) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += s[i] = ::exp(s[i] - shift);
  return total;
}

template <class T>
void scale_row(T* x, std::int64_t n, T factor) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

template <class T>
T dot(const T* x, const T* y, std::int64_t n) {
  constexpr int kWidth = kChains * kVectorBytes / int(sizeof(T));
  T sums[kWidth] = {};
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    for (int c = 0; c < kWidth; ++c) sums[c] += x[i + c] * y[i + c];
  for (; i < n; ++i) sums[0] += x[i] * y[i];
  for (int half = kWidth / 2; half > 0; half /= 2)
    for (int c = 0; c < half; ++c) sums[c] += sums[c + half];
  return sums[0];
}

template <class T>
void score_gradient(const T* p, T* dp, std::int64_t n, T offset, T scale) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) dp[i] = p[i] * (dp[i] - offset) * scale;
}

template <class T>
constexpr AttentionLoopsOf<T> kAttentionOf = {scale_and_mask<T>, exp_row, scale_row<T>, dot<T>, score_gradient<T>};

constexpr AttentionLoops kAttentionLoops = {kAttentionOf<float>, kAttentionOf<double>};

}  // namespace
}  // namespace plimsoll
