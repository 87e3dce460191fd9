// ChunkTable: the records of an arena's chunks, numbered, never moved; spare ones are reused.
//
// Records are 128 bytes each, in one range of addresses that costs memory only where records were made, so their cost
// grows with the number of chunks that exist at once; trim() returns pages on which all records are spare to the
// system. A record's generation never falls, even when its page was released meanwhile: an old block's token matches no
// later block.
// Not thread-safe: the arena's lock protects it, except that number() and find() may run concurrently with the rest.
#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/pages/page_map.h"

namespace plimsoll::internal {

class ChunkTable {
 public:
  // Reserves addresses for `most` records, or for as many as the system grants. Throws OutOfMemory when that is almost
  // none.
  explicit ChunkTable(std::size_t most);
  ChunkTable(const ChunkTable&) = delete;
  ChunkTable& operator=(const ChunkTable&) = delete;
  ~ChunkTable();

  // Makes sure that the next `records` calls of make() succeed. Throws OutOfMemory.
  void reserve(std::size_t records) {
    if (spares_ + away_ * per_page_ + most_ - made_.load(std::memory_order_relaxed) < records) [[unlikely]]
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
    add_spare(chunk);
  }

  // Numbers fit in Block's token; find() returns nullptr for a number never given out.
  std::uint32_t number(const Chunk* chunk) const noexcept { return static_cast<std::uint32_t>(chunk - records_); }
  Chunk* find(std::uint32_t number) const noexcept {
    return number < made_.load(std::memory_order_acquire) ? records_ + number : nullptr;
  }

  std::size_t trim() noexcept;  // Returns the bytes released. Cost: linear in the records, when many are spare.

  std::size_t bytes() const noexcept {
    return (made_.load(std::memory_order_relaxed) - away_ * per_page_) * sizeof(Chunk);
  }

 private:
  Chunk* make_new() noexcept;
  void bring_back_page() noexcept;
  bool all_spare(std::size_t page, std::uint32_t& generation) const noexcept;
  void add_spare(Chunk* chunk) noexcept {
    chunk->link = spare_;
    spare_ = chunk;
    ++spares_;
  }
  [[noreturn]] void refuse(std::size_t records) const;

  std::size_t most_;
  Chunk* records_;
  std::atomic<std::size_t> made_{0};
  Chunk* spare_ = nullptr;
  std::size_t spares_ = 0;
  std::size_t per_page_;  // Records.
  PageMap pages_away_;    // The pages that were released and not used since.
  std::size_t away_ = 0;
  std::uint32_t next_generation_ = 0;  // Higher than that of any released record.
};

}  // namespace plimsoll::internal
