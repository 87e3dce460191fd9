// Vectors of the width this file is compiled for, on the compilers' vector extension: + - * / < ?: work as on numbers.
//
//   F32 x = load(p);  store(q, x > 0.f ? x : splat(0.f));
//
// The one vector type of all loops. Included by files compiled once per instruction set (instruction_sets.h);
// everything is in an unnamed namespace, so that code for one instruction set is never linked into another.
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

namespace plimsoll::internal {
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
template <class T>
inline Vector<T> all_of(T x) noexcept {
  return x - Vector<T>{};
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

// The same for a vector or a single element, whichever V is.
template <class V, class T>
inline V load_as(const T* p) noexcept {
  V x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
template <class V, class T>
inline void store_as(T* p, V x) noexcept {
  __builtin_memcpy(p, &x, sizeof x);
}

// A mask of the first n < lanes elements; the others are zero when loaded, and not touched in memory.
#if defined(__AVX512F__)
template <class T>
inline auto first_lanes(std::int64_t n) noexcept {
  if constexpr (sizeof(T) == 4)
    return static_cast<__mmask16>((1u << n) - 1);
  else
    return static_cast<__mmask8>((1u << n) - 1);
}
inline F32 load_masked(const float* p, __mmask16 lanes) noexcept { return _mm512_maskz_loadu_ps(lanes, p); }
inline F64 load_masked(const double* p, __mmask8 lanes) noexcept { return _mm512_maskz_loadu_pd(lanes, p); }
inline void store_masked(float* p, F32 x, __mmask16 lanes) noexcept { _mm512_mask_storeu_ps(p, lanes, x); }
inline void store_masked(double* p, F64 x, __mmask8 lanes) noexcept { _mm512_mask_storeu_pd(p, lanes, x); }
#elif defined(__AVX2__)
inline constexpr std::int32_t kOnesThenZeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
template <class T>
inline __m256i first_lanes(std::int64_t n) noexcept {
  const std::int64_t words = n * static_cast<std::int64_t>(sizeof(T) / 4);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnesThenZeros + 8 - words));
}
inline F32 load_masked(const float* p, __m256i lanes) noexcept { return _mm256_maskload_ps(p, lanes); }
inline F64 load_masked(const double* p, __m256i lanes) noexcept { return _mm256_maskload_pd(p, lanes); }
inline void store_masked(float* p, F32 x, __m256i lanes) noexcept { _mm256_maskstore_ps(p, lanes, x); }
inline void store_masked(double* p, F64 x, __m256i lanes) noexcept { _mm256_maskstore_pd(p, lanes, x); }
#else
template <class T>
inline std::int64_t first_lanes(std::int64_t n) noexcept {
  return n;
}
template <class T>
inline Vector<T> load_masked(const T* p, std::int64_t n) noexcept {
  Vector<T> x{};
  for (std::int64_t i = 0; i < n; ++i) x[i] = p[i];
  return x;
}
template <class T>
inline void store_masked(T* p, Vector<T> x, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) p[i] = x[i];
}
#endif
template <class T>
inline Vector<T> load_some(const T* p, std::int64_t n) noexcept {
  return load_masked(p, first_lanes<T>(n));
}
template <class T>
inline void store_some(T* p, Vector<T> x, std::int64_t n) noexcept {
  store_masked(p, x, first_lanes<T>(n));
}

// Four elements; four by four of them transposed.
template <class T>
struct FourOf {
  typedef T type __attribute__((vector_size(4 * sizeof(T))));
};
template <class T>
using Four = typename FourOf<T>::type;
template <class T>
inline void transpose(Four<T> (&x)[4]) noexcept {
  const Four<T> a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5),
                b = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
                c = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5),
                d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  x[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  x[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  x[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  x[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

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
inline F32 larger(F32 a, F32 b) noexcept {  // The instruction returns its second operand when one is NaN.
  return _mm256_blendv_ps(_mm256_max_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}
inline F32 smaller(F32 a, F32 b) noexcept {
  return _mm256_blendv_ps(_mm256_min_ps(b, a), b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}
#endif

template <class V>
inline V rectified(V x) noexcept {
  return x < V{} ? V{} : x;
}
// And not above `most`; NaN stays.
template <class V>
inline V rectified(V x, V most) noexcept {
  x = rectified(x);
  return x > most ? most : x;
}
inline F32 absolute(F32 x) noexcept { return bits_as<F32>(bits_as<I32>(x) & 0x7fffffff); }
inline F64 absolute(F64 x) noexcept { return bits_as<F64>(bits_as<I64>(x) & INT64_MAX); }
inline F32 with_sign_of(F32 magnitude, F32 sign) noexcept {
  return bits_as<F32>(bits_as<I32>(magnitude) | (bits_as<I32>(sign) & static_cast<std::int32_t>(0x80000000)));
}
inline F64 with_sign_of(F64 magnitude, F64 sign) noexcept {
  return bits_as<F64>(bits_as<I64>(magnitude) | (bits_as<I64>(sign) & INT64_MIN));
}

}  // namespace
}  // namespace plimsoll::internal
