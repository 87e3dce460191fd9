// CentralHeap: the pages of one arena and the blocks on them, shared by all threads. An arena uses it when a thread's
// cache has no block of the size.
//
//   CentralHeap heap(source, options, center, mode);
//   HeapSearch search;
//   Chunk* chunk = heap.take({.bytes = 100, .size = 128, .alignment = 64}, search);   // nullptr: does not fit
//   heap.give(chunk, nullptr);
//
// It decides how many pages may be committed (the limit, less overhead where that is charged; a soft limit that prefers
// reuse to growth) and when threads may cache large blocks.
// Thread safety: every method takes `mutex` itself except those documented to require it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/cache_shadow.h"
#include "plimsoll/memory/heap.h"
#include "plimsoll/memory/meter_center.h"

namespace plimsoll::internal {

// What freeing a block must consider: nothing; pages were moved, so large blocks are not cached; frees wait for a safe
// point; a trace is being recorded.
class ArenaMode {
 public:
  enum Bit : std::uint8_t { kPressed = 1, kDeferred = 2, kRecording = 4 };

  void set(Bit bit, bool on) noexcept {
    if (has(bit) == on) return;
    if (on)
      bits_.fetch_or(bit, std::memory_order_relaxed);
    else
      bits_.fetch_and(static_cast<std::uint8_t>(~bit), std::memory_order_relaxed);
  }
  bool has(Bit bit) const noexcept { return (bits_.load(std::memory_order_relaxed) & bit) != 0; }
  bool is_normal() const noexcept { return bits_.load(std::memory_order_relaxed) == 0; }

 private:
  std::atomic<std::uint8_t> bits_{0};
};

struct BlockRequest {
  std::size_t bytes, size, alignment;  // `size` is rounded.
};

struct HeapSearch {
  std::size_t emptied = 0;  // Bytes that caches released on the way.
  bool failed = false;      // The heap found nothing even with caches emptied and pages moved.
};

// The limit that would serve a refused request.
struct SufficientLimit {
  std::size_t bytes = 0;         // Now and, as far as is known, if the program ran again from its start.
  std::size_t pages_now = 0;     // With all blocks where they are; 0 when pages are not what is missing.
  bool addresses_short = false;  // There are not enough addresses.
};

class CentralHeap {
 public:
  static constexpr std::size_t kAlwaysCached = 256_KiB;  // Up to this size a cached block keeps few pages from others.

  // Throws as Arena does. Borrows everything but the options; `center` counts the bytes in use.
  CentralHeap(PageSource& source, const ArenaOptions& options, const MeterCenter& center, ArenaMode& mode);

  void set_number(std::size_t number) noexcept { number_ = number; }  // The arena's number in the list of arenas.

  // Returns a chunk that is charged but not yet anyone's, or nullptr. Throws OutOfMemory when there is no memory even
  // for a record.
  Chunk* take(const BlockRequest& request, HeapSearch& search);
  // Takes back a chunk and a list of chunks evicted from a cache; either may be nullptr.
  void give(Chunk* chunk, Chunk* evicted) noexcept;

  std::size_t empty_caches();
  std::size_t trim();
  void collect();
  void touch_all_pages();

  SufficientLimit sufficient_limit(const BlockRequest& request);

  // Bytes of records, maps and caches, `beside` included. try_add_overhead() is false when it would pass the limit.
  std::size_t overhead_bytes() const;
  bool try_add_overhead(std::size_t bytes, OutOfMemoryDetails& why_not);
  void remove_overhead(std::size_t bytes) noexcept;

  void add_to(MemoryStats& stats) const;
  void reset_peak();
  std::vector<ArenaExtent> extents() const;
  void for_each_live(const std::function<void(const Chunk&)>& f) const;
  void validate() const;

  std::byte* base() const noexcept { return base_; }
  ChunkTable& records() noexcept { return *records_; }
  const ChunkTable& records() const noexcept { return *records_; }
  unsigned page_shift() const noexcept { return page_shift_; }
  std::size_t page_limit() const noexcept { return page_limit_; }
  std::size_t limit() const noexcept { return page_limit_ << page_shift_; }
  std::size_t range_bytes() const noexcept { return heap_->range().bytes(); }
  // As of the last change; no lock.
  std::size_t committed_pages() const noexcept { return committed_pages_.load(std::memory_order_relaxed); }
  Heap& heap() noexcept { return *heap_; }  // Requires the lock.
  const Heap& heap() const noexcept { return *heap_; }

  PageSource& source() const noexcept { return source_; }
  bool has_all_addresses() const noexcept;  // The source reserved as many as it was asked for.

  std::atomic<std::size_t> num_caches{0};  // Of threads.
  std::atomic<std::size_t> log_bytes{0};   // Of the arena's RequestLog.
  mutable std::mutex mutex;

 private:
  std::size_t flush_caches();  // This and all below require the lock.
  std::size_t soft_page_limit(std::size_t wanted_pages);
  std::size_t overhead_now() const noexcept;
  std::size_t charged_pages(std::size_t more) const noexcept;
  bool fit_overhead(std::size_t more);
  std::size_t guess_pages_when_run_again(std::size_t pages, const BlockRequest& request) const;
  std::size_t limit_for_addresses(std::size_t bytes) const noexcept;
  void note_moves(const BlockRequest& request) noexcept;
  void foresee_caching(std::size_t size) noexcept;
  void note_committed() noexcept { committed_pages_.store(heap_->committed_pages(), std::memory_order_relaxed); }

  PageSource& source_;
  const bool growth_, charge_overhead_;
  const unsigned page_shift_;
  const std::size_t page_limit_;
  const MeterCenter& center_;
  ArenaMode& mode_;
  std::unique_ptr<Heap> heap_;
  ChunkTable* records_;  // The heap's.
  std::byte* base_;
  std::size_t number_ = 0;
  std::size_t soft_limit_ = 0;                           // In pages.
  std::size_t beside_ = 0;                               // Bytes of add_overhead().
  std::size_t moves_noted_ = 0, uncached_requests_ = 0;  // See note_moves().
  std::size_t foreseen_hits_ = 0, excused_requests_ = 0, unforeseen_requests_ = 0;
  CacheShadow shadow_;  // Of large blocks, while they are not cached.
  std::atomic<std::size_t> committed_pages_{0};
};

}  // namespace plimsoll::internal
