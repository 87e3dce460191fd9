// Compiled once per instruction set: see instruction_sets.h.
#include <math.h>

#include "plimsoll/kernels/internal/softmax_loops.h"
#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"
#include "plimsoll/kernels/internal/vector_math_f64.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kBlock = 2048;  // Elements summed in the element type before the total.

// The first n lanes of x, else the number.
template <class T>
inline Vector<T> first_or(Vector<T> x, std::int64_t n, T other) noexcept {
  using Index = std::conditional_t<sizeof(T) == 4, I32, I64>;
  Index lane;
  for (int i = 0; i < kLanesOf<T>; ++i) lane[i] = i;
  using Number = ElementOf<Index>;
  return lane < static_cast<Number>(n) ? x : all<Vector<T>>(other);
}

template <class T>
inline T largest_lane(Vector<T> x) noexcept {
  T result = x[0];
  for (int i = 1; i < kLanesOf<T>; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

template <class T>
inline double sum_of_lanes(Vector<T> x) noexcept {
  T lanes[kLanesOf<T>];
  store(lanes, x);
  for (std::int64_t half = kLanesOf<T> / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return double(lanes[0]);
}

// Calls visit(i, vector) on the whole vectors of a row of n and rest(i, count) on what remains; two of the former at a
// time, with their numbers 0 and 1, so that they can be folded apart.
template <class T, class Whole, class Rest>
[[gnu::always_inline]] inline void each_vector(std::int64_t n, Whole whole, Rest rest) noexcept {
  constexpr std::int64_t kWidth = kLanesOf<T>;
  std::int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) whole(i, 0), whole(i + kWidth, 1);
  if (i + kWidth <= n) whole(i, 0), i += kWidth;
  if (i < n) rest(i, n - i);
}

// Sums blocks of value(i), a vector, and rest(i, count), a vector with zeros beyond, in the element type, and the
// blocks in double precision.
template <class T, class Whole, class Rest>
[[gnu::always_inline]] inline double sum_blocks(std::int64_t n, Whole whole, Rest rest) noexcept {
  double total = 0;
  for (std::int64_t start = 0; start < n; start += kBlock) {
    Vector<T> sums[2] = {};
    each_vector<T>(
        n - start < kBlock ? n - start : kBlock, [&](std::int64_t i, int chain) { sums[chain] += whole(start + i); },
        [&](std::int64_t i, std::int64_t count) { sums[0] += rest(start + i, count); });
    total += sum_of_lanes<T>(sums[0] + sums[1]);
  }
  return total;
}

template <class T>
inline T largest_of(const T* x, std::int64_t n) noexcept {
  constexpr T kLowest = -static_cast<T>(__builtin_inf());
  Vector<T> best[2] = {all<Vector<T>>(kLowest), all<Vector<T>>(kLowest)};
  const auto take = [&](Vector<T> v, int chain) { best[chain] = v > best[chain] ? v : best[chain]; };
  each_vector<T>(
      n, [&](std::int64_t i, int chain) { take(load(x + i), chain); },
      [&](std::int64_t i, std::int64_t count) { take(first_or<T>(load_some(x + i, count), count, kLowest), 0); });
  return largest_lane<T>(best[0] > best[1] ? best[0] : best[1]);
}

// Everything by value: otherwise a store could alias the next load.
template <bool kStores, class T>
[[gnu::always_inline]] inline double exp_shifted_of(const T* x, T* y, std::int64_t n, T shift) noexcept {
  const Vector<T> shifts = all<Vector<T>>(shift);
  return sum_blocks<T>(
      n,
      [=](std::int64_t i) {
        const Vector<T> e = exp_of_negative(load(x + i) - shifts);
        if constexpr (kStores) store(y + i, e);
        return e;
      },
      [=](std::int64_t i, std::int64_t count) {
        const Vector<T> e = exp_of_negative(load_some(x + i, count) - shifts);
        if constexpr (kStores) store_some(y + i, e, count);
        return first_or<T>(e, count, T(0));
      });
}
template <class T>
double exp_shifted(const T* x, T* y, std::int64_t n, T shift) {
  return exp_shifted_of<true, T>(x, y, n, shift);
}
template <class T>
double sum_exp(const T* x, std::int64_t n, T shift) {
  return exp_shifted_of<false, T>(x, nullptr, n, shift);
}

template <class T>
T largest(const T* x, std::int64_t n) {
  return largest_of(x, n);
}

template <class T>
void scale(T* y, std::int64_t n, T factor) {
  each_vector<T>(
      n, [&](std::int64_t i, int) { store(y + i, load(y + i) * factor); },
      [&](std::int64_t i, std::int64_t count) { store_some(y + i, load_some(y + i, count) * factor, count); });
}

template <class T>
void subtract(const T* x, T* y, std::int64_t n, T first, T second) {
  each_vector<T>(
      n, [&](std::int64_t i, int) { store(y + i, (load(x + i) - first) - second); },
      [&](std::int64_t i, std::int64_t count) {
        store_some(y + i, (load_some(x + i, count) - first) - second, count);
      });
}

template <class T>
double dot(const T* y, const T* dy, std::int64_t n) {
  return sum_blocks<T>(
      n, [&](std::int64_t i) { return load(y + i) * load(dy + i); },
      [&](std::int64_t i, std::int64_t count) { return load_some(y + i, count) * load_some(dy + i, count); });
}

template <class T>
double sum(const T* dy, std::int64_t n) {
  return sum_blocks<T>(
      n, [&](std::int64_t i) { return load(dy + i); },
      [&](std::int64_t i, std::int64_t count) { return load_some(dy + i, count); });
}

// out[i] = value(y[i], dy[i]), vector by vector.
template <class T, class F>
inline void combine(const T* y, const T* dy, T* out, std::int64_t n, F value) noexcept {
  each_vector<T>(
      n, [&](std::int64_t i, int) { store(out + i, value(load(y + i), load(dy + i))); },
      [&](std::int64_t i, std::int64_t count) {
        store_some(out + i, value(load_some(y + i, count), load_some(dy + i, count)), count);
      });
}
template <class T>
void apply_grad(const T* y, const T* dy, T* out, std::int64_t n, T dot) {
  combine(y, dy, out, n, [&](Vector<T> a, Vector<T> b) { return a * (b - dot); });
}
template <class T>
void apply_log_grad(const T* y, const T* dy, T* out, std::int64_t n, T sum) {
  combine(y, dy, out, n, [&](Vector<T> a, Vector<T> b) { return b - exp_of(a) * sum; });
}

template <class T>
void softmax(const T* x, T* y, std::int64_t n) {
  const double sum = exp_shifted_of<true, T>(x, y, n, largest_of(x, n));
  scale(y, n, static_cast<T>(1 / sum));
}
template <class T>
void log_softmax(const T* x, T* y, std::int64_t n) {
  const T shift = largest_of(x, n);
  subtract(x, y, n, shift, static_cast<T>(::log(exp_shifted_of<false, T>(x, nullptr, n, shift))));
}
template <class T>
void softmax_grad(const T* y, const T* dy, T* out, std::int64_t n) {
  apply_grad(y, dy, out, n, static_cast<T>(dot(y, dy, n)));
}
template <class T>
void log_softmax_grad(const T* y, const T* dy, T* out, std::int64_t n) {
  apply_log_grad(y, dy, out, n, static_cast<T>(sum(dy, n)));
}

template <class T>
constexpr SoftmaxLoops<T> kSoftmaxOf = {softmax<T>,       log_softmax<T>, softmax_grad<T>, log_softmax_grad<T>,
                                        largest<T>,       exp_shifted<T>, sum_exp<T>,      scale<T>,
                                        subtract<T>,      dot<T>,         sum<T>,          apply_grad<T>,
                                        apply_log_grad<T>};

}  // namespace

constinit const SoftmaxTable PLIMSOLL_INSTRUCTION_SET::softmax_loops = {kSoftmaxOf<float>, kSoftmaxOf<double>};

}  // namespace plimsoll::internal
