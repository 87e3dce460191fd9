// Arena: hands out blocks of one device's memory and never holds more of it than its limit.
//
//   HostPageSource pages;
//   Arena arena(pages, {.name = "CPU:0", .limit = 256_MiB});
//   Block block = arena.allocate(1_MiB);
//   arena.deallocate(block);
//   arena.trim();                              // bytes given back to the operating system
//
// Best fit with coalescing in one range of addresses (heap.h), behind a cache of freed blocks for each thread. Freed
// pages stay committed for reuse until trim(), collect() or pressure. On the host a request is refused only if the
// pages that hold a live byte, plus the request's pages, would pass the limit: free holes' pages are moved to where
// they are needed. With growth on, the arena commits page by page and moves pages rather than let free ones pile up:
// what it holds never passes the larger of 22/21 of the bytes in use at the peak so far plus 1.9 MiB, and the most
// pages that held a live byte at once.
//
// Every live block has a label (label.h): together they are the ledger, always on. The sum of the live blocks' sizes is
// stats().bytes_in_use, exactly.
// Cost: a cached block is taken or given in some nanoseconds without a lock. Metadata: 128 bytes per chunk, 32 KiB per
// GiB of addresses used, 17 KiB per thread; trim() gives back what no chunk needs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/arena_cache.h"
#include "plimsoll/memory/cache_shadow.h"
#include "plimsoll/memory/heap.h"
#include "plimsoll/memory/memory_resource.h"
#include "plimsoll/memory/meter_center.h"
#include "plimsoll/memory/pages/page_source.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll {

inline constexpr std::size_t kMostLimit = (std::size_t{1} << 44) - 4096;  // 2^32 - 1 pages of 4 KiB: see heap.h.

struct ArenaOptions {
  std::string name = "CPU:0";
  std::size_t limit = 0;  // Bytes of committed pages, rounded down to pages. Required.
  bool growth = false;    // Grow as needed instead of using the limit freely.
  bool pretouch = false;  // Touch all pages of the limit up front, so that none is faulted later. Host memory only.
  bool charge_overhead = false;  // Pages and overhead_bytes() together never pass the limit.
};

enum class ExtentState { kUsed, kCached, kFree };

// One stretch of the arena's addresses, for pictures.
struct ArenaExtent {
  std::size_t offset = 0, size = 0;
  std::size_t requested = 0;  // Bytes asked for, of a used one.
  ExtentState state = ExtentState::kFree;
  std::size_t resident_bytes = 0;
};

class PLIMSOLL_API Arena final : public MemoryResource {
 public:
  // Borrows `source`, which must outlive it. Throws InvalidArgument for a limit below one page or of 2^32 pages and
  // more (16 TiB on the host), OutOfMemory when the addresses cannot be reserved.
  Arena(PageSource& source, ArenaOptions options);
  ~Arena() override;  // Everything it handed out becomes invalid, and is charged to budgets no longer.
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
  std::size_t range_bytes() const noexcept { return heap_->range().bytes(); }  // Addresses reserved.

  MemoryStats stats() const override;
  void reset_peaks();  // Peaks fall to what is in use now.

  std::size_t trim();            // Empties caches and gives free pages back; returns their bytes.
  void collect();                // Flushes deferred frees, empties caches, gives back holes of 2 MiB and more.
  std::size_t flush_deferred();  // Deferred frees take effect. Returns their bytes.
  std::size_t empty_caches();    // Returns the bytes that were cached.
  void set_deferred_release(bool on) noexcept { set_mode(kDeferred, on); }

  const std::string& name() const noexcept { return options_.name; }
  std::size_t limit() const noexcept { return page_limit_ << page_shift_; }
  std::size_t overhead_bytes() const;  // Records, maps and caches beside the pages.

  // Counts what layers above keep beside the pages, such as records of tensors, as overhead. Throws OutOfMemory when
  // overhead is charged and this much more does not fit; then nothing has changed but caches.
  void add_overhead(std::size_t bytes);
  void remove_overhead(std::size_t bytes) noexcept;
  // Asked under pressure, when overhead is charged: gives back what nobody uses of it. Returns its bytes.
  void set_overhead_trimmer(std::size_t (*trim)()) noexcept { trim_overhead_ = trim; }

  HeapCounters move_counters() const;
  std::string mover() const;  // How pages are moved.
  std::string note() const;   // What the system does not let it do as it should; empty when nothing.
  std::vector<ArenaExtent> extents() const;

  // Calls f(chunk) for every live block while all threads stand still; f must not allocate from an arena.
  void for_each_live(const std::function<void(const Chunk&)>& f) const;

  void validate() const;  // Checks every invariant; for tests.

 private:
  friend class ArenaList;
  friend class AlertList;
  friend class TraceHooks;
  // What give() has to mind: nothing; pages were moved, so large blocks are not cached; frees wait for a safe point;
  // a trace is being recorded.
  enum Mode : std::uint8_t { kNormal = 0, kPressed = 1, kDeferred = 2, kRecording = 4 };
  struct Request {
    std::size_t bytes, size, alignment;
  };
  struct Refusal {
    const MeterCenter* by = nullptr;  // Whose limit it was: center_ for the arena itself.
    std::size_t emptied = 0;          // Bytes that caches gave up on the way.
    bool searched = false;            // The heap was asked and had nothing, caches emptied and pages moved.
    std::size_t undone_before = 0;    // Charges that were undone when the request began; see charge_window.h.
    std::size_t undone = 0;           // Of this request.
    std::vector<PressureRung> tried;
  };

  ArenaCache& cache_of(ThreadMemory& thread) {
    ArenaCache* cache = thread.caches[number_];
    return cache ? *cache : attach(thread);
  }
  ArenaCache& attach(ThreadMemory& thread);
  void detach(ThreadMemory& thread) noexcept;
  void uncharge_live();

  Chunk* take_cached(ThreadMemory& thread, ArenaCache& cache, const Request& request) noexcept;
  Chunk* take_slowly(std::size_t bytes, const BlockLabel& label, std::size_t alignment);
  const MeterCenter* charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size);
  void undo_charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size) noexcept;
  bool uncharge(ThreadMemory& thread, ArenaCache& cache, const Chunk* chunk) noexcept;
  void return_quota(ThreadMemory& thread, ArenaCache& cache, std::size_t budget_number) noexcept;
  Chunk* try_slowly(ThreadMemory& thread, const Request& request, const BlockLabel& label, Refusal& refusal);
  Chunk* try_alone(ThreadMemory& thread, const Request& request, const BlockLabel& label, Refusal& refusal);
  void check_alerts(const ThreadMemory& thread);
  Chunk* take_central(const Request& request, Refusal& refusal);
  std::size_t soft_page_limit(std::size_t wanted_pages);
  std::size_t overhead_locked() const noexcept;
  std::size_t charged_pages(std::size_t more) const noexcept;
  bool fit_overhead(std::size_t more);
  void publish_new(ThreadMemory& thread, ArenaCache& cache, Chunk* chunk, std::size_t bytes,
                   const BlockLabel& label) noexcept;
  static void publish_with_new_ids(ArenaCache& cache, Chunk* chunk) noexcept;
  void give_slowly(Chunk* chunk) noexcept;
  void give_to_heap(Chunk* chunk, Chunk* evicted) noexcept;
  Chunk* take_quickly(std::size_t bytes, const BlockLabel& label, std::size_t alignment) noexcept;
  bool give_quickly(Chunk* chunk) noexcept;
  void set_mode(std::uint8_t bit, bool on) noexcept;
  bool recording() const noexcept { return (mode_.load(std::memory_order_relaxed) & kRecording) != 0; }
  void note_committed() noexcept { committed_pages_.store(heap_->committed_pages(), std::memory_order_relaxed); }
  void publish(ArenaCache& cache, Chunk* chunk, std::size_t bytes, const BlockLabel& label) noexcept;
  std::size_t flush_caches_locked();
  void note_moves(const Request& request) noexcept;
  void foresee_caching(std::size_t size) noexcept;
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_alignment(std::size_t alignment) const;
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_block(const Block& block, const char* why) const;
  bool climb(std::size_t& rung, const Request& request, Refusal& refusal);
  const BudgetNode* evicting_budget(const Refusal& refusal) const noexcept;
  bool evict(const Request& request, Refusal& refusal);
  std::size_t sufficient_limit(const Request& request, bool& addresses_short);
  std::size_t limit_for_addresses(std::size_t bytes) const noexcept;
  [[noreturn]] void refuse(const Request& request, const BlockLabel& label, Refusal& refusal);

  PageSource& source_;
  const ArenaOptions options_;
  mutable std::mutex mutex_;
  std::unique_ptr<Heap> heap_;  // Guarded by mutex_, as is all below but for the atomics.
  ChunkTable* records_;         // The heap's.
  std::byte* base_;
  unsigned page_shift_;
  std::size_t page_limit_;
  static constexpr std::size_t kMostAlignment = 2_MiB;
  static constexpr std::size_t kAlwaysCached = 256_KiB;  // Up to here a cached block keeps few pages from others.
  std::size_t most_alignment_ = kMostAlignment;          // What the range's base is aligned to.
  std::size_t number_;                                   // In the list of arenas: where threads keep their cache of it.
  std::size_t soft_limit_ = 0;                           // In pages; growth mode.
  std::size_t beside_ = 0;                               // Bytes of add_overhead().
  std::size_t (*trim_overhead_)() = nullptr;
  std::atomic<std::size_t> num_caches_{0};               // Of threads.
  std::size_t moves_noted_ = 0, uncached_requests_ = 0;  // See note_moves().
  std::size_t foreseen_hits_ = 0, excused_requests_ = 0, unforeseen_requests_ = 0;
  CacheShadow shadow_;         // Of large blocks, while they are not cached.
  std::int64_t cache_limit_;   // Bytes one thread's cache may hold.
  MeterCenter center_;         // Bytes in use.
  Chunk* orphaned_ = nullptr;  // Deferred frees of threads that have ended.
  std::uint64_t retired_allocations_ = 0;
  std::size_t retired_largest_ = 0;
  std::atomic<std::size_t> refusals_{0};
  std::atomic<std::uint8_t> mode_{kNormal};
  std::atomic<std::uint32_t> trace_index_{0};    // In the trace that is being recorded.
  std::atomic<std::size_t> committed_pages_{0};  // As of the last change, for traces.
  std::atomic<std::size_t> traced_pages_{0};     // The last of them that a trace has.
};

}  // namespace plimsoll
