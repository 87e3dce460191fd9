#include "plimsoll/memory/internal/central_heap.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "plimsoll/memory/arena_cache.h"
#include "plimsoll/memory/internal/arena_core.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll::internal {
namespace {

std::size_t wanted_addresses(const PageSource& source, std::size_t limit) {
  return std::min(source.range_bytes(limit), Heap::most_pages() * source.page_bytes());
}

std::unique_ptr<PageRange> reserve(PageSource& source, std::size_t limit, const std::string& name) {
  const std::size_t most = Heap::most_pages() * source.page_bytes();
  auto range = source.reserve(wanted_addresses(source, limit), limit);
  if (range->bytes() > most)
    throw InvalidArgument(fmt::format("arena \"{}\": its page source reserved {}, more than {} pages of {} bytes", name,
                                      format_bytes_exactly(range->bytes()), Heap::most_pages(), source.page_bytes()));
  return range;
}

}  // namespace

CentralHeap::CentralHeap(PageSource& source, const ArenaOptions& options, const MeterCenter& center, ArenaMode& mode)
    : source_(source),
      growth_(options.growth),
      charge_overhead_(options.charge_overhead),
      page_shift_(static_cast<unsigned>(std::bit_width(source.page_bytes())) - 1),
      page_limit_(options.limit >> page_shift_),
      center_(center),
      mode_(mode) {
  auto range = reserve(source, limit(), options.name);
  base_ = range->base();
  const bool roomy = range->bytes() / 4 >= options.limit;
  heap_ = std::make_unique<Heap>(std::move(range), source.page_bytes(), roomy, limit());
  records_ = &heap_->records();
}

bool CentralHeap::has_all_addresses() const noexcept {
  return heap_->range().bytes() >= wanted_addresses(source_, limit());
}

// How many pages may be committed before reuse is preferred to growth: slightly more than the peak in use when growing
// step by step, more generous when the whole limit may be used. It never falls: reset_peaks() only affects what is
// shown, and committed pages are there to be used.
std::size_t CentralHeap::soft_page_limit(std::size_t wanted) {
  if (wanted > soft_limit_) {
    const std::size_t peak = std::max(center_.peak(), center_.used());
    const std::size_t slack = growth_ ? peak / 21 + 1920_KiB : peak / 4 + 32_MiB;
    soft_limit_ = std::max(soft_limit_, std::min(page_limit_, (peak + slack) >> page_shift_));
  }
  return soft_limit_;
}

Chunk* CentralHeap::take(const BlockRequest& request, HeapSearch& search) {
  const std::lock_guard lock(mutex);
  const std::size_t soft_before = soft_limit_;
  note_moves(request);
  if (!fit_overhead(0)) {
    search.failed = true;
    return nullptr;
  }
  if (Chunk* chunk = heap_->take_resident(request.size, request.alignment)) return chunk;
  const auto most = [&] { return page_limit_ - std::min(page_limit_, charged_pages(0)); };
  const std::size_t soft = std::min(most(), soft_page_limit(heap_->committed_pages() + heap_->pages_for(request.size)));
  Chunk* chunk = heap_->take_committing(request.size, request.alignment, soft);
  if (!chunk) {
    search.emptied += flush_caches();
    if (charge_overhead_) records_->trim();
    chunk = heap_->take_resident(request.size, request.alignment);
  }
  if (!chunk) chunk = heap_->take_moving(request.size, request.alignment, soft, most());
  if (!chunk) soft_limit_ = soft_before;  // It was raised for a request that fails.
  search.failed = !chunk;
  note_committed();
  return chunk;
}

void CentralHeap::give(Chunk* chunk, Chunk* evicted) noexcept {
  const std::lock_guard lock(mutex);
  while (evicted) heap_->give(std::exchange(evicted, evicted->link));
  if (!chunk) return;
  if (chunk->size > kAlwaysCached && uncached_requests_ > 0 && unforeseen_requests_ == 0) shadow_.give(chunk->size);
  heap_->give(chunk);
}

// Cached blocks keep pages from where they are needed; pages being moved are the sign of it. Not caching large blocks
// costs every request a little, moving can cost a lot: so each page moved pays for some requests without caching. But
// pages may be moved in every step just because blocks are not cached: see foresee_caching().
void CentralHeap::note_moves(const BlockRequest& request) noexcept {
  constexpr std::size_t kRequestsPerPage = 4, kMostRequests = 4096;
  const std::size_t moved = heap_->counters().pages_moved - moves_noted_;
  moves_noted_ += moved;
  if (excused_requests_ > 0)
    --excused_requests_;
  else
    uncached_requests_ = std::min(uncached_requests_ + moved * kRequestsPerPage, kMostRequests);
  mode_.set(ArenaMode::kPressed, uncached_requests_ > 0);
  if (uncached_requests_ == 0) return;
  --uncached_requests_;
  if (unforeseen_requests_ > 0)
    --unforeseen_requests_;
  else if (request.size > kAlwaysCached)
    foresee_caching(request.size);
}

// Large blocks are cached again once a cache of them would have served every request for some time out of available
// pages. Moves that it takes to get there are then no reason to stop. When the cache would not fit, this is checked
// again later; with growth, where there are hardly more pages than are in use at the peak, after a longer time.
void CentralHeap::foresee_caching(std::size_t size) noexcept {
  const std::size_t enough_hits = growth_ ? 1024 : 128;
  if (!shadow_.take(size)) {
    foreseen_hits_ = 0;
    const std::size_t pages = heap_->pages_for(center_.used() + shadow_.bytes());
    if (pages <= std::max(heap_->committed_pages(), soft_page_limit(pages))) return;
    shadow_.clear();
    unforeseen_requests_ = growth_ ? 4096 : 256;
    return;
  }
  if (++foreseen_hits_ < enough_hits) return;
  excused_requests_ = 2 * (shadow_.blocks() + 1);
  foreseen_hits_ = uncached_requests_ = 0;
  shadow_.clear();
}

// Frees on the heap's side only.
std::size_t CentralHeap::flush_caches() {
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

std::size_t CentralHeap::empty_caches() {
  const std::lock_guard lock(mutex);
  return flush_caches();
}

std::size_t CentralHeap::trim() {
  const std::lock_guard lock(mutex);
  flush_caches();
  const std::size_t bytes = heap_->release_holes(1) << page_shift_;
  note_committed();
  return bytes + records_->trim();
}

void CentralHeap::collect() {
  const std::lock_guard lock(mutex);
  flush_caches();
  heap_->release_holes(2_MiB >> page_shift_);
  records_->trim();
  note_committed();
}

void CentralHeap::touch_all_pages() {
  const std::lock_guard lock(mutex);
  const std::size_t pages = page_limit_ - std::min(page_limit_, charged_pages(0)), all = pages << page_shift_;
  if (all == 0) return;
  if (Chunk* chunk = heap_->take_committing(all, kGranularity, pages)) {
    for (std::size_t at = 0; at < all; at += source_.page_bytes())
      *static_cast<volatile char*>(static_cast<void*>(base_ + chunk->offset + at)) = 0;
    heap_->give(chunk);
  }
}

// When the present limit is enough, the request was refused for lack of addresses or by the page source: then as many
// more pages as it needs.
SufficientLimit CentralHeap::sufficient_limit(const BlockRequest& request) {
  SufficientLimit result{.bytes = request.size};
  if (request.size > kMostLimit) return result;  // No machine has that much.
  const std::lock_guard lock(mutex);
  flush_caches();
  const std::size_t pages = heap_->pages_for(request.size);
  std::size_t enough = heap_->sufficient_pages(request.size, request.alignment);
  result.addresses_short = enough == SIZE_MAX;
  if (result.addresses_short) enough = heap_->committed_pages() - heap_->spare_pages() + pages;
  if (!result.addresses_short && enough > page_limit_) result.pages_now = enough;
  enough = guess_pages_when_run_again(enough, request) + charged_pages(0);
  result.bytes = (enough > page_limit_ ? enough : page_limit_ + pages) << page_shift_;
  if (enough <= page_limit_ && result.addresses_short)
    result.bytes = limit_for_addresses(heap_->range().bytes() + request.size + request.alignment);
  return result;
}

// Used when the requests are not known (dry_run.h). `pages` serve the request with all blocks where they are. Under
// another limit they will be elsewhere and leave more or less of their first and last pages unused. Half as much again
// as now and a page for each of up to four such blocks is what random programs needed (arena_refusal_test.cc has some):
// this is empirical, not proved. No layout needs more than each block on pages of its own. Blocks of whole pages leave
// nothing unused: for them `pages` is exact.
std::size_t CentralHeap::guess_pages_when_run_again(std::size_t pages, const BlockRequest& request) const {
  const std::size_t page = heap_->page_bytes();
  std::size_t used = 0, most_pages = 0, ragged = 0;
  const auto add = [&](std::size_t size) {
    used += size;
    most_pages += (page - kGranularity + size + page - 1) / page;  // Wherever it begins.
    ragged += size % page != 0;
  };
  heap_->for_each([&](const Chunk& chunk, std::size_t) {
    if (chunk.state != ChunkState::kFree) add(chunk.size);
  });
  add(request.size);
  const std::size_t unused = pages * page - std::min(pages * page, used);
  if (ragged == 0 || unused == 0) return pages;
  return std::max(pages, std::min(most_pages, pages + unused / 2 / page + std::min<std::size_t>(ragged, 4)));
}

// The smallest limit for which the page source asks for so many addresses.
std::size_t CentralHeap::limit_for_addresses(std::size_t bytes) const noexcept {
  std::size_t low = page_limit_, high = std::max(bytes >> page_shift_, page_limit_) + 1;  // In pages; high is enough.
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (source_.range_bytes(middle << page_shift_) >= bytes ? high : low) = middle;
  }
  return high << page_shift_;
}

// Pages of the limit that charged overhead takes, with `more` bytes added. One page is for the records that a request
// makes.
std::size_t CentralHeap::charged_pages(std::size_t more) const noexcept {
  if (!charge_overhead_) return 0;
  return heap_->pages_for(overhead_now() + more) + 1;
}

// Makes sure that the committed pages and the overhead fit the limit.
bool CentralHeap::fit_overhead(std::size_t more) {
  const auto fits = [&] { return heap_->committed_pages() + charged_pages(more) <= page_limit_; };
  if (fits()) return true;
  flush_caches();
  records_->trim();
  if (!fits()) heap_->release_holes(1);
  note_committed();
  return fits();
}

bool CentralHeap::try_add_overhead(std::size_t bytes, OutOfMemoryDetails& why_not) {
  const std::lock_guard lock(mutex);
  if (fit_overhead(bytes)) {
    beside_ += bytes;
    return true;
  }
  why_not.requested = bytes;
  why_not.in_use = heap_->committed_pages() << page_shift_;
  why_not.smallest_sufficient_limit = (heap_->committed_pages() + charged_pages(bytes)) << page_shift_;
  why_not.what = fmt::format(
      "cannot keep {} more of records; blocks take {} and records {} of {}; it takes a limit of at least {}",
      format_bytes_exactly(bytes), format_bytes(why_not.in_use), format_bytes(overhead_now()),
      format_bytes_exactly(limit()), format_bytes_exactly(why_not.smallest_sufficient_limit));
  return false;
}

void CentralHeap::remove_overhead(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex);
  beside_ -= std::min(beside_, bytes);
}

std::size_t CentralHeap::overhead_now() const noexcept {
  const std::size_t caches = num_caches.load(std::memory_order_relaxed) * sizeof(ArenaCache);
  return heap_->records().bytes() + heap_->map_bytes() + caches + sizeof(Arena) + sizeof(ArenaCore) + sizeof(Heap) +
         beside_ + log_bytes.load(std::memory_order_relaxed);
}

std::size_t CentralHeap::overhead_bytes() const {
  const std::lock_guard lock(mutex);
  return overhead_now();
}

void CentralHeap::add_to(MemoryStats& stats) const {
  const std::lock_guard lock(mutex);
  stats.bytes_reserved = heap_->committed_pages() << page_shift_;
  stats.peak_bytes_reserved = heap_->peak_committed_pages() << page_shift_;
  stats.largest_free_block_bytes = heap_->largest_resident_hole();
}

void CentralHeap::reset_peak() {
  const std::lock_guard lock(mutex);
  heap_->reset_peak();
}

std::vector<ArenaExtent> CentralHeap::extents() const {
  std::vector<ArenaExtent> extents;
  const std::lock_guard lock(mutex);
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

void CentralHeap::for_each_live(const std::function<void(const Chunk&)>& f) const {
  const std::lock_guard lock(mutex);
  const StopThreads stopped;
  heap_->for_each([&](const Chunk& chunk, std::size_t) {
    if (chunk.state == ChunkState::kLive || chunk.state == ChunkState::kDeferred) f(chunk);
  });
}

void CentralHeap::validate() const {
  const std::lock_guard lock(mutex);
  const StopThreads stopped;
  heap_->validate();
  PLIMSOLL_CHECK(heap_->committed_pages() <= page_limit_);
}

}  // namespace plimsoll::internal
