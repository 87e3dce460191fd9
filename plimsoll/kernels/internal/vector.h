// Vectors of the width this file is compiled for, on the compilers' vector extension: + - * / < ?: work as on numbers.
//
//   F32 x = load(p);  store(q, x > 0.f ? x : splat(0.f));
//
// Included by the loops_*.cc files only, once per instruction set; everything is in an unnamed namespace, so that code
// for one instruction set is never linked into another.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Before a loop: no iteration reads what another one writes.
#if defined(__clang__)
#define PLIMSOLL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PLIMSOLL_INDEPENDENT _Pragma("GCC ivdep")
#endif

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
typedef std::int64_t I64 __attribute__((vector_size(kVectorBytes)));
typedef std::uint64_t U64 __attribute__((vector_size(kVectorBytes)));

inline constexpr int kLanes = kVectorBytes / 4;

template <class To, class From>
inline To bits_as(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// A vector's element type; a number's is its own, so that code can be written for both.
template <class V>
struct ElementOfVector {
  using type = std::remove_cvref_t<decltype(V{}[0])>;
};
template <>
struct ElementOfVector<double> {
  using type = double;
};
template <class V>
using ElementOf = typename ElementOfVector<V>::type;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr std::int64_t kLanesOf = kVectorBytes / static_cast<std::int64_t>(sizeof(T));

// The number in all lanes.
template <class V>
inline V all(double x) noexcept {
  return static_cast<ElementOf<V>>(x) - V{};
}
inline F32 splat(float x) noexcept { return x - F32{}; }

template <class T>
inline Vector<T> load(const T* p) noexcept {
  Vector<T> x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
template <class T>
inline void store(T* p, Vector<T> x) noexcept {
  __builtin_memcpy(p, &x, sizeof x);
}

// The first `n` < lanes elements; the others are zero.
#if defined(__AVX512F__)
inline F32 load_some(const float* p, std::int64_t n) noexcept {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
}
inline F64 load_some(const double* p, std::int64_t n) noexcept {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
}
inline void store_some(float* p, F32 x, std::int64_t n) noexcept {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), x);
}
inline void store_some(double* p, F64 x, std::int64_t n) noexcept {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), x);
}
#elif defined(__AVX2__)
inline constexpr std::int32_t kMask32[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
inline constexpr std::int64_t kMask64[8] = {-1, -1, -1, -1};
inline __m256i first_lanes(const void* mask) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(mask)); }
inline F32 load_some(const float* p, std::int64_t n) noexcept {
  return _mm256_maskload_ps(p, first_lanes(kMask32 + 8 - n));
}
inline F64 load_some(const double* p, std::int64_t n) noexcept {
  return _mm256_maskload_pd(p, first_lanes(kMask64 + 4 - n));
}
inline void store_some(float* p, F32 x, std::int64_t n) noexcept {
  _mm256_maskstore_ps(p, first_lanes(kMask32 + 8 - n), x);
}
inline void store_some(double* p, F64 x, std::int64_t n) noexcept {
  _mm256_maskstore_pd(p, first_lanes(kMask64 + 4 - n), x);
}
#else
template <class T>
inline Vector<T> load_some(const T* p, std::int64_t n) noexcept {
  Vector<T> x{};
  for (std::int64_t i = 0; i < n; ++i) x[i] = p[i];
  return x;
}
template <class T>
inline void store_some(T* p, Vector<T> x, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) p[i] = x[i];
}
#endif

// x, but not above or below the limit; NaN stays.
#if defined(__AVX512F__)
inline F32 at_most(F32 x, float limit) noexcept { return _mm512_maskz_min_ps(0xffff, splat(limit), x); }
inline F32 at_least(F32 x, float limit) noexcept { return _mm512_maskz_max_ps(0xffff, splat(limit), x); }
#elif defined(__AVX2__)
inline F32 at_most(F32 x, float limit) noexcept { return _mm256_min_ps(splat(limit), x); }
inline F32 at_least(F32 x, float limit) noexcept { return _mm256_max_ps(splat(limit), x); }
#else
inline F32 at_most(F32 x, float limit) noexcept { return x > limit ? splat(limit) : x; }
inline F32 at_least(F32 x, float limit) noexcept { return x < limit ? splat(limit) : x; }
#endif

// The larger and the smaller of two; NaN if either is.
template <class V>
inline V larger(V a, V b) noexcept {
  return ((b > a) | (b != b)) ? b : a;
}
template <class V>
inline V smaller(V a, V b) noexcept {
  return ((b < a) | (b != b)) ? b : a;
}
#if defined(__AVX2__) && !defined(__AVX512F__)
inline F32 larger(F32 a, F32 b) noexcept {  // The instruction gives its second operand when one is NaN.
  return _mm256_blendv_ps(_mm256_max_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}
inline F32 smaller(F32 a, F32 b) noexcept {
  return _mm256_blendv_ps(_mm256_min_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}
#endif

inline F32 absolute(F32 x) noexcept { return bits_as<F32>(bits_as<I32>(x) & 0x7fffffff); }
inline F64 absolute(F64 x) noexcept { return bits_as<F64>(bits_as<I64>(x) & INT64_MAX); }
inline F32 with_sign_of(F32 magnitude, F32 sign) noexcept {
  return bits_as<F32>(bits_as<I32>(magnitude) | (bits_as<I32>(sign) & static_cast<std::int32_t>(0x80000000)));
}
inline F64 with_sign_of(F64 magnitude, F64 sign) noexcept {
  return bits_as<F64>(bits_as<I64>(magnitude) | (bits_as<I64>(sign) & INT64_MIN));
}

}  // namespace
}  // namespace plimsoll
