// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/optimizer_loops.h"

namespace plimsoll::internal {
namespace {

inline float root(float x) noexcept { return __builtin_sqrtf(x); }
inline double root(double x) noexcept { return __builtin_sqrt(x); }
inline float magnitude(float x) noexcept { return __builtin_fabsf(x); }
inline double magnitude(double x) noexcept { return __builtin_fabs(x); }

// Each rule is a struct made from the factors whose operator() updates one element.

struct Sgd {  // -rate
  template <class T>
  struct Of {
    explicit Of(const double* f) noexcept : rate(T(f[0])) {}
    T rate;
    void operator()(T& w, T g, T&, T&, T&) const noexcept { w += rate * g; }
  };
};

struct Momentum {  // v = f0 v + f1 g; w += f2 v + f3 g
  template <class T>
  struct Of {
    explicit Of(const double* f) noexcept : keep(T(f[0])), take(T(f[1])), of_v(T(f[2])), of_g(T(f[3])) {}
    T keep, take, of_v, of_g;
    void operator()(T& w, T g, T& v, T&, T&) const noexcept {
      v = keep * v + take * g;
      w += of_v * v + of_g * g;
    }
  };
};

template <bool kCentered, bool kMomentum>
struct Rmsprop {  // rho, 1 - rho, rate, epsilon, momentum
  template <class T>
  struct Of {
    explicit Of(const double* f) noexcept
        : rho(T(f[0])), rest(T(f[1])), rate(T(f[2])), epsilon(T(f[3])), momentum(T(f[4])) {}
    T rho, rest, rate, epsilon, momentum;
    void operator()(T& w, T g, T& s, T& a, T& m) const noexcept {
      s = rho * s + rest * (g * g);
      T variance = s;
      if constexpr (kCentered) {
        a = rho * a + rest * g;
        variance -= a * a;
      }
      const T step = rate * g / root(variance + epsilon);
      if constexpr (kMomentum) {
        m = momentum * m + step;
        w -= m;
      } else {
        w -= step;
      }
    }
  };
};

struct Adagrad {  // rate, epsilon
  template <class T>
  struct Of {
    explicit Of(const double* f) noexcept : rate(T(f[0])), epsilon(T(f[1])) {}
    T rate, epsilon;
    void operator()(T& w, T g, T& s, T&, T&) const noexcept {
      s += g * g;
      w -= rate * g / root(s + epsilon);
    }
  };
};

template <bool kPrevious>
struct Adadelta {  // rho, 1 - rho, rate, epsilon
  template <class T>
  struct Of {
    explicit Of(const double* f) noexcept : rho(T(f[0])), rest(T(f[1])), rate(T(f[2])), epsilon(T(f[3])) {}
    T rho, rest, rate, epsilon;
    void operator()(T& w, T g, T& s, T& u, T&) const noexcept {
      const T previous = s;
      s = rho * s + rest * (g * g);
      const T d = root(u + epsilon) / root((kPrevious ? previous : s) + epsilon) * g;
      u = rho * u + rest * (d * d);
      w -= rate * d;
    }
  };
};

struct Adam {  // 1 - beta_1, 1 - beta_2, corrected rate, epsilon, 1 - rate weight_decay
  template <class T>
  struct Of {
    explicit Of(const double* f) noexcept
        : first(T(f[0])), second(T(f[1])), rate(T(f[2])), epsilon(T(f[3])), shrink(T(f[4])) {}
    T first, second, rate, epsilon, shrink;
    void operator()(T& w, T g, T& m, T& v, T&) const noexcept {
      m += (g - m) * first;
      v += (g * g - v) * second;
      w = w * shrink - rate * m / (root(v) + epsilon);
    }
  };
};

struct Adamax {  // 1 - beta_1, beta_2, corrected rate, epsilon
  template <class T>
  struct Of {
    explicit Of(const double* f) noexcept : first(T(f[0])), beta_2(T(f[1])), rate(T(f[2])), epsilon(T(f[3])) {}
    T first, beta_2, rate, epsilon;
    void operator()(T& w, T g, T& m, T& u, T&) const noexcept {
      m += (g - m) * first;
      const T old = beta_2 * u, fresh = magnitude(g);
      u = old > fresh ? old : fresh;
      w -= rate * m / (u + epsilon);
    }
  };
};

template <class Rule, class T, int kSlots>
void update_loop(const UpdateArrays& arrays, const double* factors, std::int64_t n) {
  const typename Rule::template Of<T> rule(factors);
  T* w = static_cast<T*>(arrays.parameter);
  const T* g = static_cast<const T*>(arrays.gradient);
  T *first = static_cast<T*>(arrays.slots[0]), *second = static_cast<T*>(arrays.slots[1]),
    *third = static_cast<T*>(arrays.slots[2]);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    T unused{}, wi = w[i];
    if constexpr (kSlots == 0) {
      rule(wi, g[i], unused, unused, unused);
    } else if constexpr (kSlots == 1) {
      rule(wi, g[i], first[i], unused, unused);
    } else if constexpr (kSlots == 2) {
      rule(wi, g[i], first[i], second[i], unused);
    } else if constexpr (kSlots == 3) {
      rule(wi, g[i], first[i], second[i], third[i]);
    } else {  // The second is skipped.
      rule(wi, g[i], first[i], unused, third[i]);
    }
    w[i] = wi;
  }
}

// In f64, over 32 chains, which is also the order of the sum.
template <class T>
double sum_of_squares(const void* data, std::int64_t n) {
  const T* x = static_cast<const T*>(data);
  constexpr int kChains = 32;
  double sums[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains <= n; i += kChains)
    for (int c = 0; c < kChains; ++c) sums[c] += double(x[i + c]) * double(x[i + c]);
  for (int half = kChains / 2; half > 0; half /= 2)
    for (int c = 0; c < half; ++c) sums[c] += sums[c + half];
  for (; i < n; ++i) sums[0] += double(x[i]) * double(x[i]);
  return sums[0];
}

#define PLIMSOLL_UPDATE(slots, ...) \
  { update_loop<__VA_ARGS__, float, slots>, update_loop<__VA_ARGS__, double, slots> }

// In the order of UpdateRule.
}  // namespace

constinit const OptimizerLoops PLIMSOLL_INSTRUCTION_SET::optimizer_loops = {
    {PLIMSOLL_UPDATE(0, Sgd), PLIMSOLL_UPDATE(1, Momentum), PLIMSOLL_UPDATE(1, Rmsprop<false, false>),
     PLIMSOLL_UPDATE(2, Rmsprop<true, false>), PLIMSOLL_UPDATE(4, Rmsprop<false, true>),
     PLIMSOLL_UPDATE(3, Rmsprop<true, true>), PLIMSOLL_UPDATE(1, Adagrad), PLIMSOLL_UPDATE(2, Adadelta<false>),
     PLIMSOLL_UPDATE(2, Adadelta<true>), PLIMSOLL_UPDATE(2, Adam), PLIMSOLL_UPDATE(2, Adamax)},
    {sum_of_squares<float>, sum_of_squares<double>}};

}  // namespace plimsoll::internal
