// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/attention_loops.h"
#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"

namespace plimsoll::internal {
namespace {

constexpr int kChains = 2;

template <class T>
T scale_and_mask(T* s, std::int64_t n, T scale, const T* added, const bool* allowed) {
  using V = Vector<T>;
  constexpr T kNothing = -T(__builtin_inf());
  if (added) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) s[i] = s[i] * scale + added[i];
    scale = 1;
  }
  if (allowed) {
    for (std::int64_t i = 0; i < n; ++i) s[i] = allowed[i] ? s[i] * scale : kNothing;
    scale = 1;
  }
  V largest = V{} + kNothing;
  std::int64_t i = 0;
  for (; i + kLanesOf<T> <= n; i += kLanesOf<T>) {
    const V v = load(s + i) * scale;
    store(s + i, v);
    largest = v > largest ? v : largest;
  }
  T most = kNothing;
  for (; i < n; ++i) s[i] *= scale, most = s[i] > most ? s[i] : most;
  for (int lane = 0; lane < kLanesOf<T>; ++lane) most = largest[lane] > most ? largest[lane] : most;
  return most;
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
  Vector<T> sums[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains * kLanesOf<T> <= n; i += kChains * kLanesOf<T>)
    for (int c = 0; c < kChains; ++c) sums[c] += load(x + i + c * kLanesOf<T>) * load(y + i + c * kLanesOf<T>);
  T total = 0;
  for (; i < n; ++i) total += x[i] * y[i];
  sums[0] += sums[1];
  for (int lane = 0; lane < kLanesOf<T>; ++lane) total += sums[0][lane];
  return total;
}

template <class T>
void score_gradient(const T* p, T* dp, std::int64_t n, T offset, T scale) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) dp[i] = p[i] * (dp[i] - offset) * scale;
}

template <class T>
constexpr AttentionLoopsOf<T> kAttentionOf = {scale_and_mask<T>, exp_row, scale_row<T>, dot<T>, score_gradient<T>};

}  // namespace

constinit const AttentionLoops PLIMSOLL_INSTRUCTION_SET::attention_loops = {kAttentionOf<float>, kAttentionOf<double>};

}  // namespace plimsoll::internal
