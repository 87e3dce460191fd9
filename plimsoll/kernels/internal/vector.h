// Vectors of the width this file is compiled for, on the compilers' vector extension: + - * / < ?: work as on numbers.
//
//   F32 x = load(p);  store(q, x > 0.f ? x : splat(0.f));
//
// Included by the loops_*.cc files only, once per instruction set; everything is in an unnamed namespace, so that code
// for one instruction set is never linked into another.
#pragma once

#include <cstdint>
#include <cstring>

namespace plimsoll {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

typedef float F32 __attribute__((vector_size(kVectorBytes)));
typedef double F64 __attribute__((vector_size(kVectorBytes)));
typedef std::int32_t I32 __attribute__((vector_size(kVectorBytes)));
typedef std::uint32_t U32 __attribute__((vector_size(kVectorBytes)));

inline constexpr int kLanes = kVectorBytes / 4;

template <class To, class From>
inline To bits_as(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

inline F32 splat(float x) noexcept { return x - F32{}; }
inline F32 load(const float* p) noexcept {
  F32 x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline void store(float* p, F32 x) noexcept { __builtin_memcpy(p, &x, sizeof x); }

// The first `n` < kLanes elements; the others are zero.
inline F32 load_some(const float* p, std::int64_t n) noexcept {
  F32 x{};
  for (std::int64_t i = 0; i < n; ++i) x[i] = p[i];
  return x;
}
inline void store_some(float* p, F32 x, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) p[i] = x[i];
}

inline F32 absolute(F32 x) noexcept { return bits_as<F32>(bits_as<I32>(x) & 0x7fffffff); }
inline F32 with_sign_of(F32 magnitude, F32 sign) noexcept {
  return bits_as<F32>(bits_as<I32>(magnitude) | (bits_as<I32>(sign) & static_cast<std::int32_t>(0x80000000)));
}

}  // namespace
}  // namespace plimsoll
