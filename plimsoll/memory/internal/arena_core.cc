#include "plimsoll/memory/internal/arena_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/charge_window.h"
#include "plimsoll/memory/ledger.h"
#include "plimsoll/memory/reclaimer.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll::internal {
namespace {

std::atomic<std::uint64_t> next_block_id{1};
constexpr std::size_t kMostBytes = kMostLimit;  // More than any range holds; rounded sizes stay below 2^63.
constexpr std::size_t kMostAlignment = 2_MiB;

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

}  // namespace

ArenaCore::ArenaCore(Arena& owner, PageSource& source, ArenaOptions wanted)
    : arena(owner),
      options(checked(std::move(wanted), source.page_bytes())),
      center(options.limit),
      heap(source, options, center, mode),
      cache_limit_(static_cast<std::int64_t>(std::min<std::size_t>(options.limit / 4, INT64_MAX))) {
  const auto base = reinterpret_cast<std::uintptr_t>(heap.base());
  most_alignment = base == 0 ? kMostAlignment : std::min(kMostAlignment, base & -base);
}

void ArenaCore::set_number(std::size_t number) noexcept {
  number_ = number;
  heap.set_number(number);
  quick_number_.store(number, std::memory_order_relaxed);
}

ArenaCache& ArenaCore::attach(ThreadMemory& thread) {
  auto cache = std::make_unique<ArenaCache>();
  const std::lock_guard lock(MeterCenter::mutex());
  center.attach(cache->meter);
  heap.num_caches.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard threads(ThreadRegistry::instance().mutex);  // Others scan the threads' caches.
  return *(thread.caches[number_] = cache.release());
}

// The thread ends: its cached blocks and counts become shared.
void ArenaCore::detach(ThreadMemory& thread) noexcept {
  ArenaCache* cache = thread.caches[number_];
  if (!cache) return;
  end_log();  // Its blocks will be freed by other threads, if at all.
  const std::lock_guard lock(heap.mutex);
  while (Chunk* chunk = cache->deferred) {  // A free that takes effect may call alerts: not under the list's lock.
    cache->deferred = chunk->link;
    chunk->link = std::exchange(orphaned_, chunk);
  }
  cache->drain([&](Chunk* chunk) { heap.heap().give(chunk); });
  retired_allocations_ += cache->allocations();
  retired_largest_ = std::max(retired_largest_, cache->largest.load(std::memory_order_relaxed));
  const std::lock_guard centers(MeterCenter::mutex());
  center.detach(cache->meter);
  const std::lock_guard threads(ThreadRegistry::instance().mutex);
  thread.caches[number_] = nullptr;
  heap.num_caches.fetch_sub(1, std::memory_order_relaxed);
  delete cache;
}

// Blocks end with their arena: removes their charges from budgets.
void ArenaCore::uncharge_live() {
  std::map<BudgetNode*, std::int64_t> charged;
  heap.for_each_live([&](const Chunk& chunk) {
    if (chunk.budget) charged[chunk.budget] += static_cast<std::int64_t>(chunk.size);
  });
  ThreadMemory& thread = ThreadMemory::current();
  for (const auto& [node, bytes] : charged) {
    Meter& first = thread.meter(*node);
    const std::lock_guard lock(MeterCenter::mutex());  // The node stays until this is released.
    {
      const EnterThread inside(thread);
      for (Meter* meter = &first; meter; meter = meter->parent) meter->subtract(bytes);
    }
    for (Meter* meter = &first; meter; meter = meter->parent) meter->center->give_back(*meter);
  }
}

void ArenaCore::publish_with_new_ids(ArenaCache& cache, Chunk* chunk) noexcept {
  const std::uint64_t first = next_block_id.fetch_add(ArenaCache::kIdBatch, std::memory_order_relaxed);
  cache.id_batches.store(cache.id_batches.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  cache.last_id.store(first + ArenaCache::kIdBatch, std::memory_order_relaxed);
  cache.next_id.store(first + 1, std::memory_order_relaxed);
  chunk->label.id = first;
}

void ArenaCore::publish_new(ThreadMemory& thread, ArenaCache& cache, Chunk* chunk, std::size_t bytes,
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

// Serves a request that is already charged from the cache.
Chunk* ArenaCore::take_cached(ThreadMemory& thread, ArenaCache& cache, const BlockRequest& request) noexcept {
  if (request.alignment > kGranularity) return nullptr;
  const EnterThread inside(thread);
  Chunk* chunk = cache.pop(request.size);
  if (!chunk) return nullptr;
  cache.hold(-static_cast<std::int64_t>(request.size));  // It was counted as cached and is now counted as used.
  chunk->state = ChunkState::kTaken;
  ++chunk->generation;
  return chunk;
}

// Counts `size` bytes as used here and in every budget of the scope. Returns the center that refused, or nullptr.
const MeterCenter* ArenaCore::charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size) {
  const auto for_all = [&](auto&& f) {
    for (Meter* meter = thread.budget; meter; meter = meter->parent)  // Budgets first: their advice is the useful one.
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
  const std::lock_guard lock(MeterCenter::mutex());  // While it is held, nobody takes quota back.
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

void ArenaCore::undo_charge(ThreadMemory& thread, ArenaCache& cache, std::int64_t size) noexcept {
  const std::lock_guard lock(MeterCenter::mutex());
  {
    const EnterThread inside(thread);
    cache.meter.subtract(size);
    cache.hold(-size);
    for (Meter* meter = thread.budget; meter; meter = meter->parent) meter->subtract(size);
  }
  note_undone_charge();
  center.cancel(cache.meter);
  for (Meter* meter = thread.budget; meter; meter = meter->parent) meter->center->cancel(*meter);
}

Chunk* ArenaCore::try_slowly(ThreadMemory& thread, const BlockRequest& request, const BlockLabel& label,
                             Refusal& refusal) {
  ArenaCache& cache = cache_of(thread);
  const auto size = static_cast<std::int64_t>(request.size);
  refusal.by = &center;
  if (request.size > heap.limit() && (!thread.budget || request.size > kMostBytes)) return nullptr;
  refusal.by = charge(thread, cache, size);
  if (refusal.by) return nullptr;
  if (Chunk* cached = take_cached(thread, cache, request)) {
    publish_new(thread, cache, cached, request.bytes, label);
    return cached;
  }
  Chunk* chunk = nullptr;
  try {
    chunk = heap.take(request, refusal.search);
  } catch (...) {
    undo_charge(thread, cache, size);
    throw;
  }
  if (!chunk) {
    undo_charge(thread, cache, size);
    ++refusal.undone;
    refusal.by = &center;
    return nullptr;
  }
  publish_new(thread, cache, chunk, request.bytes, label);
  return chunk;
}

// Tries once more without other threads' charges in the way, if one was undone meanwhile.
Chunk* ArenaCore::try_alone(ThreadMemory& thread, const BlockRequest& request, const BlockLabel& label,
                            Refusal& refusal) {
  const LoneCharge alone;
  if (undone_charges() - refusal.undone_before == refusal.undone) return nullptr;
  return try_slowly(thread, request, label, refusal);
}

void ArenaCore::check_alerts(const ThreadMemory& thread) {
  if (center.passed_mark()) [[unlikely]]
    AlertList::instance().check(arena);
  bool passed = false;
  for (const Meter* meter = thread.budget; meter; meter = meter->parent) passed |= meter->center->passed_mark();
  if (passed) [[unlikely]]
    AlertList::instance().check_budgets();
}

Chunk* ArenaCore::try_take(std::size_t size, std::size_t alignment) {
  Refusal refusal;
  return try_slowly(ThreadMemory::current(), {size, size, alignment}, BlockLabel{}, refusal);
}

Chunk* ArenaCore::take_slowly(std::size_t bytes, const BlockLabel& label, std::size_t alignment) {
  const std::size_t size = bytes > kMostBytes ? bytes : (bytes + kGranularity - 1) & ~(kGranularity - 1);
  const BlockRequest request{bytes, size, std::max(alignment, kGranularity)};
  ThreadMemory& thread = ThreadMemory::current();
  Refusal refusal;
  refusal.undone_before = undone_charges();
  for (std::size_t rung = 0;;) {
    Chunk* chunk = nullptr;
    {
      const ChargeWindow window(thread);
      chunk = try_slowly(thread, request, label, refusal);
    }
    if (!chunk) {
      if (climb(rung, request, refusal)) continue;
      chunk = try_alone(thread, request, label, refusal);
      if (!chunk) refuse(request, label, refusal);
    }
    if (refusal.search.emptied > 0 && heap.committed_pages() >= heap.page_limit() - heap.page_limit() / 64)
      trace_ladder("empty caches", refusal.search.emptied);
    log_take(request, chunk);
    check_alerts(thread);
    return chunk;
  }
}

// The budget whose storages may be dropped for the request: the one that refused, if it evicts; when another limit was
// in the way, the thread's innermost evicting budget below that limit. nullptr when there is none.
const BudgetNode* ArenaCore::evicting_budget(const Refusal& refusal) const noexcept {
  const auto* const by = refusal.by == &center ? nullptr : static_cast<const BudgetNode*>(refusal.by);
  if (by && by->evicts()) return by;
  for (const Meter* meter = ThreadMemory::current().budget; meter && meter->center != by; meter = meter->parent)
    if (const auto* const node = static_cast<const BudgetNode*>(meter->center); node->evicts()) return node;
  return nullptr;
}

// The last rung, where eviction was requested. False when it frees nothing.
bool ArenaCore::evict(const BlockRequest& request, Refusal& refusal) {
  constexpr const char* kName = "drop what can be recomputed";
  const BudgetNode* const budget = evicting_budget(refusal);
  if (!budget || !budget->evictor() || request.size > refusal.by->limit()) return false;
  const bool own = refusal.by == &center;
  const std::size_t room = own ? 0 : refusal.by->limit() - std::min(refusal.by->limit(), refusal.by->used());
  const std::size_t freed =
      budget->evictor()->evict(*budget, own ? &arena : nullptr, request.size - std::min(room, request.size - 1));
  flush_deferred();
  if (refusal.tried.empty() || refusal.tried.back().name != kName) refusal.tried.push_back({kName, 0});
  refusal.tried.back().bytes_freed += freed;
  if (freed == 0) return false;
  trace_ladder(kName, freed);
  end_log();  // Under another limit it would not have been freed now.
  return true;
}

// Climbs the ladder until a rung frees something; false at its top.
bool ArenaCore::climb(std::size_t& rung, const BlockRequest& request, Refusal& refusal) {
  for (std::size_t freed = 0; freed == 0; ++rung) {
    if (rung == 0) {
      freed = flush_deferred();
      refusal.tried.push_back({"flush deferred releases", freed});
      if (freed > 0) trace_ladder("flush deferred releases", freed);
      if (options.charge_overhead && trim_overhead) {
        const std::size_t records = trim_overhead();
        refusal.tried.push_back({"return unused records", records});
        freed += records;
      }
      continue;
    }
    if (request.size > heap.limit()) return false;
    const char* name = ask_reclaimer(rung - 1, options.name.c_str(), request.size, freed);
    if (!name) return evict(request, refusal);
    flush_deferred();  // So that the freed memory is available now.
    refusal.tried.push_back({name, freed});
    if (freed == 0) continue;
    trace_ladder(name, freed);
    end_log();  // Under another limit it would not have been freed now.
  }
  return true;
}

void ArenaCore::refuse(const BlockRequest& request, const BlockLabel& label, Refusal& refusal) {
  refusals_.fetch_add(1, std::memory_order_relaxed);
  const bool own = refusal.by == &center;
  OutOfMemoryDetails details;
  details.requested = request.bytes;
  details.in_use = refusal.by->used();
  details.limit = own ? options.limit : refusal.by->limit();
  if (refusal.search.failed)  // The heap did these itself, again after each rung.
    refusal.tried.insert(refusal.tried.begin() + 1,
                         {{"empty caches", refusal.search.emptied}, {"move pages of holes", 0}});
  SufficientLimit sufficient{.bytes = std::max(request.size, details.in_use + request.size)};
  if (own) sufficient = find_sufficient_limit(request);
  details.smallest_sufficient_limit = sufficient.bytes;
  details.tried = std::move(refusal.tried);
  details.holders = find_holders(arena, own ? nullptr : static_cast<const BudgetNode*>(refusal.by));
  const std::string budget = own ? "" : static_cast<const BudgetNode*>(refusal.by)->name();
  details.what = describe_refusal(own ? fmt::format("\"{}\"", options.name) : fmt::format("budget \"{}\"", budget),
                                  label, details);
  if (sufficient.addresses_short)
    details.what += fmt::format(
        " to reserve more addresses: of the {} reserved now no free stretch holds {} aligned to {}; or free blocks, "
        "align them to less, or raise RLIMIT_AS where one is set",
        format_bytes(heap.range_bytes()), format_bytes(request.size), format_bytes(request.alignment));
  if (const BudgetNode* const evicts = evicting_budget(refusal); evicts && evicts->evictor())
    details.what += "; " + evicts->evictor()->explain(*evicts);
  throw_refusal(std::move(details),
                {.budget = budget.c_str(), .device = options.name.c_str(), .op = label.op, .scope = label.scope});
}

void ArenaCore::refuse_alignment(std::size_t alignment) const {
  throw InvalidArgument(
      fmt::format("\"{}\": alignment {} is not a power of two up to {}", options.name, alignment, most_alignment));
}

void ArenaCore::refuse_block(const Block& block, const char* why) const {
  throw InvalidArgument(fmt::format("\"{}\": the block of {} at {} {}; nothing was changed", options.name,
                                    format_bytes_exactly(block.size()), block.data(), why));
}

void ArenaCore::add_overhead(std::size_t bytes) {
  OutOfMemoryDetails details;
  if (heap.try_add_overhead(bytes, details)) return;
  details.limit = options.limit;
  details.what = fmt::format("\"{}\": {}", options.name, details.what);
  refusals_.fetch_add(1, std::memory_order_relaxed);
  throw_refusal(std::move(details), {.device = options.name.c_str(), .op = "records"});
}

// Uncounts a chunk that is returned. The caller is inside its gate and has a meter for the chunk's budget.
inline bool ArenaCore::uncharge(ThreadMemory& thread, ArenaCache& cache, const Chunk* chunk) noexcept {
  const auto size = static_cast<std::int64_t>(chunk->size);
  bool surplus = cache.meter.subtract(size);
  if (chunk->budget)
    for (Meter* meter = thread.find_meter(*chunk->budget); meter; meter = meter->parent)
      surplus |= meter->subtract(size);
  return surplus;
}

// Gives unused quota back to the device and to the budget of this number (if it still exists).
void ArenaCore::return_quota(ThreadMemory& thread, ArenaCache& cache, std::size_t budget_number) noexcept {
  bool fell = false, budget_fell = false;
  {
    const std::lock_guard lock(MeterCenter::mutex());
    center.give_back(cache.meter);
    fell = center.fell_below_mark();
    if (budget_number < thread.meters.size())
      for (Meter* meter = thread.meters[budget_number].get(); meter; meter = meter->parent) {
        meter->center->give_back(*meter);
        budget_fell |= meter->center->fell_below_mark();
      }
  }
  if (fell) AlertList::instance().check(arena);
  if (budget_fell) AlertList::instance().check_budgets();
}

void ArenaCore::give_slowly(Chunk* chunk) noexcept {
  if (recording()) TraceHooks::gives(arena, *chunk);
  log_give(chunk);
  ThreadMemory& thread = ThreadMemory::current();
  ArenaCache& cache = cache_of(thread);
  std::size_t budget_number = SIZE_MAX;
  if (chunk->budget) {
    thread.meter(*chunk->budget);  // Makes one if this thread never charged it.
    budget_number = chunk->budget->number();
  }
  bool kept = false, surplus = false;
  Chunk* evicted = nullptr;
  {
    const EnterThread inside(thread);
    if (mode.has(ArenaMode::kDeferred)) {
      chunk->state = ChunkState::kDeferred;
      chunk->link = cache.deferred;
      cache.deferred = chunk;
      return;
    }
    surplus = uncharge(thread, cache, chunk);
    chunk->budget = nullptr;
    const bool may_keep = chunk->owner == thread.id && thread.id != 0 &&
                          (chunk->size <= CentralHeap::kAlwaysCached || !mode.has(ArenaMode::kPressed)) &&
                          cache.cached_bytes() <= cache_limit_;
    kept = may_keep && cache.push(chunk);
    if (may_keep && !kept) {
      evicted = cache.evict(chunk->size);
      for (const Chunk* c = evicted; c; c = c->link) cache.hold(-static_cast<std::int64_t>(c->size));
      kept = cache.push(chunk);
    }
    if (!kept) cache.hold(-static_cast<std::int64_t>(chunk->size));
    if (!kept) chunk->state = ChunkState::kTaken;  // No longer charged, so no longer in the ledger.
  }
  if (!kept || evicted) heap.give(kept ? nullptr : chunk, evicted);
  if (surplus) return_quota(thread, cache, budget_number);
}

std::size_t ArenaCore::flush_deferred() {
  Chunk* deferred = nullptr;
  {
    const std::lock_guard lock(heap.mutex);
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
      const std::lock_guard lock(heap.mutex);
      heap.heap().give(chunk);
    }
    if (surplus) return_quota(thread, cache, budget_number);
  }
  return bytes;
}

MemoryStats ArenaCore::stats() const {
  MemoryStats stats;
  heap.add_to(stats);
  stats.bytes_in_use = center.used();
  stats.peak_bytes_in_use = std::max(center.peak(), stats.bytes_in_use);
  stats.bytes_limit = options.limit;
  stats.num_ooms = refusals_.load(std::memory_order_relaxed);
  const std::lock_guard lock(heap.mutex);
  stats.num_allocs = retired_allocations_;
  stats.largest_alloc_bytes = retired_largest_;
  ThreadRegistry::instance().for_each([&](const ThreadMemory& thread) {
    const ArenaCache* cache = thread.caches[number_];
    if (!cache) return;
    stats.num_allocs += cache->allocations();
    stats.largest_alloc_bytes = std::max(stats.largest_alloc_bytes, cache->largest.load(std::memory_order_relaxed));
  });
  return stats;
}

void ArenaCore::reset_peaks() {
  log(LoggedRequest::kResetPeaks);
  heap.reset_peak();
  center.reset_peak();
}

}  // namespace plimsoll::internal
