// ArenaCore: how an arena serves a request: from the thread's cache, from the central heap, and up the pressure ladder.
//
// The path of a request, top to bottom in arena_core.cc:
//   take_quickly()   a cached block of that size and no budget in force: a few nanoseconds, no lock
//   take_slowly()    charge the budgets and the device, look in the cache, then in the CentralHeap
//   climb()          nothing fits: ask others to free memory, rung by rung, and try again
//   refuse()         OutOfMemory, with the holders and the limit that would suffice
//   give_quickly(), give_slowly()   back to the cache, or to the CentralHeap
// While its first requests are logged, everything takes the slow path.
// Thread safety: as Arena.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/arena_cache.h"
#include "plimsoll/memory/internal/central_heap.h"
#include "plimsoll/memory/internal/request_log.h"
#include "plimsoll/memory/meter_center.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll::internal {

class ArenaCore {
 public:
  // Two entries of the threads' tables of caches that no arena uses: one for dry runs, one that is always empty.
  static constexpr std::size_t kDryNumber = ThreadMemory::kMaxArenas - 1, kNoNumber = ThreadMemory::kMaxArenas - 2;

  ArenaCore(Arena& arena, PageSource& source, ArenaOptions options);

  // Inline: the only parts of an arena that every allocation runs. On nullptr or false the slow path takes over.
  Chunk* take_quickly(std::size_t bytes, const BlockLabel& label, std::size_t alignment) noexcept;
  bool give_quickly(Chunk* chunk) noexcept;

  Chunk* take_slowly(std::size_t bytes, const BlockLabel& label, std::size_t alignment);
  void give_slowly(Chunk* chunk) noexcept;
  Chunk* try_take(std::size_t size, std::size_t alignment);  // Does not ask others to free memory; nullptr: refused.
  std::size_t flush_deferred();
  void add_overhead(std::size_t bytes);
  MemoryStats stats() const;
  void reset_peaks();

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_alignment(std::size_t alignment) const;
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_block(const Block& block, const char* why) const;

  void set_number(std::size_t number) noexcept;  // In the list of arenas: where threads keep their cache of it.
  void detach(ThreadMemory& thread) noexcept;    // The thread ends: its cached blocks and counts become shared.
  void uncharge_live();                          // The arena ends: removes the charges of its blocks from budgets.
  void start_log();                              // Logs requests, if replaying them would be faithful.
  void log(LoggedRequest::Kind kind) noexcept;
  bool recording() const noexcept { return mode.has(ArenaMode::kRecording); }
  std::size_t number() const noexcept { return number_; }

  Arena& arena;
  const ArenaOptions options;
  MeterCenter center;    // Bytes in use.
  std::mutex log_mutex;  // Taken before the heap's, and never inside a gate.
  ArenaMode mode;
  CentralHeap heap;
  std::size_t most_alignment;  // Alignment of the range's base.
  std::size_t (*trim_overhead)() = nullptr;
  std::atomic<std::uint32_t> trace_index{0};  // In the trace that is being recorded.
  std::atomic<std::size_t> traced_pages{0};   // The number of committed pages that the trace recorded last.

 private:
  struct Refusal {
    const MeterCenter* by = nullptr;  // The center whose limit refused: `center` for the arena itself.
    HeapSearch search;
    std::size_t undone_before = 0;  // Charges undone when the request began; see charge_window.h.
    std::size_t undone = 0;         // Charges of this request that were undone.
    std::vector<PressureRung> tried;
  };

  ArenaCache& cache_of(ThreadMemory& thread) {
    ArenaCache* cache = thread.caches[number_];
    return cache ? *cache : attach(thread);
  }
  ArenaCache& attach(ThreadMemory& thread);

  Chunk* take_cached(ThreadMemory& thread, ArenaCache& cache, const BlockRequest& request) noexcept;
  Chunk* try_slowly(ThreadMemory& thread, const BlockRequest& request, const BlockLabel& label, Refusal& refusal);
  Chunk* try_alone(ThreadMemory& thread, const BlockRequest& request, const BlockLabel& label, Refusal& refusal);
  const MeterCenter* charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size);
  void undo_charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size) noexcept;
  bool uncharge(ThreadMemory& thread, ArenaCache& cache, const Chunk* chunk) noexcept;
  void return_quota(ThreadMemory& thread, ArenaCache& cache, std::size_t budget_number) noexcept;
  void check_alerts(const ThreadMemory& thread);
  static void publish(ArenaCache& cache, Chunk* chunk, std::size_t bytes, const BlockLabel& label) noexcept;
  static void publish_with_new_ids(ArenaCache& cache, Chunk* chunk) noexcept;
  void publish_new(ThreadMemory& thread, ArenaCache& cache, Chunk* chunk, std::size_t bytes,
                   const BlockLabel& label) noexcept;

  bool climb(std::size_t& rung, const BlockRequest& request, Refusal& refusal);
  const BudgetNode* evicting_budget(const Refusal& refusal) const noexcept;
  bool evict(const BlockRequest& request, Refusal& refusal);
  [[noreturn]] void refuse(const BlockRequest& request, const BlockLabel& label, Refusal& refusal);
  SufficientLimit find_sufficient_limit(const BlockRequest& request);

  template <class F>
  void add_to_log(F&& add) noexcept;
  void log_take(const BlockRequest& request, const Chunk* chunk) noexcept;
  void log_give(const Chunk* chunk) noexcept;
  void end_log() noexcept;
  void end_log_locked() noexcept;

  std::size_t number_ = 0;
  std::int64_t cache_limit_;   // Bytes one thread's cache may hold.
  Chunk* orphaned_ = nullptr;  // Deferred frees of threads that have ended. The heap's lock guards this and the next.
  std::uint64_t retired_allocations_ = 0;
  std::size_t retired_largest_ = 0;
  std::atomic<std::size_t> refusals_{0};

  std::atomic<std::size_t> quick_number_{kNoNumber};  // `number_` when requests may take the quick path.
  std::atomic<bool> logging_{false};
  std::unique_ptr<RequestLog> log_;               // `log_mutex` guards this and the two below.
  const ThreadMemory* log_thread_ = nullptr;      // The thread whose requests they are.
  std::size_t dry_words_ = std::size_t{1} << 21;  // How much of logs may still be replayed: some tenths of a second.
};

// Makes a charged chunk a live block. The caller is inside its gate.
inline void ArenaCore::publish(ArenaCache& cache, Chunk* chunk, std::size_t bytes, const BlockLabel& label) noexcept {
  cache.meter.note_peak();
  chunk->requested = bytes;
  chunk->label = label;
  const std::uint64_t id = cache.next_id.load(std::memory_order_relaxed);
  if (id == cache.last_id.load(std::memory_order_relaxed)) [[unlikely]]
    return publish_with_new_ids(cache, chunk);
  cache.next_id.store(id + 1, std::memory_order_relaxed);
  chunk->label.id = id;
}

// The common case: a cached block of that size, no budget in force. nullptr leaves the rest to take_slowly.
[[gnu::always_inline]] inline Chunk* ArenaCore::take_quickly(std::size_t bytes, const BlockLabel& label,
                                                             std::size_t alignment) noexcept {
  const std::size_t size = (bytes + kGranularity - 1) & ~(kGranularity - 1);
  ThreadMemory& thread = ThreadMemory::current();
  ArenaCache* cache = thread.caches[quick_number_.load(std::memory_order_relaxed)];
  if (!cache || thread.budget || alignment > kGranularity) [[unlikely]]
    return nullptr;
  const EnterThread inside(thread);
  if (!cache->meter.fits(static_cast<std::int64_t>(size))) [[unlikely]]
    return nullptr;
  Chunk* chunk = cache->pop(size);
  if (!chunk) [[unlikely]]
    return nullptr;
  cache->meter.add(static_cast<std::int64_t>(size));
  chunk->state = ChunkState::kLive;
  ++chunk->generation;
  publish(*cache, chunk, bytes, label);
  return chunk;
}

// The common case: this thread's own block, no budget, nothing unusual. False leaves the rest to give_slowly.
[[gnu::always_inline]] inline bool ArenaCore::give_quickly(Chunk* chunk) noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  ArenaCache* cache = thread.caches[quick_number_.load(std::memory_order_relaxed)];
  if (!cache || chunk->budget || chunk->owner != thread.id) [[unlikely]]
    return false;
  const std::size_t size = chunk->size;
  thread.enter();
  if (!mode.is_normal() || cache->cached_bytes() + static_cast<std::int64_t>(size) > cache_limit_ ||
      !cache->push(chunk)) [[unlikely]] {
    thread.leave();
    return false;
  }
  const bool surplus = cache->meter.subtract(static_cast<std::int64_t>(size));
  thread.leave();
  if (surplus) [[unlikely]]
    return_quota(thread, *cache, SIZE_MAX);
  return true;
}

}  // namespace plimsoll::internal
