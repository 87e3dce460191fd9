// The half of Arena that works when the cache has nothing: the central heap, the ladder, the refusal.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/charge_window.h"
#include "plimsoll/memory/holders.h"
#include "plimsoll/memory/reclaimer.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostBytes = kMostLimit;  // More than any range holds; rounded sizes stay below 2^63.

}  // namespace

// How many pages may be committed before reuse is preferred to growth: a little above the peak in use when growing
// step by step, more generously when the whole limit is ours to use. It never falls: reset_peaks() is about what people
// are shown, and pages that are committed already are there to be used.
std::size_t Arena::soft_page_limit(std::size_t wanted) {
  if (wanted > soft_limit_) {
    const std::size_t peak = std::max(center_.peak(), center_.used());
    const std::size_t slack = options_.growth ? peak / 21 + 1920_KiB : peak / 4 + 32_MiB;
    soft_limit_ = std::max(soft_limit_, std::min(page_limit_, (peak + slack) >> page_shift_));
  }
  return soft_limit_;
}

// Pages of the limit that overhead takes when it is charged, with `more` bytes of it. One page is for the records that
// a request makes.
std::size_t Arena::charged_pages(std::size_t more) const noexcept {
  if (!options_.charge_overhead) return 0;
  return heap_->pages_for(overhead_locked() + more) + 1;
}

// Makes sure that the pages there are and the overhead fit the limit. Requires the lock.
bool Arena::fit_overhead(std::size_t more) {
  const auto fits = [&] { return heap_->committed_pages() + charged_pages(more) <= page_limit_; };
  if (fits()) return true;
  flush_caches_locked();
  records_->trim();
  if (!fits()) heap_->release_holes(1);
  note_committed();
  return fits();
}

void Arena::add_overhead(std::size_t bytes) {
  OutOfMemoryDetails details;
  {
    const std::lock_guard lock(mutex_);
    if (fit_overhead(bytes)) {
      beside_ += bytes;
      return;
    }
    details.requested = bytes;
    details.in_use = heap_->committed_pages() << page_shift_;
    details.limit = options_.limit;
    details.smallest_sufficient_limit = (heap_->committed_pages() + charged_pages(bytes)) << page_shift_;
    details.what = fmt::format(
        "\"{}\": cannot keep {} more of records; blocks take {} and records {} of {}; it takes a limit of at least {}",
        name(), format_bytes_exactly(bytes), format_bytes(details.in_use), format_bytes(overhead_locked()),
        format_bytes_exactly(options_.limit), format_bytes_exactly(details.smallest_sufficient_limit));
  }
  refusals_.fetch_add(1, std::memory_order_relaxed);
  throw_refusal(std::move(details), {.device = name().c_str(), .op = "records"});
}

void Arena::remove_overhead(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  beside_ -= std::min(beside_, bytes);
}

// Cached blocks keep pages from where they are needed, which shows in pages being moved. Not caching large blocks costs
// every request a little, moving costs a lot at times: so each page moved pays for some requests without caching. But
// pages may be moved in every step just because blocks are not cached: see foresee_caching().
void Arena::note_moves(const Request& request) noexcept {
  constexpr std::size_t kRequestsPerPage = 4, kMostRequests = 4096;
  const std::size_t moved = heap_->counters().pages_moved - moves_noted_;
  moves_noted_ += moved;
  if (excused_requests_ > 0)
    --excused_requests_;
  else
    uncached_requests_ = std::min(uncached_requests_ + moved * kRequestsPerPage, kMostRequests);
  set_mode(kPressed, uncached_requests_ > 0);
  if (uncached_requests_ == 0) return;
  --uncached_requests_;
  if (unforeseen_requests_ > 0)
    --unforeseen_requests_;
  else if (request.size > kAlwaysCached)
    foresee_caching(request.size);
}

// Large blocks are cached again as soon as a cache of them would have served every request for some time out of pages
// that may be had. Moves that it takes to get there are then no reason to stop. When it would not fit, that is looked
// at again later; with growth, where there are hardly more pages than are in use at the peak, after longer.
void Arena::foresee_caching(std::size_t size) noexcept {
  const std::size_t enough_hits = options_.growth ? 1024 : 128;
  if (!shadow_.take(size)) {
    foreseen_hits_ = 0;
    const std::size_t pages = heap_->pages_for(center_.used() + shadow_.bytes());
    if (pages <= std::max(heap_->committed_pages(), soft_page_limit(pages))) return;
    shadow_.clear();
    unforeseen_requests_ = options_.growth ? 4096 : 256;
    return;
  }
  if (++foreseen_hits_ < enough_hits) return;
  excused_requests_ = 2 * (shadow_.blocks() + 1);
  foreseen_hits_ = uncached_requests_ = 0;
  shadow_.clear();
}

void Arena::set_mode(std::uint8_t bit, bool on) noexcept {
  if (((mode_.load(std::memory_order_relaxed) & bit) != 0) == on) return;
  if (on)
    mode_.fetch_or(bit, std::memory_order_relaxed);
  else
    mode_.fetch_and(static_cast<std::uint8_t>(~bit), std::memory_order_relaxed);
}

Chunk* Arena::take_central(const Request& request, Refusal& refusal) {
  const std::lock_guard lock(mutex_);
  const std::size_t soft_before = soft_limit_;
  note_moves(request);
  if (!fit_overhead(0)) {
    refusal.searched = true;
    return nullptr;
  }
  if (Chunk* chunk = heap_->take_resident(request.size, request.alignment)) return chunk;
  const auto most = [&] { return page_limit_ - std::min(page_limit_, charged_pages(0)); };
  const std::size_t soft = std::min(most(), soft_page_limit(heap_->committed_pages() + heap_->pages_for(request.size)));
  Chunk* chunk = heap_->take_committing(request.size, request.alignment, soft);
  if (!chunk) {
    refusal.emptied += flush_caches_locked();
    if (options_.charge_overhead) records_->trim();
    chunk = heap_->take_resident(request.size, request.alignment);
  }
  if (!chunk) chunk = heap_->take_moving(request.size, request.alignment, soft, most());
  if (!chunk) soft_limit_ = soft_before;  // It was raised for a request that is not to be.
  refusal.searched = !chunk;
  note_committed();
  return chunk;
}

Chunk* Arena::try_slowly(ThreadMemory& thread, const Request& request, const BlockLabel& label, Refusal& refusal) {
  ArenaCache& cache = cache_of(thread);
  const auto size = static_cast<std::int64_t>(request.size);
  refusal.by = &center_;
  if (request.size > limit() && (!thread.budget || request.size > kMostBytes)) return nullptr;
  refusal.by = charge(thread, cache, size);
  if (refusal.by) return nullptr;
  if (Chunk* cached = take_cached(thread, cache, request)) {
    publish_new(thread, cache, cached, request.bytes, label);
    return cached;
  }
  Chunk* chunk = nullptr;
  try {
    chunk = take_central(request, refusal);
  } catch (...) {
    undo_charge(thread, cache, size);
    throw;
  }
  if (!chunk) {
    undo_charge(thread, cache, size);
    ++refusal.undone;
    refusal.by = &center_;
    return nullptr;
  }
  publish_new(thread, cache, chunk, request.bytes, label);
  return chunk;
}

// Once more, with no other thread's charge in the way, if one was.
Chunk* Arena::try_alone(ThreadMemory& thread, const Request& request, const BlockLabel& label, Refusal& refusal) {
  const LoneCharge alone;
  if (undone_charges() - refusal.undone_before == refusal.undone) return nullptr;
  return try_slowly(thread, request, label, refusal);
}

void Arena::check_alerts(const ThreadMemory& thread) {
  if (center_.passed_mark()) [[unlikely]]
    AlertList::instance().check(*this);
  bool passed = false;
  for (const Meter* meter = thread.budget; meter; meter = meter->parent) passed |= meter->center->passed_mark();
  if (passed) [[unlikely]]
    AlertList::instance().check_budgets();
}

Chunk* Arena::take_slowly(std::size_t bytes, const BlockLabel& label, std::size_t alignment) {
  const std::size_t size = bytes > kMostBytes ? bytes : (bytes + kGranularity - 1) & ~(kGranularity - 1);
  const Request request{bytes, size, std::max(alignment, kGranularity)};
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
    if (refusal.emptied > 0 && committed_pages_.load(std::memory_order_relaxed) >= page_limit_ - page_limit_ / 64)
      trace_ladder("empty caches", refusal.emptied);
    check_alerts(thread);
    return chunk;
  }
}

// Whose storages may be dropped for the request: those of the budget that refused, if it evicts; when another limit was
// in the way, those of the innermost one of the thread that evicts and is below that limit. nullptr for nobody's.
const BudgetNode* Arena::evicting_budget(const Refusal& refusal) const noexcept {
  const auto* const by = refusal.by == &center_ ? nullptr : static_cast<const BudgetNode*>(refusal.by);
  if (by && by->evicts()) return by;
  for (const Meter* meter = ThreadMemory::current().budget; meter && meter->center != by; meter = meter->parent)
    if (const auto* const node = static_cast<const BudgetNode*>(meter->center); node->evicts()) return node;
  return nullptr;
}

// The last rung, where eviction was asked for. False when it frees nothing.
bool Arena::evict(const Request& request, Refusal& refusal) {
  constexpr const char* kName = "drop what can be recomputed";
  const BudgetNode* const budget = evicting_budget(refusal);
  if (!budget || !budget->evictor() || request.size > refusal.by->limit()) return false;
  const bool own = refusal.by == &center_;
  const std::size_t room = own ? 0 : refusal.by->limit() - std::min(refusal.by->limit(), refusal.by->used());
  const std::size_t freed =
      budget->evictor()->evict(*budget, own ? this : nullptr, request.size - std::min(room, request.size - 1));
  flush_deferred();
  if (refusal.tried.empty() || refusal.tried.back().name != kName) refusal.tried.push_back({kName, 0});
  refusal.tried.back().bytes_freed += freed;
  if (freed > 0) trace_ladder(kName, freed);
  return freed > 0;
}

// Climbs the ladder until a rung frees something; false at its top.
bool Arena::climb(std::size_t& rung, const Request& request, Refusal& refusal) {
  for (std::size_t freed = 0; freed == 0; ++rung) {
    if (rung == 0) {
      freed = flush_deferred();
      refusal.tried.push_back({"flush deferred releases", freed});
      if (freed > 0) trace_ladder("flush deferred releases", freed);
      if (options_.charge_overhead && trim_overhead_) {
        const std::size_t records = trim_overhead_();
        refusal.tried.push_back({"return unused records", records});
        freed += records;
      }
      continue;
    }
    if (request.size > limit()) return false;
    const char* name = ask_reclaimer(rung - 1, options_.name.c_str(), request.size, freed);
    if (!name) return evict(request, refusal);
    flush_deferred();  // What it freed is to be had now.
    refusal.tried.push_back({name, freed});
    if (freed > 0) trace_ladder(name, freed);
  }
  return true;
}

// The least limit with which the request would be served now, with all blocks where they lie. When the present limit is
// enough, the request was refused for want of addresses or by the page source: then as many pages more as it has.
std::size_t Arena::sufficient_limit(const Request& request, bool& addresses_short) {
  if (request.size > kMostBytes) return request.size;  // No machine has it.
  const std::lock_guard lock(mutex_);
  flush_caches_locked();
  const std::size_t pages = heap_->pages_for(request.size);
  std::size_t enough = heap_->sufficient_pages(request.size, request.alignment);
  addresses_short = enough == SIZE_MAX;
  if (addresses_short) enough = heap_->committed_pages() - heap_->spare_pages() + pages;
  enough += charged_pages(0);
  if (enough > page_limit_) return enough << page_shift_;
  if (addresses_short) return limit_for_addresses(heap_->range().bytes() + request.size + request.alignment);
  return (page_limit_ + pages) << page_shift_;
}

// The smallest limit for which the page source asks for so many addresses.
std::size_t Arena::limit_for_addresses(std::size_t bytes) const noexcept {
  std::size_t low = page_limit_, high = std::max(bytes >> page_shift_, page_limit_) + 1;  // In pages; high is enough.
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (source_.range_bytes(middle << page_shift_) >= bytes ? high : low) = middle;
  }
  return high << page_shift_;
}

void Arena::refuse(const Request& request, const BlockLabel& label, Refusal& refusal) {
  refusals_.fetch_add(1, std::memory_order_relaxed);
  const bool own = refusal.by == &center_;
  OutOfMemoryDetails details;
  details.requested = request.bytes;
  details.in_use = refusal.by->used();
  details.limit = own ? options_.limit : refusal.by->limit();
  if (refusal.searched)  // The heap did these itself, once more after each rung.
    refusal.tried.insert(refusal.tried.begin() + 1, {{"empty caches", refusal.emptied}, {"move pages of holes", 0}});
  bool addresses_short = false;
  details.smallest_sufficient_limit =
      own ? sufficient_limit(request, addresses_short) : std::max(request.size, details.in_use + request.size);
  details.tried = std::move(refusal.tried);
  details.holders = find_holders(*this, own ? nullptr : static_cast<const BudgetNode*>(refusal.by));
  const std::string budget = own ? "" : static_cast<const BudgetNode*>(refusal.by)->name();
  details.what =
      describe_refusal(own ? fmt::format("\"{}\"", name()) : fmt::format("budget \"{}\"", budget), label, details);
  if (addresses_short)
    details.what += fmt::format(
        " to reserve more addresses: of the {} reserved now no free stretch holds {} aligned to {}; or free blocks, "
        "align them to less, or raise RLIMIT_AS where one is set",
        format_bytes(range_bytes()), format_bytes(request.size), format_bytes(request.alignment));
  if (const BudgetNode* const evicts = evicting_budget(refusal); evicts && evicts->evictor())
    details.what += "; " + evicts->evictor()->explain(*evicts);
  throw_refusal(std::move(details),
                {.budget = budget.c_str(), .device = name().c_str(), .op = label.op, .scope = label.scope});
}

}  // namespace plimsoll
