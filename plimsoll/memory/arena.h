// Arena: hands out blocks of one device's memory and never holds more of it than its limit.
//
//   HostPageSource pages;
//   Arena arena(pages, {.name = "CPU:0", .limit = 256_MiB});
//   Block block = arena.allocate(1_MiB);
//   arena.deallocate(block);
//   arena.trim();                              // the bytes returned to the operating system
//
// Best fit with coalescing in one range of addresses (heap.h), behind a cache of freed blocks for each thread. Freed
// pages stay committed for reuse until trim(), collect() or memory pressure. On the host a request is refused only if
// the pages that hold a live byte, plus the request's pages, would pass the limit: the pages of free holes are moved to
// where they are needed. With growth on, the arena commits page by page and moves pages rather than let free ones pile
// up: what it holds never passes the larger of 22/21 of the peak bytes in use so far plus 1.9 MiB, and the largest
// number of pages that held a live byte at once.
//
// Every live block has a label (label.h). Together the labels are the ledger, which is always on. The sizes of the live
// blocks add up to stats().bytes_in_use, exactly.
// Cost: taking or returning a cached block takes a few nanoseconds and no lock. Metadata: 128 bytes per chunk, 32 KiB
// per GiB of addresses used, 17 KiB per thread; trim() releases what no chunk needs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/heap_counters.h"
#include "plimsoll/memory/label.h"
#include "plimsoll/memory/memory_resource.h"
#include "plimsoll/memory/pages/page_source.h"

namespace plimsoll {

namespace internal {
class ArenaCore;
class ArenaList;
}  // namespace internal

inline constexpr std::size_t kMostLimit = (std::size_t{1} << 44) - 4096;  // 2^32 - 1 pages of 4 KiB: see heap.h.

struct ArenaOptions {
  std::string name = "CPU:0";
  std::size_t limit = 0;  // Bytes of committed pages, rounded down to pages. Required.
  bool growth = false;    // Grow as needed instead of using the whole limit freely.
  bool pretouch = false;  // Touch all pages of the limit up front, so that none is faulted later. Host memory only.
  bool charge_overhead = false;  // Pages and overhead_bytes() together never pass the limit.
};

enum class ExtentState { kUsed, kCached, kFree };

// One range of the arena's addresses, for pictures.
struct ArenaExtent {
  std::size_t offset = 0, size = 0;
  std::size_t requested = 0;  // Bytes asked for, when the range is in use.
  ExtentState state = ExtentState::kFree;
  std::size_t resident_bytes = 0;
};

class PLIMSOLL_API Arena final : public MemoryResource {
 public:
  // Borrows `source`, which must outlive it. Throws InvalidArgument for a limit below one page or of 2^32 pages and
  // more (16 TiB on the host), OutOfMemory when the addresses cannot be reserved.
  Arena(PageSource& source, ArenaOptions options);
  ~Arena() override;  // Everything it handed out becomes invalid and is no longer charged to budgets.
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Block allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) override;
  Block allocate(std::size_t bytes, std::size_t alignment, const BlockLabel& label);
  void deallocate(const Block& block) override;

  // The same for callers that keep the record themselves. `bytes` > 0. give() requires a live chunk of this arena.
  Chunk* take(std::size_t bytes, const BlockLabel& label, std::size_t alignment = kDefaultAlignment);
  void give(Chunk* chunk) noexcept;
  void* address(const Chunk* chunk) const noexcept { return base_ + chunk->offset; }
  std::byte* base() const noexcept { return base_; }
  std::size_t range_bytes() const noexcept;  // Addresses reserved.

  MemoryStats stats() const override;
  void reset_peaks();  // Peaks fall to what is in use now.

  std::size_t trim();            // Empties caches and releases free pages; returns their bytes.
  void collect();                // Flushes deferred frees, empties caches, releases holes of 2 MiB and more.
  std::size_t flush_deferred();  // Lets deferred frees take effect. Returns their bytes.
  std::size_t empty_caches();    // Returns the bytes that were cached.
  void set_deferred_release(bool on) noexcept;

  const std::string& name() const noexcept;
  std::size_t limit() const noexcept;
  std::size_t overhead_bytes() const;  // Records, maps and caches beside the pages.

  // Counts memory that higher layers keep beside the pages, such as records of tensors, as overhead. Throws OutOfMemory
  // when overhead is charged and this much more does not fit; then nothing but caches has changed.
  void add_overhead(std::size_t bytes);
  void remove_overhead(std::size_t bytes) noexcept;
  // Called under pressure when overhead is charged: releases the part of it that nobody uses and returns its bytes.
  void set_overhead_trimmer(std::size_t (*trim)()) noexcept;

  HeapCounters move_counters() const;
  std::string mover() const;  // How pages are moved.
  std::string note() const;   // What the system does not let it do properly; empty when there is nothing.
  std::vector<ArenaExtent> extents() const;

  // Calls f(chunk) for every live block while all other threads are stopped; f must not allocate from an arena.
  void for_each_live(const std::function<void(const Chunk&)>& f) const;

  void validate() const;  // Checks every invariant; for tests.

 private:
  friend class internal::ArenaList;
  friend class AlertList;
  friend class TraceHooks;

  std::unique_ptr<ArenaCore> core_;  // Caches, budgets' charges, the heap: internal/arena_core.h.
  std::byte* base_;                  // Start of the range; kept here because address() is called for every operand.
};

}  // namespace plimsoll
