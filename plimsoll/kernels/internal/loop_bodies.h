// The loops' bodies, for an operation given as a class. Included by loops.cc only.
#pragma once

#include <cstdint>

#include "plimsoll/base/half.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

using Bool = std::uint8_t;  // As bytes in memory, 0 or 1.

// Bit i of kRepeated: operand i is one element.
template <class Op, class T>
void unary_loop(const void* const* in, void* out, std::int64_t n) {
  const T* x = static_cast<const T*>(in[0]);
  auto* y = static_cast<typename Op::template Result<T>*>(out);
  PLIMSOLL_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] = Op::value(x[i]);
}

template <class Op, class T, unsigned kRepeated>
void binary_loop(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  auto* y = static_cast<typename Op::template Result<T>*>(out);
  if constexpr (kRepeated == 0) {
    PLIMSOLL_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) y[i] = Op::value(a[i], b[i]);
  } else {
    const T one = kRepeated == 1 ? *a : *b;
    PLIMSOLL_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) y[i] = kRepeated == 1 ? Op::value(one, b[i]) : Op::value(a[i], one);
  }
}

template <class Op, class T, unsigned kRepeated>
void ternary_loop(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* c = static_cast<const T*>(in[2]);
  auto* y = static_cast<typename Op::template Result<T>*>(out);
  const T b_one = kRepeated & 2 ? *b : T(0), c_one = kRepeated & 4 ? *c : T(0);
  PLIMSOLL_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = Op::value(a[i], kRepeated & 2 ? b_one : b[i], kRepeated & 4 ? c_one : c[i]);
}

// The remainder uses the same vector code, so that every element is computed the same way.
template <class Op, class T>
void unary_math_loop(const void* const* in, void* out, std::int64_t n) {
  const T* x = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + kLanesOf<T> <= n; i += kLanesOf<T>) store(y + i, Op::value(load(x + i)));
  if (i < n) store_some(y + i, Op::value(load_some(x + i, n - i)), n - i);
}

template <class Op, class T, unsigned kRepeated>
void binary_math_loop(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  const Vector<T> a_one = kRepeated & 1 ? *a - Vector<T>{} : Vector<T>{};
  const Vector<T> b_one = kRepeated & 2 ? *b - Vector<T>{} : Vector<T>{};
  std::int64_t i = 0;
  for (; i + kLanesOf<T> <= n; i += kLanesOf<T>)
    store(y + i, Op::value(kRepeated & 1 ? a_one : load(a + i), kRepeated & 2 ? b_one : load(b + i)));
  if (i == n) return;
  const Vector<T> last_a = kRepeated & 1 ? a_one : load_some(a + i, n - i);
  store_some(y + i, Op::value(last_a, kRepeated & 2 ? b_one : load_some(b + i, n - i)), n - i);
}

template <class T, unsigned kRepeated>
void select_loop(const void* const* in, void* out, std::int64_t n) {
  const Bool* condition = static_cast<const Bool*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  const T a_one = kRepeated & 2 ? *a : T(0), b_one = kRepeated & 4 ? *b : T(0);
  PLIMSOLL_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = condition[i] ? (kRepeated & 2 ? a_one : a[i]) : (kRepeated & 4 ? b_one : b[i]);
}

template <class T>
void fill_loop(const void* const* in, void* out, std::int64_t n) {
  const T value = *static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = value;
}

template <class From, class To>
void half_loop(const void* const* in, void* out, std::int64_t n) {
  const From* x = static_cast<const From*>(in[0]);
  To* y = static_cast<To*>(out);
  std::int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<From, float16>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  if constexpr (std::is_same_v<To, float16>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) y[i] = To(x[i]);
}

}  // namespace
}  // namespace plimsoll::internal
