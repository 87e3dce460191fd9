// stream_copy: copies bytes to memory that will not be read soon, around the caches.
// The writes are ordered for other threads by stream_fence(), once at the end of a thread's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace plimsoll::internal {

inline constexpr std::size_t kStreamFromBytes = std::size_t{16} << 20;  // Outputs below fit caches and are read again.

inline void stream_copy(void* to, const void* from, std::size_t bytes) noexcept {
#if defined(__SSE2__)
  auto* y = static_cast<char*>(to);
  const auto* x = static_cast<const char*>(from);
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(y) & 15;
  if (bytes > head) {
    std::memcpy(y, x, head);
    std::size_t i = head;
    for (; i + 16 <= bytes; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(y + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i)));
    std::memcpy(y + i, x + i, bytes - i);
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

inline void stream_fence() noexcept {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace plimsoll::internal
