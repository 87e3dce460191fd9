// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/loss_loops.h"
#include "plimsoll/kernels/internal/logistic.h"
#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"

namespace plimsoll::internal {
namespace {

// A vector of floats, or one double: the operations below work on both.
template <class T>
struct Pack;
template <>
struct Pack<float> {
  using V = F32;
  static constexpr std::int64_t kWidth = kLanes;
  static V get(const float* p) noexcept { return load(p); }
  static V get_some(const float* p, std::int64_t n) noexcept { return load_some(p, n); }
  static void put(float* p, V v) noexcept { store(p, v); }
  static void put_some(float* p, V v, std::int64_t n) noexcept { store_some(p, v, n); }
};
template <>
struct Pack<double> {
  using V = double;
  static constexpr std::int64_t kWidth = 1;
  static V get(const double* p) noexcept { return *p; }
  static V get_some(const double*, std::int64_t) noexcept { return 0; }
  static void put(double* p, V v) noexcept { *p = v; }
  static void put_some(double*, V, std::int64_t) noexcept {}
};

inline double absolute(double x) noexcept { return __builtin_fabs(x); }
inline double exp_of(double x) noexcept { return ::exp(x); }
inline double log1p_of(double x) noexcept { return ::log1p(x); }
inline F32 constant(float x, F32) noexcept { return splat(x); }
inline double constant(double x, double) noexcept { return x; }

// `e` is x - y.
template <ElementLoss L, class V, class T>
inline V loss_of(V x, V y, T delta) noexcept {
  const V e = x - y, zero = constant(T(0), x);
  if constexpr (L == kSigmoidCrossEntropy) return (x > zero ? x : zero) - x * y + log1p_of(exp_of(-absolute(x)));
  if constexpr (L == kSquaredError) return e * e;
  if constexpr (L == kAbsoluteError) return absolute(e);
  const V size = absolute(e), small = e * e * T(0.5), large = size * delta - T(0.5) * delta * delta;
  return size <= constant(delta, x) ? small : large;
}

template <ElementLoss L, class V, class T>
inline V derivative_of(V x, V y, T delta) noexcept {
  const V e = x - y, zero = constant(T(0), x);
  if constexpr (L == kSigmoidCrossEntropy) return logistic(x) - y;
  if constexpr (L == kSquaredError) return e + e;
  const V bound = constant(L == kHuber ? delta : T(1), x);
  const V signed_bound = e > zero ? bound : e < zero ? -bound : e;
  if constexpr (L == kAbsoluteError) return signed_bound;
  return absolute(e) <= bound ? e : signed_bound;
}

template <ElementLoss L, class T>
void loss_elements(const T* x, const T* y, std::int64_t n, T* values, T* gradient, T factor, T delta) {
  using P = Pack<T>;
  std::int64_t i = 0;
  for (; i + P::kWidth <= n; i += P::kWidth) {
    const auto a = P::get(x + i), b = P::get(y + i);
    if (values) P::put(values + i, loss_of<L>(a, b, delta));
    if (gradient) P::put(gradient + i, derivative_of<L>(a, b, delta) * factor);
  }
  if (i == n) return;
  const auto a = P::get_some(x + i, n - i), b = P::get_some(y + i, n - i);
  if (values) P::put_some(values + i, loss_of<L>(a, b, delta), n - i);
  if (gradient) P::put_some(gradient + i, derivative_of<L>(a, b, delta) * factor, n - i);
}

template <class T>
double sum_of(const T* x, std::int64_t n) {
  constexpr int kChains = 2 * kVectorBytes / int(sizeof(T));
  T sums[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains <= n; i += kChains)
    for (int c = 0; c < kChains; ++c) sums[c] += x[i + c];
  double total = 0;
  for (int c = 0; c < kChains; ++c) total += double(sums[c]);
  for (; i < n; ++i) total += double(x[i]);
  return total;
}

template <class T>
double exp_sum(const T* x, std::int64_t n, T shift, T* e) {
  using P = Pack<T>;
  double total = 0;
  for (std::int64_t start = 0; start < n; start += kLossTile) {
    const std::int64_t end = start + kLossTile < n ? start + kLossTile : n;
    auto sum = constant(T(0), typename P::V{});
    std::int64_t i = start;
    for (; i + P::kWidth <= end; i += P::kWidth) {
      const auto value = exp_of(P::get(x + i) - shift);
      sum += value;
      if (e) P::put(e + i, value);
    }
    T lanes[P::kWidth];
    P::put(lanes, sum);
    for (std::int64_t lane = 0; lane < P::kWidth; ++lane) total += double(lanes[lane]);
    if (i == end) continue;
    const auto value = exp_of(P::get_some(x + i, end - i) - shift);
    P::put(lanes, value);
    for (std::int64_t lane = 0; lane < end - i; ++lane) {
      total += double(lanes[lane]);
      if (e) e[i + lane] = lanes[lane];
    }
  }
  return total;
}

template <class T>
void weigh(const T* x, const T* y, std::int64_t n, T shift, double* sum, double* product) {
  constexpr int kChains = 4;
  double sums[kChains] = {}, products[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains <= n; i += kChains)
    for (int c = 0; c < kChains; ++c) {
      sums[c] += double(y[i + c]);
      products[c] += y[i + c] == 0 ? 0.0 : double(x[i + c] - shift) * double(y[i + c]);
    }
  *sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  *product = (products[0] + products[1]) + (products[2] + products[3]);
  for (; i < n; ++i) {
    *sum += double(y[i]);
    *product += y[i] == 0 ? 0.0 : double(x[i] - shift) * double(y[i]);
  }
}

template <class T>
void scale_minus(T* e, const T* y, std::int64_t n, T scale, T factor) {
  if (!y) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) e[i] = e[i] * scale;
    return;
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) e[i] = e[i] * scale - y[i] * factor;
}

template <class T>
constexpr LossLoopsOf<T> kLossLoopsOf = {{loss_elements<kSigmoidCrossEntropy, T>, loss_elements<kSquaredError, T>,
                                          loss_elements<kAbsoluteError, T>, loss_elements<kHuber, T>},
                                         sum_of<T>,
                                         exp_sum<T>,
                                         weigh<T>,
                                         scale_minus<T>};

}  // namespace

constinit const LossLoops PLIMSOLL_INSTRUCTION_SET::loss_loops = {kLossLoopsOf<float>, kLossLoopsOf<double>};

}  // namespace plimsoll::internal
