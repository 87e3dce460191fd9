// ChunkTable: the records of an arena's chunks, numbered, never moved; spare ones are reused.
//
// Records are 128 bytes and come in slabs of 64 KiB, so their cost grows with the chunks that exist at once.
// Not thread-safe: the arena's lock protects it, except that number() and find() may run beside make().
#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/memory/chunk.h"

namespace plimsoll {

class ChunkTable {
 public:
  ChunkTable();
  ChunkTable(const ChunkTable&) = delete;
  ChunkTable& operator=(const ChunkTable&) = delete;
  ~ChunkTable();

  // Makes sure that the next `records` calls of make() succeed. Throws OutOfMemory.
  void reserve(std::size_t records) {
    while (spares_ < records) add_slab();
  }

  Chunk* make() noexcept {  // Requires reserve().
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
  static std::uint32_t number(const Chunk* chunk) noexcept {
    const auto* slab = reinterpret_cast<const Chunk*>(reinterpret_cast<std::uintptr_t>(chunk) & ~(kSlabBytes - 1));
    return static_cast<std::uint32_t>(slab->offset * kSlabRecords + static_cast<std::size_t>(chunk - slab));
  }
  Chunk* find(std::uint32_t number) const noexcept {
    const std::size_t slab = number / kSlabRecords, index = number % kSlabRecords;
    if (index == 0 || slab >= slabs_.load(std::memory_order_acquire)) return nullptr;
    return &directory_[slab][index];
  }

  std::size_t bytes() const noexcept { return slabs_.load(std::memory_order_relaxed) * kSlabBytes; }

 private:
  static constexpr std::size_t kSlabRecords = 512;  // The first of them holds the slab's number.
  static constexpr std::size_t kSlabBytes = kSlabRecords * sizeof(Chunk);
  static constexpr std::size_t kSlabsPerMapping = 16;
  static constexpr std::size_t kMaxSlabs = std::size_t{1} << 20;

  void add_slab();

  Chunk** directory_;      // Of slabs by number; zero pages.
  void** mappings_;        // Of kSlabsPerMapping slabs each; zero pages.
  std::atomic<std::size_t> slabs_{0};
  Chunk* spare_ = nullptr;
  std::size_t spares_ = 0;
};

}  // namespace plimsoll
