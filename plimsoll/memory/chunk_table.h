// ChunkTable: the records of an arena's chunks, numbered, never moved; spare ones are reused.
//
// Records are 128 bytes in one range of addresses that costs memory only where records were made, so their cost grows
// with the chunks that exist at once.
// Not thread-safe: the arena's lock protects it, except that number() and find() may run beside make().
#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/memory/chunk.h"

namespace plimsoll {

class ChunkTable {
 public:
  // Addresses for `most` records, or for as many as the system grants. Throws OutOfMemory when that is next to none.
  explicit ChunkTable(std::size_t most);
  ChunkTable(const ChunkTable&) = delete;
  ChunkTable& operator=(const ChunkTable&) = delete;
  ~ChunkTable();

  // Makes sure that the next `records` calls of make() succeed. Throws OutOfMemory.
  void reserve(std::size_t records) {
    if (spares_ + most_ - made_.load(std::memory_order_relaxed) < records) [[unlikely]]
      refuse(records);
  }

  Chunk* make() noexcept {  // Requires reserve().
    if (!spare_) [[unlikely]]
      return make_new();
    Chunk* chunk = spare_;
    spare_ = chunk->link;
    --spares_;
    return chunk;
  }

  void drop(Chunk* chunk) noexcept {
    chunk->state = ChunkState::kSpare;
    chunk->link = spare_;
    spare_ = chunk;
    ++spares_;
  }

  // Numbers fit Block's token; find() gives nullptr for one that never was.
  std::uint32_t number(const Chunk* chunk) const noexcept { return static_cast<std::uint32_t>(chunk - records_); }
  Chunk* find(std::uint32_t number) const noexcept {
    return number < made_.load(std::memory_order_acquire) ? records_ + number : nullptr;
  }

  std::size_t bytes() const noexcept { return made_.load(std::memory_order_relaxed) * sizeof(Chunk); }

 private:
  Chunk* make_new() noexcept;
  [[noreturn]] void refuse(std::size_t records) const;

  std::size_t most_;
  Chunk* records_;
  std::atomic<std::size_t> made_{0};
  Chunk* spare_ = nullptr;
  std::size_t spares_ = 0;
};

}  // namespace plimsoll
