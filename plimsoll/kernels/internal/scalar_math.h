// One element's value for the operations of binary_ops.inc and unary_ops.inc. Integers wrap instead of overflowing.
#pragma once

#include <math.h>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace plimsoll::internal {
namespace {

template <class T>
inline constexpr T kInfinityOf = std::numeric_limits<T>::infinity();

#define PLIMSOLL_WRAPPING(name, op)                                                      \
  template <class T>                                                                     \
  inline T name(T a, T b) noexcept {                                                     \
    if constexpr (std::is_floating_point_v<T>)                                           \
      return a op b;                                                                     \
    else                                                                                 \
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a)                      \
                                op static_cast<std::make_unsigned_t<T>>(b)); /* Wraps */ \
  }
PLIMSOLL_WRAPPING(wrap_add, +)
PLIMSOLL_WRAPPING(wrap_multiply, *)
PLIMSOLL_WRAPPING(wrap_subtract, -)
#undef PLIMSOLL_WRAPPING

inline float square_root(float x) noexcept { return __builtin_sqrtf(x); }
inline double square_root(double x) noexcept { return __builtin_sqrt(x); }
inline float round_down(float x) noexcept { return __builtin_floorf(x); }
inline double round_down(double x) noexcept { return __builtin_floor(x); }
inline float round_to_even(float x) noexcept { return __builtin_rintf(x); }
inline double round_to_even(double x) noexcept { return __builtin_rint(x); }

template <class T>
inline T negated(T x) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return -x;
  else
    return wrap_subtract(T(0), x);
}

template <class T>
inline T absolute(T x) noexcept {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_fabsf(x);
  else if constexpr (std::is_same_v<T, double>)
    return __builtin_fabs(x);
  else
    return x < 0 ? wrap_subtract(T(0), x) : x;
}

template <class T>
inline T smaller_of(T a, T b) noexcept {
  return ((a <= b) | (a != a)) ? a : b;  // NaN if either is.
}
template <class T>
inline T larger_of(T a, T b) noexcept {
  return ((a >= b) | (a != a)) ? a : b;
}

template <class T>
inline T clipped(T x, T low, T high) noexcept {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

template <class T>
inline T clamp_unit(T x) noexcept {
  return x < T(0) ? T(0) : x > T(1) ? T(1) : x;
}

template <class T>
inline T floor_quotient(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return round_down(a / b);
  } else {
    if (b == 0) return 0;
    if (b == -1) return wrap_subtract(T(0), a);
    const T quotient = a / b;
    return quotient - T((a % b != 0) && ((a < 0) != (b < 0)));
  }
}

template <class T>
inline T divide_or_floor(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return a / b;
  else
    return floor_quotient(a, b);
}

template <class T>
inline T floor_modulo(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    const T rest = T(::fmod(double(a), double(b)));  // Exact in double, so exact in float.
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? T(::copysign(0.0, double(b))) : rest;
  } else {
    if (b == 0 || b == -1) return 0;
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

template <class T>
inline T power_of(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return T(::pow(double(a), double(b)));
  } else {
    if (b < 0) return a == 1 ? T(1) : a == -1 ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
    T result = 1;
    for (T factor = a; b > 0; b /= 2, factor = wrap_multiply(factor, factor))
      if (b % 2 == 1) result = wrap_multiply(result, factor);
    return result;
  }
}

}  // namespace
}  // namespace plimsoll::internal
