// CacheShadow: simulates a cache of freed blocks that is switched off, so that the arena knows whether caching would
// pay.
//
//   shadow.give(block.size);                       // freed, not cached
//   if (shadow.take(size)) ...                     // a cache would have had one
//   shadow.bytes()                                 // bytes that the cache would keep from others
//
// When there is no entry left for a size, its blocks are forgotten: the cache then looks worse than it is.
// Not thread-safe: the arena holds its lock. Cost: a few nanoseconds, no allocation.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/chunk.h"

namespace plimsoll::internal {

class CacheShadow {
 public:
  void give(std::size_t size) noexcept {
    Entry* entry = find(size);
    if (!entry) return;
    entry->size = size;
    ++entry->blocks;
    ++blocks_;
    bytes_ += size;
  }

  // Whether there is a block of this size; if so, removes it.
  bool take(std::size_t size) noexcept {
    Entry* entry = find(size);
    if (!entry || entry->blocks == 0) return false;
    --entry->blocks;
    --blocks_;
    bytes_ -= size;
    return true;
  }

  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t blocks() const noexcept { return blocks_; }
  void clear() noexcept { *this = {}; }

 private:
  static constexpr std::size_t kEntries = 512, kProbes = 8;
  struct Entry {
    std::size_t size = 0;
    std::size_t blocks = 0;
  };

  // The entry of this size or one it may take; nullptr when other sizes have them all.
  Entry* find(std::size_t size) noexcept {
    const auto home =
        static_cast<std::size_t>((size / kGranularity * 0x9E3779B97F4A7C15u) >> (64 - std::bit_width(kEntries - 1)));
    for (std::size_t i = 0; i < kProbes; ++i)
      if (Entry& entry = entries_[(home + i) % kEntries]; entry.size == size || entry.size == 0) return &entry;
    return nullptr;
  }

  std::array<Entry, kEntries> entries_{};
  std::size_t blocks_ = 0, bytes_ = 0;
};

}  // namespace plimsoll::internal
