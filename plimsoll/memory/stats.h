// MemoryStats: the state of one device's memory now, and its peaks.
#pragma once

#include <cstddef>

namespace plimsoll {

struct MemoryStats {
  std::size_t bytes_in_use = 0;         // Bytes of the blocks handed out, rounding included.
  std::size_t peak_bytes_in_use = 0;    // Exact with one thread; with more, at most a stated quota per thread too high.
  std::size_t bytes_reserved = 0;       // Committed pages: in use, cached and free. Never more than the limit.
  std::size_t peak_bytes_reserved = 0;  // Exact.
  std::size_t bytes_limit = 0;
  std::size_t largest_alloc_bytes = 0;
  std::size_t largest_free_block_bytes = 0;  // Largest free hole whose pages are all there.
  std::size_t num_allocs = 0;
  std::size_t num_ooms = 0;

  // The share of the free reserved bytes that lies outside the largest hole: 0 when whole or when nothing is free.
  double fragmentation() const noexcept {
    const std::size_t free = bytes_reserved > bytes_in_use ? bytes_reserved - bytes_in_use : 0;
    if (free == 0 || largest_free_block_bytes >= free) return 0;
    return static_cast<double>(free - largest_free_block_bytes) / static_cast<double>(free);
  }
};

}  // namespace plimsoll
