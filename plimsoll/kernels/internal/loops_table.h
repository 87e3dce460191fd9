// Builds the table of loops for the instruction set this file is compiled for. Included by the loops_*.cc files only.
#pragma once

#include <cstdint>

#include "plimsoll/base/half.h"
#include "plimsoll/kernels/internal/loops.h"
#include "plimsoll/kernels/internal/scalar_math.h"
#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace plimsoll {
namespace {

using Bool = std::uint8_t;  // As bytes, 0 or 1: what lies in memory.

struct Numbers {
  template <class T>
  static constexpr bool has = !std::is_same_v<T, Bool>;
};
struct Floats {
  template <class T>
  static constexpr bool has = std::is_floating_point_v<T>;
};
struct All {
  template <class T>
  static constexpr bool has = true;
};

template <class Op, class T>
void binary_loop(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  auto* y = static_cast<typename Op::template Result<T>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = Op::value(a[i], b[i]);
}

template <class Op, class T>
void unary_loop(const void* const* in, void* out, std::int64_t n) {
  const T* x = static_cast<const T*>(in[0]);
  auto* y = static_cast<typename Op::template Result<T>*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = Op::value(x[i]);
}

// The remainder goes through the same vector code, so that every element is computed alike.
template <class Op>
void math_loop_f32(const void* const* in, void* out, std::int64_t n) {
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, Op::value(load(x + i)));
  if (i < n) store_some(y + i, Op::value(load_some(x + i, n - i)), n - i);
}

template <class Op>
void math_loop_f64(const void* const* in, void* out, std::int64_t n) {
  const double* x = static_cast<const double*>(in[0]);
  double* y = static_cast<double*>(out);
  for (std::int64_t i = 0; i < n; ++i) y[i] = Op::value(x[i]);
}

template <class T>
void select_loop(const void* const* in, void* out, std::int64_t n) {
  const Bool* condition = static_cast<const Bool*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = condition[i] ? a[i] : b[i];
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

#define PLIMSOLL_BINARY(name, types, result, expression) \
  struct Binary_##name {                                 \
    using Types = types;                                 \
    template <class T>                                   \
    using Result = result;                               \
    template <class T>                                   \
    static Result<T> value(T a, T b) noexcept {          \
      return static_cast<Result<T>>(expression);         \
    }                                                    \
  };
#include "plimsoll/kernels/binary_ops.inc"
#undef PLIMSOLL_BINARY

#define PLIMSOLL_UNARY(name, types, result, expression) \
  struct Unary_##name {                                 \
    using Types = types;                                \
    template <class T>                                  \
    using Result = result;                              \
    template <class T>                                  \
    static Result<T> value(T x) noexcept {              \
      return static_cast<Result<T>>(expression);        \
    }                                                   \
  };
#define PLIMSOLL_MATH(name, vector_value, double_value)             \
  struct Unary_##name {                                             \
    static F32 value(F32 x) noexcept { return vector_value; }       \
    static double value(double x) noexcept { return double_value; } \
  };
#include "plimsoll/kernels/unary_ops.inc"
#undef PLIMSOLL_UNARY
#undef PLIMSOLL_MATH

template <class Op, class T>
constexpr Loop binary_or_null() noexcept {
  if constexpr (Op::Types::template has<T>)
    return binary_loop<Op, T>;
  else
    return nullptr;
}
template <class Op, class T>
constexpr Loop unary_or_null() noexcept {
  if constexpr (Op::Types::template has<T>)
    return unary_loop<Op, T>;
  else
    return nullptr;
}

// In the order of NativeType.
#define PLIMSOLL_ROW(maker, op) \
  { maker<op, float>(), maker<op, double>(), maker<op, std::int32_t>(), maker<op, std::int64_t>(), maker<op, Bool>() }

constexpr Loops kLoops = {
    PLIMSOLL_LOOPS_NAME,
    {
#define PLIMSOLL_BINARY(name, types, result, value) PLIMSOLL_ROW(binary_or_null, Binary_##name),
#include "plimsoll/kernels/binary_ops.inc"
#undef PLIMSOLL_BINARY
    },
    {
#define PLIMSOLL_UNARY(name, types, result, value) PLIMSOLL_ROW(unary_or_null, Unary_##name),
#define PLIMSOLL_MATH(name, vector_value, double_value) \
  {math_loop_f32<Unary_##name>, math_loop_f64<Unary_##name>, nullptr, nullptr, nullptr},
#include "plimsoll/kernels/unary_ops.inc"
#undef PLIMSOLL_UNARY
#undef PLIMSOLL_MATH
    },
    {select_loop<std::uint8_t>, select_loop<std::uint16_t>, select_loop<std::uint32_t>, select_loop<std::uint64_t>},
    half_loop<float16, float>,
    half_loop<float, float16>,
    half_loop<bfloat16, float>,
    half_loop<float, bfloat16>};

}  // namespace
}  // namespace plimsoll
