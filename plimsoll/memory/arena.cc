#include "plimsoll/memory/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/charge_window.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll {
namespace {

std::atomic<std::uint64_t> next_block_id{1};

ArenaOptions checked(ArenaOptions options, std::size_t page_bytes) {
  if (options.limit < page_bytes)
    throw InvalidArgument(fmt::format("arena \"{}\": a limit of {} is less than one page of {} bytes", options.name,
                                      format_bytes_exactly(options.limit), page_bytes));
  if (options.limit / page_bytes > Heap::most_pages())
    throw InvalidArgument(fmt::format("arena \"{}\": a limit of {} is more than {} pages of {} bytes; set one below {}",
                                      options.name, format_bytes_exactly(options.limit), Heap::most_pages(), page_bytes,
                                      format_bytes((Heap::most_pages() + 1) * page_bytes)));
  return options;
}

std::unique_ptr<PageRange> reserve(PageSource& source, std::size_t limit, const std::string& name) {
  const std::size_t most = Heap::most_pages() * source.page_bytes();
  auto range = source.reserve(std::min(source.range_bytes(limit), most), limit);
  if (range->bytes() > most)
    throw InvalidArgument(fmt::format("arena \"{}\": its page source reserved {}, more than {} pages of {} bytes", name,
                                      format_bytes_exactly(range->bytes()), Heap::most_pages(), source.page_bytes()));
  return range;
}

}  // namespace

Arena::Arena(PageSource& source, ArenaOptions options)
    : source_(source),
      options_(checked(std::move(options), source.page_bytes())),
      page_shift_(static_cast<unsigned>(std::bit_width(source.page_bytes())) - 1),
      page_limit_(options_.limit >> page_shift_),
      cache_limit_(static_cast<std::int64_t>(std::min<std::size_t>(options_.limit / 4, INT64_MAX))),
      center_(options_.limit) {
  auto range = reserve(source, limit(), name());
  base_ = range->base();
  if (const auto base = reinterpret_cast<std::uintptr_t>(base_); base != 0)
    most_alignment_ = std::min(kMostAlignment, base & -base);
  const bool roomy = range->bytes() / 4 >= options_.limit;
  heap_ = std::make_unique<Heap>(std::move(range), source.page_bytes(), roomy, limit());
  records_ = &heap_->records();
  ArenaList::instance().add(this);
  TraceHooks::arena_made(*this);
  AlertList::instance().check(*this);
  if (!options_.pretouch) return;
  const std::lock_guard lock(mutex_);
  const std::size_t pages = page_limit_ - std::min(page_limit_, charged_pages(0)), all = pages << page_shift_;
  if (all == 0) return;
  if (Chunk* chunk = heap_->take_committing(all, kGranularity, pages)) {
    for (std::size_t at = 0; at < all; at += source.page_bytes())
      *static_cast<volatile char*>(static_cast<void*>(base_ + chunk->offset + at)) = 0;
    heap_->give(chunk);
  }
}

Arena::~Arena() {
  TraceHooks::arena_ends(*this);
  uncharge_live();
  ArenaList::instance().remove(this, number_);
}

// Blocks end with their arena: budgets are charged for them no longer.
void Arena::uncharge_live() {
  std::map<BudgetNode*, std::int64_t> charged;
  for_each_live([&](const Chunk& chunk) {
    if (chunk.budget) charged[chunk.budget] += static_cast<std::int64_t>(chunk.size);
  });
  ThreadMemory& thread = ThreadMemory::current();
  for (const auto& [node, bytes] : charged) {
    Meter& first = thread.meter(*node);
    const std::lock_guard lock(MeterCenter::mutex());  // Until it is released the node stays.
    {
      const EnterThread inside(thread);
      for (Meter* meter = &first; meter; meter = meter->parent) meter->subtract(bytes);
    }
    for (Meter* meter = &first; meter; meter = meter->parent) meter->center->give_back(*meter);
  }
}

ArenaCache& Arena::attach(ThreadMemory& thread) {
  auto cache = std::make_unique<ArenaCache>();
  const std::lock_guard lock(MeterCenter::mutex());
  center_.attach(cache->meter);
  num_caches_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard threads(ThreadRegistry::instance().mutex);  // Others look through the threads' caches.
  return *(thread.caches[number_] = cache.release());
}

// The thread ends: its cached blocks and counts become everybody's.
void Arena::detach(ThreadMemory& thread) noexcept {
  ArenaCache* cache = thread.caches[number_];
  if (!cache) return;
  const std::lock_guard lock(mutex_);
  while (Chunk* chunk = cache->deferred) {  // Taking effect may call alerts: not under the list's lock.
    cache->deferred = chunk->link;
    chunk->link = std::exchange(orphaned_, chunk);
  }
  cache->drain([&](Chunk* chunk) { heap_->give(chunk); });
  retired_allocations_ += cache->allocations();
  retired_largest_ = std::max(retired_largest_, cache->largest.load(std::memory_order_relaxed));
  const std::lock_guard centers(MeterCenter::mutex());
  center_.detach(cache->meter);
  const std::lock_guard threads(ThreadRegistry::instance().mutex);
  thread.caches[number_] = nullptr;
  num_caches_.fetch_sub(1, std::memory_order_relaxed);
  delete cache;
}

void Arena::refuse_alignment(std::size_t alignment) const {
  throw InvalidArgument(
      fmt::format("\"{}\": alignment {} is not a power of two up to {}", name(), alignment, most_alignment_));
}

void Arena::refuse_block(const Block& block, const char* why) const {
  throw InvalidArgument(fmt::format("\"{}\": the block of {} at {} {}; nothing was changed", name(),
                                    format_bytes_exactly(block.size()), block.data(), why));
}

// Makes a charged chunk a live block. The caller is inside its gate.
inline void Arena::publish(ArenaCache& cache, Chunk* chunk, std::size_t bytes, const BlockLabel& label) noexcept {
  cache.meter.note_peak();
  chunk->requested = bytes;
  chunk->label = label;
  const std::uint64_t id = cache.next_id.load(std::memory_order_relaxed);
  if (id == cache.last_id.load(std::memory_order_relaxed)) [[unlikely]]
    return publish_with_new_ids(cache, chunk);
  cache.next_id.store(id + 1, std::memory_order_relaxed);
  chunk->label.id = id;
}

void Arena::publish_with_new_ids(ArenaCache& cache, Chunk* chunk) noexcept {
  const std::uint64_t first = next_block_id.fetch_add(ArenaCache::kIdBatch, std::memory_order_relaxed);
  cache.id_batches.store(cache.id_batches.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  cache.last_id.store(first + ArenaCache::kIdBatch, std::memory_order_relaxed);
  cache.next_id.store(first + 1, std::memory_order_relaxed);
  chunk->label.id = first;
}

void Arena::publish_new(ThreadMemory& thread, ArenaCache& cache, Chunk* chunk, std::size_t bytes,
                        const BlockLabel& label) noexcept {
  const EnterThread inside(thread);
  publish(cache, chunk, bytes, label);
  chunk->owner = thread.id;
  chunk->state = ChunkState::kLive;
  for (Meter* meter = thread.budget; meter; meter = meter->parent) meter->note_peak();
  chunk->budget = thread.budget ? static_cast<BudgetNode*>(thread.budget->center) : nullptr;
  if (chunk->size > cache.largest.load(std::memory_order_relaxed))
    cache.largest.store(chunk->size, std::memory_order_relaxed);
}

// The common case: a cached block of that size, no budget in force. nullptr leaves all else to take_slowly.
[[gnu::always_inline]] inline Chunk* Arena::take_quickly(std::size_t bytes, const BlockLabel& label,
                                                         std::size_t alignment) noexcept {
  const std::size_t size = (bytes + kGranularity - 1) & ~(kGranularity - 1);
  ThreadMemory& thread = ThreadMemory::current();
  ArenaCache* cache = thread.caches[number_];
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

Chunk* Arena::take(std::size_t bytes, const BlockLabel& label, std::size_t alignment) {
  Chunk* chunk = take_quickly(bytes, label, alignment);
  if (!chunk) [[unlikely]]
    chunk = take_slowly(bytes, label, alignment);
  if (recording()) [[unlikely]]
    TraceHooks::took(*this, *chunk);
  return chunk;
}

// A cached block for a request that is already charged.
Chunk* Arena::take_cached(ThreadMemory& thread, ArenaCache& cache, const Request& request) noexcept {
  if (request.alignment > kGranularity) return nullptr;
  const EnterThread inside(thread);
  Chunk* chunk = cache.pop(request.size);
  if (!chunk) return nullptr;
  cache.hold(-static_cast<std::int64_t>(request.size));  // It was counted as cached and is now counted as used.
  chunk->state = ChunkState::kTaken;
  ++chunk->generation;
  return chunk;
}

// Counts `size` bytes as used here and in every budget of the scope. Returns who refused, nullptr when none did.
const MeterCenter* Arena::charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size) {
  const auto for_all = [&](auto&& f) {
    for (Meter* meter = thread.budget; meter; meter = meter->parent)  // Budgets first: theirs is the advice that helps.
      if (!f(*meter)) return meter;
    return f(cache.meter) ? nullptr : &cache.meter;
  };
  const auto add = [&](Meter& meter) {
    meter.add(size);
    return true;
  };
  {
    const EnterThread inside(thread);
    if (!for_all([&](const Meter& meter) { return meter.fits(size); })) {
      for_all(add);
      cache.hold(size);
      return nullptr;
    }
  }
  const std::lock_guard lock(MeterCenter::mutex());  // While it is held nobody takes quota back.
  if (const Meter* refused = for_all([&](Meter& meter) { return meter.center->draw(meter, size); })) {
    for_all([&](Meter& meter) {
      meter.center->cancel(meter);
      return &meter != refused;
    });
    return refused->center;
  }
  const EnterThread inside(thread);
  for_all(add);
  cache.hold(size);
  return nullptr;
}

void Arena::undo_charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size) noexcept {
  const std::lock_guard lock(MeterCenter::mutex());
  {
    const EnterThread inside(thread);
    cache.meter.subtract(size);
    cache.hold(-size);
    for (Meter* meter = thread.budget; meter; meter = meter->parent) meter->subtract(size);
  }
  note_undone_charge();
  center_.cancel(cache.meter);
  for (Meter* meter = thread.budget; meter; meter = meter->parent) meter->center->cancel(*meter);
}

// Uncounts a chunk that is given back. The caller is inside its gate and has a meter for the chunk's budget.
inline bool Arena::uncharge(ThreadMemory& thread, ArenaCache& cache, const Chunk* chunk) noexcept {
  const auto size = static_cast<std::int64_t>(chunk->size);
  bool surplus = cache.meter.subtract(size);
  if (chunk->budget)
    for (Meter* meter = thread.find_meter(*chunk->budget); meter; meter = meter->parent)
      surplus |= meter->subtract(size);
  return surplus;
}

// Gives unused quota back to the device and to the budget of this number (if it still exists).
void Arena::return_quota(ThreadMemory& thread, ArenaCache& cache, std::size_t budget_number) noexcept {
  bool fell = false, budget_fell = false;
  {
    const std::lock_guard lock(MeterCenter::mutex());
    center_.give_back(cache.meter);
    fell = center_.fell_below_mark();
    if (budget_number < thread.meters.size())
      for (Meter* meter = thread.meters[budget_number].get(); meter; meter = meter->parent) {
        meter->center->give_back(*meter);
        budget_fell |= meter->center->fell_below_mark();
      }
  }
  if (fell) AlertList::instance().check(*this);
  if (budget_fell) AlertList::instance().check_budgets();
}

// The common case: this thread's own block, no budget, nothing unusual. False leaves all else to give_slowly.
[[gnu::always_inline]] inline bool Arena::give_quickly(Chunk* chunk) noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  ArenaCache* cache = thread.caches[number_];
  if (!cache || chunk->budget || chunk->owner != thread.id) [[unlikely]]
    return false;
  const std::size_t size = chunk->size;
  thread.enter();
  if (mode_.load(std::memory_order_relaxed) != kNormal ||
      cache->cached_bytes() + static_cast<std::int64_t>(size) > cache_limit_ || !cache->push(chunk)) [[unlikely]] {
    thread.leave();
    return false;
  }
  const bool surplus = cache->meter.subtract(static_cast<std::int64_t>(size));
  thread.leave();
  if (surplus) [[unlikely]]
    return_quota(thread, *cache, SIZE_MAX);
  return true;
}

void Arena::give(Chunk* chunk) noexcept {
  if (!give_quickly(chunk)) [[unlikely]]
    give_slowly(chunk);
}

Block Arena::allocate(std::size_t bytes, std::size_t alignment) {
  static constexpr BlockLabel kUnlabelled;
  return allocate(bytes, alignment, kUnlabelled);
}

Block Arena::allocate(std::size_t bytes, std::size_t alignment, const BlockLabel& label) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > most_alignment_) [[unlikely]]
    refuse_alignment(alignment);
  if (bytes == 0) [[unlikely]]
    return {};
  Chunk* chunk = take_quickly(bytes, label, alignment);
  if (!chunk) [[unlikely]]
    chunk = take_slowly(bytes, label, alignment);
  if (recording()) [[unlikely]]
    TraceHooks::took(*this, *chunk);
  return {address(chunk), bytes, this, std::uint64_t{records_->number(chunk)} << 32 | chunk->generation};
}

void Arena::deallocate(const Block& block) {
  if (!block) [[unlikely]]
    return;
  if (block.owner() != this) [[unlikely]]
    refuse_block(block, "was not allocated here");
  Chunk* chunk = records_->find(static_cast<std::uint32_t>(block.token() >> 32));
  if (!chunk) [[unlikely]]
    refuse_block(block, "was not allocated here");
  if (chunk->generation != static_cast<std::uint32_t>(block.token()) || chunk->state != ChunkState::kLive ||
      address(chunk) != block.data()) [[unlikely]]
    refuse_block(block, "was deallocated before");
  if (!give_quickly(chunk)) [[unlikely]]
    give_slowly(chunk);
}

// A chunk and those that had to make room in a cache, linked; either may be nullptr.
void Arena::give_to_heap(Chunk* chunk, Chunk* evicted) noexcept {
  const std::lock_guard lock(mutex_);
  while (evicted) heap_->give(std::exchange(evicted, evicted->link));
  if (!chunk) return;
  if (chunk->size > kAlwaysCached && uncached_requests_ > 0 && unforeseen_requests_ == 0) shadow_.give(chunk->size);
  heap_->give(chunk);
}

void Arena::give_slowly(Chunk* chunk) noexcept {
  if (recording()) TraceHooks::gives(*this, *chunk);
  ThreadMemory& thread = ThreadMemory::current();
  ArenaCache& cache = cache_of(thread);
  std::size_t budget_number = SIZE_MAX;
  if (chunk->budget) {
    thread.meter(*chunk->budget);  // Made now if this thread never charged it.
    budget_number = chunk->budget->number();
  }
  bool kept = false, surplus = false;
  Chunk* evicted = nullptr;
  {
    const EnterThread inside(thread);
    const auto mode = mode_.load(std::memory_order_relaxed);
    if (mode & kDeferred) {
      chunk->state = ChunkState::kDeferred;
      chunk->link = cache.deferred;
      cache.deferred = chunk;
      return;
    }
    surplus = uncharge(thread, cache, chunk);
    chunk->budget = nullptr;
    const bool may_keep = chunk->owner == thread.id && thread.id != 0 &&
                          (chunk->size <= kAlwaysCached || !(mode & kPressed)) && cache.cached_bytes() <= cache_limit_;
    kept = may_keep && cache.push(chunk);
    if (may_keep && !kept) {
      evicted = cache.evict(chunk->size);
      for (const Chunk* c = evicted; c; c = c->link) cache.hold(-static_cast<std::int64_t>(c->size));
      kept = cache.push(chunk);
    }
    if (!kept) cache.hold(-static_cast<std::int64_t>(chunk->size));
    if (!kept) chunk->state = ChunkState::kTaken;  // No longer charged, so no longer in the ledger.
  }
  if (!kept || evicted) give_to_heap(kept ? nullptr : chunk, evicted);
  if (surplus) return_quota(thread, cache, budget_number);
}

// Frees on the heap's side only. Requires the lock.
std::size_t Arena::flush_caches_locked() {
  std::size_t bytes = 0;
  const StopThreads stopped([&](const ThreadMemory& thread) {
    const ArenaCache* cache = thread.caches[number_];
    return cache && cache->may_hold.load(std::memory_order_relaxed);
  });
  for (ThreadMemory* thread : stopped) {
    ArenaCache& cache = *thread->caches[number_];
    bytes += static_cast<std::size_t>(std::max<std::int64_t>(cache.cached_bytes(), 0));
    cache.drain([&](Chunk* chunk) { heap_->give(chunk); });
  }
  return bytes;
}

std::size_t Arena::empty_caches() {
  const std::lock_guard lock(mutex_);
  return flush_caches_locked();
}

std::size_t Arena::flush_deferred() {
  Chunk* deferred = nullptr;
  {
    const std::lock_guard lock(mutex_);
    deferred = std::exchange(orphaned_, nullptr);
    const StopThreads stopped;
    for (ThreadMemory* thread : stopped) {
      ArenaCache* cache = thread->caches[number_];
      while (cache && cache->deferred) {
        Chunk* chunk = std::exchange(cache->deferred, cache->deferred->link);
        chunk->link = std::exchange(deferred, chunk);
      }
    }
  }
  std::size_t bytes = 0;
  ThreadMemory& thread = ThreadMemory::current();
  ArenaCache& cache = cache_of(thread);
  while (deferred) {
    Chunk* chunk = std::exchange(deferred, deferred->link);
    bytes += chunk->size;
    const std::size_t budget_number = chunk->budget ? chunk->budget->number() : SIZE_MAX;
    if (chunk->budget) thread.meter(*chunk->budget);
    bool surplus = false;
    {
      const EnterThread inside(thread);
      surplus = uncharge(thread, cache, chunk);
      cache.hold(-static_cast<std::int64_t>(chunk->size));
      chunk->state = ChunkState::kTaken;
    }
    {
      const std::lock_guard lock(mutex_);
      heap_->give(chunk);
    }
    if (surplus) return_quota(thread, cache, budget_number);
  }
  return bytes;
}

std::size_t Arena::trim() {
  flush_deferred();
  const std::lock_guard lock(mutex_);
  flush_caches_locked();
  const std::size_t bytes = heap_->release_holes(1) << page_shift_;
  note_committed();
  return bytes + records_->trim();
}

void Arena::collect() {
  flush_deferred();
  const std::lock_guard lock(mutex_);
  flush_caches_locked();
  heap_->release_holes(2_MiB >> page_shift_);
  records_->trim();
  note_committed();
}

}  // namespace plimsoll
