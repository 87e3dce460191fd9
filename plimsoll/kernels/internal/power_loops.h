// Powers of floats: those of f32 in double precision, vector by vector; a single exponent of 2, 3, 1/2 or -1 without
// logarithms. Included by loops.cc only.
#pragma once

#include <math.h>

#include <cstdint>

#include "plimsoll/kernels/internal/scalar_math.h"
#include "plimsoll/kernels/internal/vector_math_f64.h"

namespace plimsoll::internal {
namespace {

typedef float HalfF32 __attribute__((vector_size(kVectorBytes / 2)));

// log2 x for x > 0 that is not subnormal (no float is, as a double), to 40 bits.
inline F64 short_log2(F64 x) noexcept {
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcd;  // Unsigned, so that negative numbers wrap.
  const U64 bits = bits_as<U64>(x) - kRootHalf;
  const U64 exponent = (bits + (std::uint64_t{1024} << 52)) >> 52;  // Plus 1024.
  const F64 e = bits_as<F64>(exponent | 0x4330000000000000u) - (4503599627370496.0 + 1024.0);
  const F64 m = bits_as<F64>((bits & std::uint64_t{0xfffffffffffff}) + kRootHalf);
  const F64 s = (m - 1.0) / (m + 1.0), q = s * s;
  F64 p = q * (1.0 / 13) + 1.0 / 11;  // The series of the inverse hyperbolic tangent.
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  return p * s * 2.8853900817779268 + e;
}

// 2^x to 36 bits, 0 and infinity where a float's would be.
inline F64 short_exp2(F64 x) noexcept {
  x = x > 200.0 ? all<F64>(200.0) : x;
  x = x < -200.0 ? all<F64>(-200.0) : x;
  const F64 n = round_nearest(x), t = (x - n) * 0.69314718055994531;
  F64 p = t * (1.0 / 362880) + 1.0 / 40320;
  p = p * t + 1.0 / 5040;
  p = p * t + 1.0 / 720;
  p = p * t + 1.0 / 120;
  p = p * t + 1.0 / 24;
  p = p * t + 1.0 / 6;
  p = p * t + 0.5;
  p = p * t + 1.0;
  p = p * t + 1.0;
  return p * power_of_two(n);
}

inline HalfF32 power_of_half(HalfF32 a, HalfF32 b) noexcept {
  const F64 x = __builtin_convertvector(a, F64), y = __builtin_convertvector(b, F64);
  return __builtin_convertvector(short_exp2(y * short_log2(x)), HalfF32);
}

// Positive bases and finite exponents; other lanes use the library.
inline F32 power_of(F32 a, F32 b) noexcept {
  struct Halves {
    HalfF32 low, high;
  };
  const Halves x = bits_as<Halves>(a), y = bits_as<Halves>(b);
  F32 result = bits_as<F32>(Halves{power_of_half(x.low, y.low), power_of_half(x.high, y.high)});
  const I32 is_plain = (a > 0.f) & (a < __builtin_inff()) & (absolute(b) < __builtin_inff());
  bool all_plain = true;
  for (int i = 0; i < kLanes; ++i) all_plain &= is_plain[i] != 0;
  if (!all_plain)
    for (int i = 0; i < kLanes; ++i)
      if (!is_plain[i]) result[i] = static_cast<float>(::pow(double(a[i]), double(b[i])));
  return result;
}

struct PowerOfVectors {
  static F32 value(F32 a, F32 b) noexcept { return power_of(a, b); }
};

// Calls loop(f) with the function of an element for this exponent; false for other exponents.
template <class T, class L>
bool with_short_power(T exponent, L loop) noexcept {
  if (exponent == T(2))
    loop([](T x) { return x * x; });
  else if (exponent == T(3))
    loop([](T x) { return static_cast<T>(double(x) * double(x) * double(x)); });
  else if (exponent == T(0.5))
    loop([](T x) { return x == -kInfinityOf<T> ? kInfinityOf<T> : square_root(x + T(0)); });
  else if (exponent == T(-1))
    loop([](T x) { return T(1) / x; });
  else
    return false;
  return true;
}

template <class T>
bool short_power_loop(const void* const* in, void* out, std::int64_t n) noexcept {
  const T* x = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
  return with_short_power(*static_cast<const T*>(in[1]), [&](auto value) {
    PLIMSOLL_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) y[i] = value(x[i]);
  });
}

}  // namespace
}  // namespace plimsoll::internal
