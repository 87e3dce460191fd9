// BlockMap: finds a block's record by its address, for interfaces that hand out bare pointers.
//
//   BlockMap blocks(arena.range_bytes());
//   blocks.put(offset, chunk);
//   blocks.take(offset, chunk);      // true for one caller only, however many try
//
// A table with one entry per 64 bytes of the arena's addresses, whose pages exist only where blocks begin: 8 bytes for
// each 64 used by small blocks, at most one page per large one. release_empty() releases pages without entries, and so
// does put() before they outnumber the others two to one (by more than kSpareLeaves).
//
// Thread safety: every method may be called from any thread. No locks: a forked child may continue to use it.
// Cost: two atomic operations to put or take.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/chunk.h"

namespace plimsoll::internal {

class BlockMap {
 public:
  static constexpr std::size_t kSpareLeaves = 256;

  // For offsets below `range_bytes`. Throws OutOfMemory when the system refuses the address space.
  explicit BlockMap(std::size_t range_bytes);
  ~BlockMap();
  BlockMap(const BlockMap&) = delete;
  BlockMap& operator=(const BlockMap&) = delete;

  // Requires an offset that is a multiple of 64 and has no entry.
  void put(std::size_t offset, Chunk* chunk) noexcept;

  // The chunk that begins there, or nullptr.
  Chunk* find(std::size_t offset) const noexcept { return entry(offset).load(std::memory_order_acquire); }

  // Removes the entry; false when it is not, or no longer, `chunk`.
  bool take(std::size_t offset, Chunk* chunk) noexcept;

  std::size_t release_empty() noexcept;  // Returns the bytes released.
  std::size_t bytes() const noexcept;    // Memory the map itself takes.

 private:
  using Entry = std::atomic<Chunk*>;
  using Leaf = std::atomic<std::uint32_t>;                             // Entries in the low bits; the marks below.
  static constexpr std::uint32_t kTouched = std::uint32_t{1} << 30;    // Its page exists.
  static constexpr std::uint32_t kReleasing = std::uint32_t{1} << 31;  // Its page is being given back.
  static constexpr std::uint32_t kCount = kTouched - 1;

  Entry& entry(std::size_t offset) const noexcept { return entries_[offset / kGranularity]; }
  Leaf& leaf(std::size_t offset) const noexcept { return leaves_[offset / kGranularity >> leaf_shift_]; }
  void note_touched(Leaf& leaf) noexcept;
  bool release(std::size_t number) noexcept;

  unsigned leaf_shift_;  // Of an entry's number: a leaf is one page of entries.
  std::size_t page_bytes_, entry_bytes_, leaf_bytes_;
  Entry* entries_;
  Leaf* leaves_;
  std::atomic<std::size_t> touched_{0};     // Leaves with a page.
  std::atomic<std::size_t> occupied_{0};    // Leaves with an entry.
  std::atomic<std::size_t> high_water_{0};  // No leaf from here on was ever touched.
  std::atomic<bool> sweeping_{false};
};

}  // namespace plimsoll::internal
