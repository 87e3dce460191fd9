// Heap: best fit with coalescing over one range of pages; it can also serve a request for which no hole is large
// enough.
//
// A request is served, cheapest way first, from
//   1. the smallest hole whose pages are all there                      take_resident()
//   2. a hole that misses pages, while pages may still be committed     take_committing()
//   3. a hole that misses pages, with pages taken out of other holes    take_moving()
// so a request is refused only when the pages that hold a live byte, plus those of the request, pass the page limit.
//
// Invariants: the chunks of a zone tile it; two neighbours are never both free; a missing page lies wholly inside one
// free chunk; committed_pages() is the number of bits set in the page map.
// Blocks up to 4 KiB have a zone of their own so that they do not pin the holes between large ones.
// Not thread-safe: the arena holds its lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/chunk_table.h"
#include "plimsoll/memory/free_bins.h"
#include "plimsoll/memory/heap_counters.h"
#include "plimsoll/memory/pages/page_map.h"
#include "plimsoll/memory/pages/page_source.h"

namespace plimsoll::internal {

class Heap {
 public:
  // With `two_zones`, small blocks get a quarter of the range to themselves while there is room, or four times
  // `most_bytes` if that is less. There will be records for `most_bytes` of the smallest blocks; 0: for a sixteenth of
  // the range. Requires a range of at most most_pages().
  Heap(std::unique_ptr<PageRange> range, std::size_t page_bytes, bool two_zones, std::size_t most_bytes = 0);

  static constexpr std::size_t most_pages() noexcept { return UINT32_MAX; }  // Chunks count missing pages in 32 bits.

  // All three return a chunk of exactly `size` bytes (a multiple of 64) at a multiple of `alignment`, in state kTaken,
  // or nullptr when there is none without committing more than `page_cap` pages. After nullptr everything is as it was.
  // They throw OutOfMemory only when there is no memory even for a record. take_moving() commits more than `soft_cap`
  // pages only when every one of them then holds a live byte.
  Chunk* take_resident(std::size_t size, std::size_t alignment);
  Chunk* take_committing(std::size_t size, std::size_t alignment, std::size_t page_cap);
  Chunk* take_moving(std::size_t size, std::size_t alignment, std::size_t soft_cap, std::size_t page_cap);

  // Gives a chunk back; it merges with its free neighbours.
  void give(Chunk* chunk) noexcept;

  // Releases the pages of every hole that has at least so many. Returns how many pages the page source took back.
  std::size_t release_holes(std::size_t least_pages) noexcept;

  std::byte* base() const noexcept { return range_->base(); }
  std::size_t committed_pages() const noexcept { return committed_; }
  std::size_t peak_committed_pages() const noexcept { return peak_committed_; }
  void reset_peak() noexcept { peak_committed_ = committed_; }
  std::size_t spare_pages() const noexcept { return spare_; }  // Committed pages without a live byte.
  std::size_t page_bytes() const noexcept { return std::size_t{1} << page_shift_; }
  std::size_t largest_resident_hole() const noexcept;
  std::size_t pages_for(std::size_t size) const noexcept { return (size + page_bytes() - 1) >> page_shift_; }
  const HeapCounters& counters() const noexcept { return counters_; }
  ChunkTable& records() noexcept { return records_; }
  const ChunkTable& records() const noexcept { return records_; }
  std::size_t map_bytes() const noexcept;  // Bytes of the page map that were ever used.

  // The smallest `page_cap` with which take_moving() serves the request now. SIZE_MAX when no cap helps because the
  // addresses are too full of blocks.
  std::size_t sufficient_pages(std::size_t size, std::size_t alignment) noexcept;
  PageRange& range() noexcept { return *range_; }

  // Calls f(chunk, resident bytes inside) in address order.
  template <class F>
  void for_each(F&& f) const;

  // Checks every invariant; for tests. Ends the program when one is broken.
  void validate() const;

 private:
  struct Zone {
    Chunk* first = nullptr;
    FreeBins resident;  // All pages there.
    FreeBins partial;   // Some or all pages missing.
  };
  struct Spot {  // Where in a free chunk a request would be placed, and how many pages it would lack there.
    Chunk* hole = nullptr;
    std::size_t offset = 0;
    std::size_t missing = SIZE_MAX;
  };
  static constexpr std::size_t kSmallBlock = 4096;
  static constexpr int kCandidates = 8;

  std::size_t first_page(const Chunk* c) const noexcept { return (c->offset + page_bytes() - 1) >> page_shift_; }
  std::size_t last_page(const Chunk* c) const noexcept;
  std::size_t resident_pages(const Chunk* free) const noexcept;
  Zone& home(std::size_t size) noexcept { return zones_[zone_count_ > 1 && size > kSmallBlock]; }
  Zone& other(std::size_t size) noexcept { return zones_[zone_count_ > 1 && size <= kSmallBlock]; }

  void insert(Chunk* free) noexcept;
  void remove(Chunk* free) noexcept;
  void add_to_donors(Chunk* free) noexcept;
  void remove_from_donors(Chunk* free) noexcept;
  Chunk* carve(const Spot& spot, std::size_t size) noexcept;
  Chunk* split(Chunk* chunk, std::size_t size) noexcept;
  void give(Chunk* chunk, std::size_t missing) noexcept;
  std::size_t missing_in(std::size_t offset, std::size_t size) const noexcept;

  Spot best_spot(Zone& zone, std::size_t size, std::size_t alignment) const noexcept;
  void try_spot(Spot& best, Chunk* hole, std::size_t offset, std::size_t size) const noexcept;
  void try_resident_run(Spot& best, Chunk* hole, std::size_t size, std::size_t alignment) const noexcept;
  Spot choose_spot(std::size_t size, std::size_t alignment) noexcept;
  Chunk* take_at(const Spot& spot, std::size_t size, std::size_t soft_cap, std::size_t page_cap) noexcept;

  bool commit_missing(std::size_t first, std::size_t last) noexcept;
  bool take_pages(std::size_t wanted, std::size_t first, std::size_t last) noexcept;
  Chunk* next_donor(std::size_t pages) noexcept;
  bool drain(Chunk* donor, std::size_t& wanted, std::size_t& first, std::size_t last) noexcept;
  struct Run {
    std::size_t gone = 0, arrived = 0;  // Pages, from the start.
  };
  Run move_run(std::size_t from, std::size_t to, std::size_t pages) noexcept;
  std::size_t release_pages(Chunk* free) noexcept;

  Chunk* placed(Chunk* claimed) noexcept;  // nullptr, having given it back, when it has no place.

  std::unique_ptr<PageRange> range_;
  unsigned page_shift_;
  bool places_blocks_;
  ChunkTable records_;
  PageMap pages_;
  std::array<Zone, 2> zones_;
  std::size_t zone_count_;
  Chunk* donors_ = nullptr;         // Chunks in `partial` that still hold pages.
  Chunk* crumbs_ = nullptr;         // Chunks in `resident` below two pages that hold a whole one.
  std::size_t high_water_page_[2];  // No page of the zone from here on was ever committed.
  std::size_t committed_ = 0;
  std::size_t peak_committed_ = 0;
  std::size_t spare_ = 0;
  HeapCounters counters_;
};

template <class F>
void Heap::for_each(F&& f) const {
  for (std::size_t i = 0; i < zone_count_; ++i)
    for (const Chunk* c = zones_[i].first; c; c = c->next)
      f(*c, c->state == ChunkState::kFree ? c->size - (std::size_t{c->free.missing_pages} << page_shift_) : c->size);
}

}  // namespace plimsoll::internal
