// Lanes<T>: what the matrix product needs of vectors of f32 and f64, whole and in part, and 4 x 4 transposition.
// Included by the matmul_loops_*.cc files only, once per instruction set; everything is in an unnamed namespace.
#pragma once

#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll {
namespace {

template <class T>
struct Lanes {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  static constexpr std::int64_t kCount = kVectorBytes / sizeof(T);

  static V get(const T* p) noexcept {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void put(T* p, V v) noexcept { __builtin_memcpy(p, &v, sizeof v); }
  static V all(T x) noexcept { return x - V{}; }

  // The first `n` elements, fewer than kCount; the rest is zero and not touched in memory.
#if defined(__AVX512F__)
  static auto mask(std::int64_t n) noexcept {
    if constexpr (sizeof(T) == 4)
      return static_cast<__mmask16>((1u << n) - 1);
    else
      return static_cast<__mmask8>((1u << n) - 1);
  }
  template <class M>
  static V get_some(const T* p, M mask) noexcept {
    if constexpr (sizeof(T) == 4)
      return bits_as<V>(_mm512_maskz_loadu_ps(mask, p));
    else
      return bits_as<V>(_mm512_maskz_loadu_pd(mask, p));
  }
#elif defined(__AVX2__)
  static __m256i mask(std::int64_t n) noexcept {
    alignas(32) static constexpr std::int32_t kOnes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const std::int64_t words = n * static_cast<std::int64_t>(sizeof(T) / 4);
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes + 8 - words));
  }
  static V get_some(const T* p, __m256i mask) noexcept {
    if constexpr (sizeof(T) == 4)
      return bits_as<V>(_mm256_maskload_ps(p, mask));
    else
      return bits_as<V>(_mm256_maskload_pd(p, mask));
  }
#else
  static std::int64_t mask(std::int64_t n) noexcept { return n; }
  static V get_some(const T* p, std::int64_t n) noexcept {
    V v{};
    for (std::int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
#endif

  // By halves: masked stores are slow on some processors.
  static void put_some(T* p, V v, std::int64_t n) noexcept {
    T values[kCount];
    put(values, v);
    const T* from = values;
    if constexpr (kCount > 8) copy_if<8>(p, from, n);
    if constexpr (kCount > 4) copy_if<4>(p, from, n);
    if constexpr (kCount > 2) copy_if<2>(p, from, n);
    if (n & 1) *p = *from;
  }

  // By reference: where a Four is wider than a vector, it cannot be returned.
  static void get_four(const T* p, Four& to) noexcept { __builtin_memcpy(&to, p, sizeof to); }
  static void put_four(T* p, const Four& v) noexcept { __builtin_memcpy(p, &v, sizeof v); }
  static void transpose(Four (&x)[4]) noexcept {
    const Four a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5), b = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
               c = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5), d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    x[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    x[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    x[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    x[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
  }

 private:
  template <int kPart>
  static void copy_if(T*& p, const T*& from, std::int64_t n) noexcept {
    if (!(n & kPart)) return;
    __builtin_memcpy(p, from, kPart * sizeof(T));
    p += kPart;
    from += kPart;
  }
};

}  // namespace
}  // namespace plimsoll
