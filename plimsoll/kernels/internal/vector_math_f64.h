// exp, log, tanh, ... of vectors of doubles, and functions for both vectors of doubles and of floats. Errors for
// doubles in units of the last place: exp, log 1.5; tanh 2; sigmoid 3.
#pragma once

#include <math.h>

#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"

namespace plimsoll::internal {
namespace {

inline constexpr double kShift = 6755399441055744.0;  // 1.5 2^52: adding it leaves an integer in the low bits.

inline F64 round_nearest(F64 x) noexcept { return (x + kShift) - kShift; }  // For |x| < 2^51.
inline F64 power_of_two(F64 n) noexcept { return bits_as<F64>(bits_as<U64>(n + (kShift + 1023.0)) << 52); }

// x = n ln 2 + r; e^r = 1 + 2 r P(r^2) / (Q(r^2) - r P(r^2)).
inline F64 exp_of(F64 x) noexcept {
  x = x > 710.0 ? all<F64>(710.0) : x;
  x = x < -746.0 ? all<F64>(-746.0) : x;
  const F64 n = round_nearest(x * 1.4426950408889634);
  const F64 r = (x - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  const F64 s = r * r;
  const F64 p = r * ((s * 1.26177193074810590878e-4 + 3.02994407707441961300e-2) * s + 9.99999999999999999910e-1);
  const F64 q = ((s * 3.00198505138664455042e-6 + 2.52448340349684104192e-3) * s + 2.27265548208155028766e-1) * s + 2.0;
  const F64 half = round_nearest(n * 0.5);
  return (p / (q - p) * 2.0 + 1.0) * power_of_two(half) * power_of_two(n - half);
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); log x = e ln 2 + log m.
inline F64 log_of(F64 x) noexcept {
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcd;  // Unsigned, so that negative numbers wrap.
  const I64 tiny = x < 2.2250738585072014e-308;
  const U64 bits = bits_as<U64>(tiny ? x * 18014398509481984.0 : x) - kRootHalf;
  const U64 exponent = (bits + (std::uint64_t{1024} << 52)) >> 52;  // Plus 1024.
  F64 e = bits_as<F64>(exponent | 0x4330000000000000u) - (4503599627370496.0 + 1024.0);
  e = tiny ? e - 54.0 : e;
  const F64 f = bits_as<F64>((bits & std::uint64_t{0xfffffffffffff}) + kRootHalf) - 1.0;
  F64 p = f * 1.01875663804580931796e-4 + 4.97494994976747001425e-1;
  p = p * f + 4.70579119878881725854;
  p = p * f + 1.44989225341610930846e1;
  p = p * f + 1.79368678507819816313e1;
  p = p * f + 7.70838733755885391666;
  F64 q = f + 1.12873587189167450590e1;
  q = q * f + 4.52279145837532221105e1;
  q = q * f + 8.29875266912776603211e1;
  q = q * f + 7.11544750618563894466e1;
  q = q * f + 2.31251620126765340583e1;
  const F64 square = f * f;
  F64 y = f * (square * p / q) - e * 2.121944400546905827679e-4;
  y = (f + (y - square * 0.5)) + e * 0.693359375;
  y = x == __builtin_inf() ? x : y;
  y = x == 0.0 ? all<F64>(-__builtin_inf()) : y;
  return x >= 0.0 ? y : all<F64>(__builtin_nan(""));
}

inline F64 tanh_of(F64 x) noexcept {
  const F64 s = x * x;
  const F64 p = (s * -9.64399179425052238628e-1 + -9.92877231001918586564e1) * s + -1.61468768441708447952e3;
  const F64 q = ((s + 1.12811678491632931402e2) * s + 2.23548839060100448583e3) * s + 4.84406305325125486048e3;
  const F64 magnitude = absolute(x);
  const F64 large = with_sign_of(1.0 - 2.0 / (exp_of(magnitude + magnitude) + 1.0), x);
  return x == 0.0 ? x : magnitude < 0.625 ? x + x * (s * p / q) : large;
}

inline F64 exp_of_negative(F64 x) noexcept { return exp_of(x); }

// The rest works on vectors of either kind.
template <class V>
inline V bounded(V x, double limit) noexcept {
  const V low = x < all<V>(-limit) ? all<V>(-limit) : x;
  return low > all<V>(limit) ? all<V>(limit) : low;
}

template <class V>
inline V sigmoid_of(V x) noexcept {
  return all<V>(1) / (exp_of(-x) + all<V>(1));
}

template <class V>
inline V xlogy_of(V a, V b) noexcept {
  return a == V{} ? V{} : a * log_of(b);
}

// Beyond the bound, slopes are those at the bound, so that infinities never multiply zeros.
template <class V>
inline V swish_slope(V x) noexcept {
  const V c = bounded(x, 800), s = sigmoid_of(c), one = all<V>(1);
  return s * (one + c * (one - s));
}
inline double gelu_slope(double x) noexcept {
  const double c = x < -40 ? -40.0 : x > 40 ? 40.0 : x;
  return 0.5 * ::erfc(c * -0.70710678118654752) + c * ::exp(-0.5 * c * c) * 0.39894228040143268;
}

// For the approximation with tanh, as x sigmoid(2 u).
inline constexpr double kGeluScale = 2 * 0.79788456080286536, kGeluCubic = 0.044715;
template <class V>
inline V gelu_tanh_of(V x) noexcept {
  return x * sigmoid_of(all<V>(kGeluScale) * x * (all<V>(1) + all<V>(kGeluCubic) * x * x));
}
template <class V>
inline V gelu_tanh_slope(V x) noexcept {
  const V c = bounded(x, 40), square = c * c, one = all<V>(1);
  const V s = sigmoid_of(all<V>(kGeluScale) * c * (one + all<V>(kGeluCubic) * square));
  return s + c * s * (one - s) * all<V>(kGeluScale) * (one + all<V>(3 * kGeluCubic) * square);
}

inline double softplus_of(double x) noexcept { return (x > 0 ? x : 0.0) + ::log1p(::exp(x < 0 ? x : -x)); }
inline double gelu_of(double x) noexcept {
  const double c = x < -40 ? -40.0 : x;  // So that minus infinity never multiplies zero.
  return c * 0.5 * ::erfc(c * -0.707106781186547524);
}

}  // namespace
}  // namespace plimsoll::internal
