// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/layer_norm_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

template <class T>
double total_of(Vector<T> v) noexcept {
  double sum = 0;
  for (std::int64_t i = 0; i < kLanesOf<T>; ++i) sum += double(v[i]);
  return sum;
}

constexpr std::int64_t kBlock = 2048;  // Elements summed in their own type; blocks are summed in f64.
constexpr int kChains = 8;             // Vectors summed independently.

// Sum of f(x[i]), f for vectors and for elements.
template <class T, class F>
double sum_mapped(const T* x, std::int64_t n, F f) noexcept {
  double total = 0;
  for (; n > 0; n -= kBlock, x += kBlock) {
    const std::int64_t count = n < kBlock ? n : kBlock;
    Vector<T> sums[kChains] = {};
    std::int64_t i = 0;
    for (; i + kChains * kLanesOf<T> <= count; i += kChains * kLanesOf<T>)
#pragma GCC unroll 8
      for (int c = 0; c < kChains; ++c) sums[c] += f(load(x + i + c * kLanesOf<T>));
    for (; i + kLanesOf<T> <= count; i += kLanesOf<T>) sums[0] += f(load(x + i));
#pragma GCC unroll 8
    for (int c = 1; c < kChains; ++c) sums[0] += sums[c];
    total += total_of<T>(sums[0]);
    for (; i < count; ++i) total += double(f(x[i]));
  }
  return total;
}

template <class T>
double sum_row(const T* x, std::int64_t n) {
  return sum_mapped(x, n, [](auto v) { return v; });
}

template <class T>
double squares_of_row(const T* x, std::int64_t n, T mean) {
  return sum_mapped(x, n, [mean](auto v) {
    const auto d = v - mean;
    return d * d;
  });
}

template <class T, bool kGamma, bool kBeta>
void normalize_as(const T* x, std::int64_t n, T mean, T rstd, const T* gamma, const T* beta, T* y) noexcept {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    T value = (x[i] - mean) * rstd;
    if constexpr (kGamma) value *= gamma[i];
    if constexpr (kBeta) value += beta[i];
    y[i] = value;
  }
}

template <class T>
void normalize(const T* x, std::int64_t n, T mean, T rstd, const T* gamma, const T* beta, T* y) {
  if (gamma)
    beta ? normalize_as<T, true, true>(x, n, mean, rstd, gamma, beta, y)
         : normalize_as<T, true, false>(x, n, mean, rstd, gamma, beta, y);
  else
    beta ? normalize_as<T, false, true>(x, n, mean, rstd, gamma, beta, y)
         : normalize_as<T, false, false>(x, n, mean, rstd, gamma, beta, y);
}

template <class T, bool kGamma, bool kParameters>
void gradient_sums_as(const T* x, const T* dy, std::int64_t n, T mean, T rstd, const T* gamma, T* dgamma, T* dbeta,
                      double* sums) noexcept {
  double first = 0, second = 0;
  for (std::int64_t start = 0; start < n; start += kBlock) {
    const std::int64_t end = start + kBlock < n ? start + kBlock : n;
    Vector<T> firsts[2] = {}, seconds[2] = {};
    std::int64_t i = start;
    const auto step = [&](auto get, [[maybe_unused]] auto put, std::int64_t at, auto& one, auto& two) {
      const auto g = get(dy + at);
      const auto hat = (get(x + at) - mean) * rstd;
      if constexpr (kParameters) {
        put(dgamma + at, get(dgamma + at) + g * hat);
        put(dbeta + at, get(dbeta + at) + g);
      }
      auto weighted = g;
      if constexpr (kGamma) weighted = g * get(gamma + at);
      one += weighted;
      two += weighted * hat;
    };
    const auto get = [](const T* p) { return load(p); };
    const auto put = [](T* p, Vector<T> v) { store(p, v); };
    for (; i + 2 * kLanesOf<T> <= end; i += 2 * kLanesOf<T>) {
      step(get, put, i, firsts[0], seconds[0]);
      step(get, put, i + kLanesOf<T>, firsts[1], seconds[1]);
    }
    first += total_of<T>(firsts[0] + firsts[1]);
    second += total_of<T>(seconds[0] + seconds[1]);
    for (; i < end; ++i) step([](const T* p) { return *p; }, [](T* p, T v) { *p = v; }, i, first, second);
  }
  sums[0] = first;
  sums[1] = second;
}

template <class T>
void gradient_sums(const T* x, const T* dy, std::int64_t n, T mean, T rstd, const T* gamma, T* dgamma, T* dbeta,
                   double* sums) {
  if (gamma)
    dgamma ? gradient_sums_as<T, true, true>(x, dy, n, mean, rstd, gamma, dgamma, dbeta, sums)
           : gradient_sums_as<T, true, false>(x, dy, n, mean, rstd, gamma, dgamma, dbeta, sums);
  else
    dgamma ? gradient_sums_as<T, false, true>(x, dy, n, mean, rstd, gamma, dgamma, dbeta, sums)
           : gradient_sums_as<T, false, false>(x, dy, n, mean, rstd, gamma, dgamma, dbeta, sums);
}

template <class T>
void gradient(const T* x, const T* dy, std::int64_t n, T mean, T rstd, const T* gamma, T first, T second, T* dx) {
  if (gamma) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) dx[i] = rstd * (dy[i] * gamma[i] - first - (x[i] - mean) * rstd * second);
    return;
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) dx[i] = rstd * (dy[i] - first - (x[i] - mean) * rstd * second);
}

template <class T>
constexpr LayerNormLoopsOf<T> kLayerNormLoopsOf = {sum_row<T>, squares_of_row<T>, normalize<T>, gradient_sums<T>,
                                                   gradient<T>};

}  // namespace

constinit const LayerNormLoops PLIMSOLL_INSTRUCTION_SET::layer_norm_loops = {kLayerNormLoopsOf<float>,
                                                                             kLayerNormLoopsOf<double>};

}  // namespace plimsoll::internal
