// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/byte_loops.h"

#include <cstring>
#include <type_traits>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace plimsoll::internal {
namespace {

template <class W>
void multiply_columns(const std::int16_t* a, std::int64_t depth, const W* w, std::int64_t step, std::int64_t begin,
                      std::int64_t end, std::int32_t* sums) noexcept {
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t r = 0; r < kByteRows; ++r) {
      const std::int32_t factor = a[r * kByteDepth + k];
      for (std::int64_t j = begin; j < end; ++j) sums[r * kByteColumns + j] += factor * w[k * step + j];
    }
}

#if defined(__AVX2__)
template <class W>
__m256i widened(const W* w) noexcept {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
  if constexpr (std::is_signed_v<W>)
    return _mm256_cvtepi8_epi16(bytes);
  else
    return _mm256_cvtepu8_epi16(bytes);
}

// 16 columns: two products of each at a time.
template <class W>
void multiply_16(const std::int16_t* a, std::int64_t depth, const W* w, std::int64_t step,
                 std::int32_t* sums) noexcept {
  __m256i low[kByteRows], high[kByteRows];
  for (int r = 0; r < kByteRows; ++r) low[r] = high[r] = _mm256_setzero_si256();
  for (std::int64_t k = 0; k < depth; k += 2) {
    const __m256i first = widened(w + k * step);
    const __m256i second = k + 1 < depth ? widened(w + (k + 1) * step) : _mm256_setzero_si256();
    const __m256i even = _mm256_unpacklo_epi16(first, second), odd = _mm256_unpackhi_epi16(first, second);
#pragma GCC unroll 4
    for (int r = 0; r < kByteRows; ++r) {
      std::int32_t pair;  // Values beyond the depth meet zeros.
      std::memcpy(&pair, a + r * kByteDepth + k, sizeof pair);
      const __m256i factors = _mm256_set1_epi32(pair);
      low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(even, factors));
      high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(odd, factors));
    }
  }
  for (int r = 0; r < kByteRows; ++r) {
    auto* out = reinterpret_cast<__m256i*>(sums + r * kByteColumns);
    const __m256i front = _mm256_permute2x128_si256(low[r], high[r], 0x20);
    const __m256i back = _mm256_permute2x128_si256(low[r], high[r], 0x31);
    _mm256_storeu_si256(out, _mm256_add_epi32(_mm256_loadu_si256(out), front));
    _mm256_storeu_si256(out + 1, _mm256_add_epi32(_mm256_loadu_si256(out + 1), back));
  }
}
#endif

template <class W>
void multiply(const std::int16_t* a, std::int64_t depth, const W* w, std::int64_t step, std::int64_t columns,
              std::int32_t* sums) {
  std::int64_t j = 0;
#if defined(__AVX2__)
  for (; j + 16 <= columns; j += 16) multiply_16(a, depth, w + j, step, sums + j);
#endif
  multiply_columns(a, depth, w, step, j, columns, sums);
}

}  // namespace

constinit const ByteLoops PLIMSOLL_INSTRUCTION_SET::byte_loops = {{multiply<std::int8_t>}, {multiply<std::uint8_t>}};

}  // namespace plimsoll::internal
