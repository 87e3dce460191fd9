// exp, log, sin, ... of vectors of floats (for doubles see vector_math_f64.h). Errors in units of the last place
// (measured by elementwise_math_test.cc): exp, log 1; expm1, log1p 2; sin, cos 2 (of the value, away from the zeros);
// tanh 5; sigmoid 4; erf, gelu 8. Infinities, NaN and subnormal results as in <cmath>. An element's result does not
// depend on its neighbours or its place.
#pragma once

#include <math.h>

#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

inline F32 round_nearest(F32 x) noexcept { return (x + 12582912.f) - 12582912.f; }  // For |x| < 2^22.

// x = n ln 2 + r, and e^r - 1. `shifted` has n + 127 in its low bits.
struct ExpParts {
  F32 n, tail, shifted;
};
inline constexpr float kExpShift = 12582912.f + 127.f;

// e^r - 1 for |r| <= ln 2 / 2.
inline F32 exp_tail(F32 r) noexcept {
  F32 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r;
}
inline F32 exp_rest(F32 x, F32 n) noexcept { return (x - n * 0.693359375f) - n * -2.12194440e-4f; }

inline ExpParts exp_parts(F32 x) noexcept {
  const F32 shifted = x * 1.44269504088896341f + kExpShift, n = shifted - kExpShift;
  return {n, exp_tail(exp_rest(x, n)), shifted};
}
inline F32 power_of_shifted(F32 shifted) noexcept { return bits_as<F32>(bits_as<U32>(shifted) << 23); }  // 2^n

// 2^n as two factors, so that n may be outside a float's exponent range.
struct Factors {
  F32 first, second;
};
inline Factors factors_of(F32 n) noexcept {
  const F32 half = round_nearest(n * 0.5f);
  return {power_of_shifted(half + kExpShift), power_of_shifted((n - half) + kExpShift)};
}

inline F32 exp_of(F32 x) noexcept {
  const ExpParts parts = exp_parts(at_least(at_most(x, 89.f), -104.f));
  const Factors power = factors_of(parts.n);
  return (parts.tail + 1.f) * power.first * power.second;
}

// e^x for x <= 0; 0 instead of subnormal results.
inline F32 exp_of_negative(F32 x) noexcept {
  const ExpParts parts = exp_parts(at_least(x, -87.f));
  const F32 y = (parts.tail + 1.f) * power_of_shifted(parts.shifted);
  return x < -87.f ? F32{} : y;
}

inline F32 expm1_of(F32 x) noexcept {
  const ExpParts parts = exp_parts(at_least(at_most(x, 89.f), -104.f));
  const Factors factors = factors_of(parts.n);
  const F32 large = (parts.tail + 1.f) * factors.first * factors.second - 1.f;
  const F32 power = factors.first * factors.second;
  const F32 small = parts.tail * power + (power - 1.f);
  return x == 0.f ? x : x > 20.f ? large : small;
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); log x = e ln 2 + log m.
inline F32 log_of(F32 x) noexcept {
  const I32 tiny = x < 1.17549435e-38f;
  const F32 scaled = tiny ? x * 8388608.f : x;
  const I32 bits = bits_as<I32>(bits_as<U32>(scaled) - 0x3f3504f3u);
  F32 e = __builtin_convertvector(bits >> 23, F32);
  e = tiny ? e - 23.f : e;
  const F32 f = bits_as<F32>((bits & 0x7fffff) + 0x3f3504f3) - 1.f;
  F32 p = f * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const F32 square = f * f;
  F32 y = p * f * square + e * -2.12194440e-4f;
  y = y - square * 0.5f;
  y = (f + y) + e * 0.693359375f;
  y = x == __builtin_inff() ? x : y;
  y = x == 0.f ? splat(-__builtin_inff()) : y;
  return x >= 0.f ? y : splat(__builtin_nanf(""));
}

inline F32 log1p_of(F32 x) noexcept {
  const F32 y = x + 1.f;
  const F32 log = log_of(y) + (x - (y - 1.f)) / y;
  return x == 0.f || x == __builtin_inff() ? x : y == 0.f ? splat(-__builtin_inff()) : log;
}

// Beyond the bound the quotient is 1.
inline F32 tanh_of(F32 x) noexcept {
  const F32 c = at_least(at_most(x, 7.99881172180175781f), -7.99881172180175781f);
  const F32 s = c * c;
  F32 p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  F32 q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return at_least(at_most(p / q * c, 1.f), -1.f);
}

inline F32 erf_of(F32 x) noexcept {
  const F32 c = at_least(at_most(x, 4.f), -4.f);
  const F32 s = c * c;
  F32 p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * s + -2.10102402082508e-06f;
  p = p * s + -5.69250639462346e-05f;
  p = p * s + -7.34990630326855e-04f;
  p = p * s + -2.95459980854025e-03f;
  p = p * s + -1.60960333262415e-02f;
  F32 q = s * -1.45660718464996e-05f + -2.13374055278905e-04f;
  q = q * s + -1.68282697438203e-03f;
  q = q * s + -7.37332916720468e-03f;
  q = q * s + -1.42647390514189e-02f;
  return at_least(at_most(p / q * c, 1.f), -1.f);
}

// sin(x + quarters pi/2). Beyond `kFar` the reduction would lose digits: those lanes use the library.
inline F32 sine_of_quarter(F32 x, int quarters, float (*far)(float)) noexcept {
  constexpr float kFar = 8192.f;
  const F32 n = round_nearest(x * 0.636619772367581343f);
  F32 r = x - n * 1.5703125f;
  r = r - n * 4.837512969970703125e-4f;
  r = r - n * 7.549789948768648e-8f;
  const F32 s = r * r;
  const F32 sine = ((s * -1.9515295891e-4f + 8.3321608736e-3f) * s - 1.6666654611e-1f) * s * r + r;
  const F32 cosine =
      ((s * 2.443315711809948e-5f - 1.388731625493765e-3f) * s + 4.166664568298827e-2f) * s * s - s * 0.5f + 1.f;
  const I32 quadrant = __builtin_convertvector(n, I32) + quarters;
  const F32 value = (quadrant & 1) != 0 ? cosine : sine;
  F32 result = bits_as<F32>(bits_as<I32>(value) ^ ((quadrant & 2) << 30));
  const I32 is_far = ~(absolute(x) <= kFar);  // NaN too.
  bool any = false;
  for (int i = 0; i < kLanes; ++i) any |= is_far[i] != 0;
  if (any)
    for (int i = 0; i < kLanes; ++i)
      if (is_far[i]) result[i] = far(x[i]);
  return result;
}
inline F32 sin_of(F32 x) noexcept { return x == 0.f ? x : sine_of_quarter(x, 0, ::sinf); }
inline F32 cos_of(F32 x) noexcept { return sine_of_quarter(x, 1, ::cosf); }

inline constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;

inline F32 softplus_of(F32 x) noexcept { return (x > 0.f ? x : splat(0.f)) + log1p_of(exp_of(-absolute(x))); }
inline F32 elu_of(F32 x) noexcept { return x < 0.f ? expm1_of(x) : x; }
inline F32 selu_of(F32 x) noexcept { return float(kSeluScale) * (x < 0.f ? float(kSeluAlpha) * expm1_of(x) : x); }

// The normal distribution beyond z, and e^(-z^2 / 2), for z >= 0. Their quotient is a polynomial of 1 / (1 + 0.275 z);
// the square is split, because an error of the exponent would become an error of the result. 1 minus an error function
// would have no digits left there.
inline constexpr float kNormalEnd = 14.5f;  // Where both are 0.
struct NormalTail {
  F32 z, density, beyond;
};
inline NormalTail normal_tail(F32 x) noexcept {
  const F32 z = at_most(absolute(x), kNormalEnd), high = bits_as<F32>(bits_as<U32>(z) & 0xfffff000u);
  const F32 square = high * high * -0.5f, rest = (z - high) * (z + high) * -0.5f;
  const F32 shifted = at_least(square, -87.f) * 1.44269504088896341f + kExpShift, n = shifted - kExpShift;
  F32 density = (exp_tail(exp_rest(square, n) + rest) + 1.f) * power_of_shifted(shifted);
  density = square < -87.f ? F32{} : density;
  const F32 t = 1.f / (z * 0.275f + 1.f);
  F32 p = t * 2.64057117e-2f - 1.06795319e-1f;
  p = p * t + 1.21816305e-1f;
  p = p * t - 2.52548392e-2f;
  p = p * t + 8.09540753e-2f;
  p = p * t + 8.20116441e-2f;
  p = p * t + 1.01391251e-1f;
  p = p * t + 1.09767095e-1f;
  p = p * t + 1.09704096e-1f;
  return {z, density, p * t * density};
}
inline F32 gelu_of(F32 x) noexcept {
  const NormalTail tail = normal_tail(x);
  return x < 0.f ? -tail.z * tail.beyond : x * (1.f - tail.beyond);
}
inline F32 gelu_slope(F32 x) noexcept {
  const NormalTail tail = normal_tail(x);
  const F32 rise = tail.z * tail.density * 0.39894228040143268f;
  return x < 0.f ? tail.beyond - rise : (1.f - tail.beyond) + rise;
}

}  // namespace
}  // namespace plimsoll::internal
