// What an arena tells about itself.
#include <algorithm>

#include "plimsoll/memory/arena.h"

namespace plimsoll {

MemoryStats Arena::stats() const {
  MemoryStats stats;
  const std::lock_guard lock(mutex_);
  stats.bytes_in_use = center_.used();
  stats.peak_bytes_in_use = std::max(center_.peak(), stats.bytes_in_use);
  stats.bytes_reserved = heap_->committed_pages() << page_shift_;
  stats.peak_bytes_reserved = heap_->peak_committed_pages() << page_shift_;
  stats.bytes_limit = options_.limit;
  stats.largest_free_block_bytes = heap_->largest_resident_hole();
  stats.num_allocs = retired_allocations_;
  stats.largest_alloc_bytes = retired_largest_;
  stats.num_ooms = refusals_.load(std::memory_order_relaxed);
  ThreadRegistry::instance().for_each([&](const ThreadMemory& thread) {
    const ArenaCache* cache = thread.caches[number_];
    if (!cache) return;
    stats.num_allocs += cache->allocations();
    stats.largest_alloc_bytes = std::max(stats.largest_alloc_bytes, cache->largest.load(std::memory_order_relaxed));
  });
  return stats;
}

void Arena::reset_peaks() {
  const std::lock_guard lock(mutex_);
  heap_->reset_peak();
  center_.reset_peak();
}

std::size_t Arena::overhead_locked() const noexcept {
  const std::size_t caches = num_caches_.load(std::memory_order_relaxed) * sizeof(ArenaCache);
  return heap_->records().bytes() + heap_->map_bytes() + caches + sizeof(Arena) + sizeof(Heap) + beside_;
}

std::size_t Arena::overhead_bytes() const {
  const std::lock_guard lock(mutex_);
  return overhead_locked();
}

HeapCounters Arena::move_counters() const {
  const std::lock_guard lock(mutex_);
  return heap_->counters();
}

std::string Arena::mover() const {
  const std::lock_guard lock(mutex_);
  return heap_->range().mover();
}

std::string Arena::note() const {
  const std::lock_guard lock(mutex_);
  return heap_->range().note();
}

std::vector<ArenaExtent> Arena::extents() const {
  std::vector<ArenaExtent> extents;
  const std::lock_guard lock(mutex_);
  const StopThreads stopped;
  heap_->for_each([&](const Chunk& chunk, std::size_t resident) {
    ArenaExtent extent{chunk.offset, chunk.size, 0, ExtentState::kFree, resident};
    if (chunk.state == ChunkState::kCached) extent.state = ExtentState::kCached;
    if (chunk.state == ChunkState::kLive || chunk.state == ChunkState::kDeferred) {
      extent.state = ExtentState::kUsed;
      extent.requested = chunk.requested;
    }
    extents.push_back(extent);
  });
  return extents;
}

void Arena::for_each_live(const std::function<void(const Chunk&)>& f) const {
  const std::lock_guard lock(mutex_);
  const StopThreads stopped;
  heap_->for_each([&](const Chunk& chunk, std::size_t) {
    if (chunk.state == ChunkState::kLive || chunk.state == ChunkState::kDeferred) f(chunk);
  });
}

void Arena::validate() const {
  const std::lock_guard lock(mutex_);
  const StopThreads stopped;
  heap_->validate();
  PLIMSOLL_CHECK(heap_->committed_pages() <= page_limit_);
}

}  // namespace plimsoll
