#include "plimsoll/memory/heap.h"

#include <algorithm>
#include <bit>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

namespace {

constexpr std::size_t kLeastRecords = std::size_t{1} << 15;
constexpr std::size_t kMostRecords = std::size_t{1} << 26;     // 8 GiB of addresses.
constexpr std::size_t kLeastSmallZone = std::size_t{1} << 28;  // If that is within a quarter of the range.

std::size_t align_up(std::size_t n, std::size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

}  // namespace

Heap::Heap(std::unique_ptr<PageRange> range, std::size_t page_bytes, bool two_zones, std::size_t most_bytes)
    : range_(std::move(range)),
      page_shift_(static_cast<unsigned>(std::bit_width(page_bytes)) - 1),
      places_blocks_(range_->places_blocks()),
      records_(std::clamp<std::size_t>(most_bytes > 0 ? most_bytes / (kGranularity / 2) : range_->bytes() / 512,
                                       kLeastRecords, kMostRecords)),  // For as many holes between the blocks.
      pages_(range_->bytes() >> page_shift_),
      zone_count_(two_zones ? 2 : 1) {
  PLIMSOLL_CHECK(std::has_single_bit(page_bytes) && page_bytes >= kGranularity);
  PLIMSOLL_CHECK(range_->bytes() >> page_shift_ <= most_pages());
  records_.reserve(zone_count_);
  std::size_t border = range_->bytes();
  if (two_zones) border = border / 4 >> page_shift_ << page_shift_;
  if (two_zones && most_bytes > 0) border = std::min(border, std::max(4 * most_bytes, kLeastSmallZone));
  for (std::size_t i = 0; i < zone_count_; ++i) {
    Chunk* all = records_.make();
    *all = Chunk{};
    all->offset = i == 0 ? 0 : border;
    all->size = i == 0 ? border : range_->bytes() - border;
    all->zone = static_cast<std::uint8_t>(i);
    all->state = ChunkState::kFree;
    all->free = FreeLinks{};
    all->free.missing_pages = static_cast<std::uint32_t>(all->size >> page_shift_);
    zones_[i].first = all;
    high_water_page_[i] = all->offset >> page_shift_;
    insert(all);
  }
}

std::size_t Heap::last_page(const Chunk* c) const noexcept {
  return std::max(first_page(c), (c->offset + c->size) >> page_shift_);
}

std::size_t Heap::resident_pages(const Chunk* free) const noexcept {
  return last_page(free) - first_page(free) - free->free.missing_pages;
}

std::size_t Heap::map_bytes() const noexcept {
  std::size_t pages = 0;
  for (std::size_t i = 0; i < zone_count_; ++i) pages += high_water_page_[i] - (zones_[i].first->offset >> page_shift_);
  return pages / 8;
}

std::size_t Heap::largest_resident_hole() const noexcept {
  std::size_t largest = 0;
  for (const Zone& zone : zones_)
    if (const Chunk* chunk = zone.resident.largest()) largest = std::max(largest, chunk->size);
  return largest;
}

void Heap::insert(Chunk* free) noexcept {
  Zone& zone = zones_[free->zone];
  const std::size_t resident = resident_pages(free);
  const bool whole = free->free.missing_pages == 0;
  (whole ? zone.resident : zone.partial).insert(free);
  spare_ += resident;
  free->free.in_donors = resident > 0 && (!whole || free->size < 2 * page_bytes());
  if (free->free.in_donors) add_to_donors(free);
}

void Heap::remove(Chunk* free) noexcept {
  Zone& zone = zones_[free->zone];
  if (free->free.in_donors) remove_from_donors(free);
  (free->free.missing_pages == 0 ? zone.resident : zone.partial).remove(free);
  spare_ -= resident_pages(free);
}

void Heap::add_to_donors(Chunk* free) noexcept {
  Chunk*& head = free->free.missing_pages == 0 ? crumbs_ : donors_;
  free->free.donor_prev = nullptr;
  free->free.donor_next = head;
  if (head) head->free.donor_prev = free;
  head = free;
}

void Heap::remove_from_donors(Chunk* free) noexcept {
  Chunk*& head = free->free.missing_pages == 0 ? crumbs_ : donors_;
  if (free->free.donor_prev)
    free->free.donor_prev->free.donor_next = free->free.donor_next;
  else
    head = free->free.donor_next;
  if (free->free.donor_next) free->free.donor_next->free.donor_prev = free->free.donor_prev;
}

// Cuts `chunk` after `size` bytes; the rest becomes a chunk of its own behind it, in the same state.
Chunk* Heap::split(Chunk* chunk, std::size_t size) noexcept {
  Chunk* rest = records_.make();
  rest->offset = chunk->offset + size;
  rest->size = chunk->size - size;
  rest->zone = chunk->zone;
  rest->state = chunk->state;
  rest->prev = chunk;
  rest->next = chunk->next;
  if (rest->next) rest->next->prev = rest;
  chunk->next = rest;
  chunk->size = size;
  return rest;
}

// Cuts `size` bytes out of a hole; the rest on either side stays free. The result is in state kTaken although its
// missing pages are not committed yet. Needs two spare records.
Chunk* Heap::carve(const Spot& spot, std::size_t size) noexcept {
  Chunk* hole = spot.hole;
  remove(hole);
  std::size_t missing_outside = hole->free.missing_pages - spot.missing;
  Chunk* claimed = hole;
  if (const std::size_t before = spot.offset - hole->offset; before > 0) {
    claimed = split(hole, before);
    std::size_t left = missing_outside;
    if (claimed->size > size && missing_outside > 0) {  // Holes on both sides: count the nearer one.
      const std::size_t first = first_page(hole), last = last_page(hole);
      left = last - first - pages_.count(first, last);
    }
    missing_outside -= left;
    hole->free.missing_pages = static_cast<std::uint32_t>(left);
    insert(hole);
  }
  if (claimed->size > size) {
    Chunk* after = split(claimed, size);
    after->free.missing_pages = static_cast<std::uint32_t>(missing_outside);
    insert(after);
  }
  claimed->state = ChunkState::kTaken;
  ++claimed->generation;
  ++counters_.takes;
  return claimed;
}

Chunk* Heap::take_resident(std::size_t size, std::size_t alignment) {
  records_.reserve(2);
  Chunk* hole = home(size).resident.best(size + alignment - kGranularity);
  if (!hole) return nullptr;
  return placed(carve({hole, align_up(hole->offset, alignment), 0}, size));
}

Chunk* Heap::placed(Chunk* claimed) noexcept {
  if (!places_blocks_ || range_->place(claimed->offset, claimed->size)) [[likely]]
    return claimed;
  give(claimed, 0);
  return nullptr;
}

void Heap::give(Chunk* chunk) noexcept {
  ++counters_.gives;
  if (places_blocks_) [[unlikely]]
    range_->remove(chunk->offset);
  give(chunk, 0);
}

void Heap::give(Chunk* chunk, std::size_t missing) noexcept {
  if (Chunk* next = chunk->next; next && next->state == ChunkState::kFree) {
    remove(next);
    missing += next->free.missing_pages;
    chunk->size += next->size;
    chunk->next = next->next;
    if (chunk->next) chunk->next->prev = chunk;
    records_.drop(next);
  }
  if (Chunk* prev = chunk->prev; prev && prev->state == ChunkState::kFree) {
    remove(prev);
    missing += prev->free.missing_pages;
    prev->size += chunk->size;
    prev->next = chunk->next;
    if (prev->next) prev->next->prev = prev;
    records_.drop(chunk);
    chunk = prev;
  }
  chunk->state = ChunkState::kFree;
  chunk->free.missing_pages = static_cast<std::uint32_t>(missing);
  insert(chunk);
}

void Heap::validate() const {
  std::size_t committed = 0, spare = 0;
  for (std::size_t i = 0; i < zone_count_; ++i) {
    const Chunk* before = nullptr;
    for (const Chunk* c = zones_[i].first; c; before = c, c = c->next) {
      PLIMSOLL_CHECK(c->prev == before && c->zone == i && c->size > 0 && c->size % kGranularity == 0);
      if (before) PLIMSOLL_CHECK(before->offset + before->size == c->offset);
      if (c->state != ChunkState::kFree) {
        const std::size_t first = c->offset >> page_shift_, last = ((c->offset + c->size - 1) >> page_shift_) + 1;
        PLIMSOLL_CHECK(pages_.count(first, last) == last - first);
        continue;
      }
      PLIMSOLL_CHECK(!before || before->state != ChunkState::kFree);
      const std::size_t first = first_page(c), last = last_page(c);
      const std::size_t end = std::max(first, std::min(last, high_water_page_[i]));
      PLIMSOLL_CHECK(last - first - pages_.count(first, end) == c->free.missing_pages);
      spare += resident_pages(c);
    }
    const std::size_t zone_first = zones_[i].first->offset >> page_shift_;
    committed += pages_.count(zone_first, high_water_page_[i]);
  }
  PLIMSOLL_CHECK(committed == committed_ && spare == spare_ && committed_ <= peak_committed_);
}

// Pages: choosing a hole that lacks some, committing them, moving them, giving them back.

std::size_t Heap::missing_in(std::size_t offset, std::size_t size) const noexcept {
  const std::size_t first = offset >> page_shift_, last = ((offset + size - 1) >> page_shift_) + 1;
  return last - first - pages_.count(first, last);
}

void Heap::try_spot(Spot& best, Chunk* hole, std::size_t offset, std::size_t size) const noexcept {
  const std::size_t missing = missing_in(offset, size);
  if (missing < best.missing) best = {hole, offset, missing};
}

// The tightest run of committed pages that holds the request.
void Heap::try_resident_run(Spot& best, Chunk* hole, std::size_t size, std::size_t alignment) const noexcept {
  const std::size_t first = first_page(hole), last = last_page(hole);
  const std::size_t end = std::max(first, std::min(last, high_water_page_[hole->zone]));
  std::size_t tightest = SIZE_MAX;
  for (std::size_t at = pages_.next_set(first, end); at < end;) {
    const std::size_t stop = pages_.next_missing(at, end);
    const std::size_t from = at == first ? hole->offset : at << page_shift_;  // The rim shares a page with a neighbour.
    const std::size_t to = stop == last ? hole->offset + hole->size : stop << page_shift_;
    const std::size_t offset = align_up(from, alignment);
    if (offset + size <= to && to - from < tightest) {
      tightest = to - from;
      best = {hole, offset, 0};
    }
    at = pages_.next_set(stop, end);
  }
}

Heap::Spot Heap::best_spot(Zone& zone, std::size_t size, std::size_t alignment) const noexcept {
  Spot best;
  const std::size_t needed = size + alignment - kGranularity;
  Chunk* hole = zone.partial.best(needed);
  for (int i = 0; i < kCandidates && hole && best.missing > 0; ++i) {
    try_spot(best, hole, align_up(hole->offset, alignment), size);
    if (hole->next) try_spot(best, hole, (hole->offset + hole->size - size) & ~(alignment - 1), size);
    if (best.missing > 0 && resident_pages(hole) >= size >> page_shift_) try_resident_run(best, hole, size, alignment);
    hole = zone.partial.best(hole->size + kGranularity);
  }
  return best;
}

Heap::Spot Heap::choose_spot(std::size_t size, std::size_t alignment) noexcept {
  Spot spot = best_spot(home(size), size, alignment);
  if (spot.hole || zone_count_ == 1) return spot;
  spot = best_spot(other(size), size, alignment);
  if (Chunk* hole = other(size).resident.best(size + alignment - kGranularity); hole && spot.missing > 0)
    spot = {hole, align_up(hole->offset, alignment), 0};
  return spot;
}

Chunk* Heap::take_committing(std::size_t size, std::size_t alignment, std::size_t page_cap) {
  records_.reserve(2);
  const Spot spot = choose_spot(size, alignment);
  if (!spot.hole || committed_ + spot.missing > page_cap) return nullptr;
  return take_at(spot, size, page_cap, page_cap);
}

Chunk* Heap::take_moving(std::size_t size, std::size_t alignment, std::size_t soft_cap, std::size_t page_cap) {
  records_.reserve(2);
  const Spot spot = choose_spot(size, alignment);
  return spot.hole ? take_at(spot, size, soft_cap, page_cap) : nullptr;
}

std::size_t Heap::sufficient_pages(std::size_t size, std::size_t alignment) noexcept {
  const Spot spot = choose_spot(size, alignment);
  if (!spot.hole) return SIZE_MAX;
  const std::size_t first = std::max(spot.offset >> page_shift_, first_page(spot.hole));
  const std::size_t last = std::min(((spot.offset + size - 1) >> page_shift_) + 1, last_page(spot.hole));
  const std::size_t used_up = first < last ? pages_.count(first, last) : 0;  // Spare pages that the block will use.
  return committed_ + spot.missing - std::min(spot.missing, spare_ - used_up);
}

Chunk* Heap::take_at(const Spot& spot, std::size_t size, std::size_t soft_cap, std::size_t page_cap) noexcept {
  Chunk* claimed = carve(spot, size);
  if (spot.missing == 0) return placed(claimed);
  const std::size_t first = claimed->offset >> page_shift_;
  const std::size_t last = ((claimed->offset + size - 1) >> page_shift_) + 1;
  high_water_page_[claimed->zone] = std::max(high_water_page_[claimed->zone], last);
  // More may be committed already than a soft limit allows: missing pages then come out of holes while there are any.
  const std::size_t over = committed_ + spot.missing > soft_cap ? committed_ + spot.missing - soft_cap : 0;
  const std::size_t wanted = std::min({over, spot.missing, spare_});
  if (committed_ + spot.missing - wanted <= page_cap) {
    const bool all = take_pages(wanted, first, last);
    if ((all || committed_ + missing_in(claimed->offset, size) <= page_cap) && commit_missing(first, last))
      return placed(claimed);
  }
  give(claimed, missing_in(claimed->offset, size));
  return nullptr;
}

bool Heap::commit_missing(std::size_t first, std::size_t last) noexcept {
  std::size_t total = 0;
  const auto for_runs = [&](std::size_t until, auto&& f) {
    for (std::size_t at = pages_.next_missing(first, until); at < until;) {
      const std::size_t stop = pages_.next_set(at, until);
      if (!f(at, stop)) return at;
      at = pages_.next_missing(stop, until);
    }
    return until;
  };
  const std::size_t reached = for_runs(last, [&](std::size_t at, std::size_t stop) {
    total += stop - at;
    return range_->commit(at << page_shift_, (stop - at) << page_shift_);
  });
  if (reached < last) {  // Refused: give back what this call got.
    for_runs(reached, [&](std::size_t at, std::size_t stop) {
      (void)range_->release(at << page_shift_, (stop - at) << page_shift_);
      return true;
    });
    return false;
  }
  pages_.set(first, last);
  committed_ += total;
  peak_committed_ = std::max(peak_committed_, committed_);
  return true;
}

// Moves `wanted` pages out of holes to the missing ones of [first, last). False when the page source does not move all
// of them.
bool Heap::take_pages(std::size_t wanted, std::size_t first, std::size_t last) noexcept {
  first = pages_.next_missing(first, last);
  while (wanted > 0) {
    Chunk* donor = next_donor(wanted);
    if (!donor) return false;
    remove(donor);
    const bool moved = drain(donor, wanted, first, last);
    insert(donor);
    if (!moved) return false;
  }
  return true;
}

// Prefers holes that already lack pages, then the smallest whole hole that suffices, else the largest.
Chunk* Heap::next_donor(std::size_t pages) noexcept {
  if (donors_) return donors_;
  for (std::size_t i = zone_count_; i-- > 0;)
    if (Chunk* hole = zones_[i].resident.best((pages + 1) << page_shift_)) return hole;
  Chunk* largest = nullptr;
  for (std::size_t i = zone_count_; i-- > 0;)
    if (Chunk* hole = zones_[i].resident.largest(); hole && hole->size >= 2 * page_bytes())
      if (!largest || hole->size > largest->size) largest = hole;
  return largest ? largest : crumbs_;
}

bool Heap::drain(Chunk* donor, std::size_t& wanted, std::size_t& first, std::size_t last) noexcept {
  const std::size_t begin = first_page(donor);
  std::size_t end = std::max(begin, std::min(last_page(donor), high_water_page_[donor->zone]));
  end = pages_.end_of_set(begin, end);
  while (wanted > 0 && end > begin) {
    const std::size_t run = pages_.end_of_missing(begin, end);
    const std::size_t hole_end = pages_.next_set(first, last);
    const std::size_t n = std::min({wanted, end - run, hole_end - first});
    const Run done = move_run(end - n, first, n);
    donor->free.missing_pages += static_cast<std::uint32_t>(done.gone);
    if (done.arrived < n) return false;
    wanted -= n;
    end = pages_.end_of_set(begin, end - n);
    first = pages_.next_missing(first + n, last);
  }
  return true;
}

Heap::Run Heap::move_run(std::size_t from, std::size_t to, std::size_t pages) noexcept {
  const std::size_t bytes = pages << page_shift_;
  ++counters_.moves;
  const std::size_t moved = range_->move(from << page_shift_, to << page_shift_, bytes);
  Run run{moved >> page_shift_, moved >> page_shift_};
  if (moved < bytes) {
    counters_.pages_refaulted += (bytes - moved) >> page_shift_;
    if (range_->release((from << page_shift_) + moved, bytes - moved)) {
      run.gone = pages;
      if (range_->commit((to << page_shift_) + moved, bytes - moved)) run.arrived = pages;
    }
  }
  pages_.clear(from, from + run.gone);
  pages_.set(to, to + run.arrived);
  committed_ -= run.gone - run.arrived;
  counters_.pages_moved += run.gone;
  return run;
}

std::size_t Heap::release_pages(Chunk* free) noexcept {
  const std::size_t begin = first_page(free);
  const std::size_t end = std::max(begin, std::min(last_page(free), high_water_page_[free->zone]));
  std::size_t released = 0;
  for (std::size_t at = pages_.next_set(begin, end); at < end;) {
    const std::size_t stop = pages_.next_missing(at, end);
    if (range_->release(at << page_shift_, (stop - at) << page_shift_)) {
      pages_.clear(at, stop);
      released += stop - at;
    }
    at = pages_.next_set(stop, end);
  }
  return released;
}

std::size_t Heap::release_holes(std::size_t least_pages) noexcept {
  std::size_t total = 0;
  for (std::size_t i = 0; i < zone_count_; ++i)
    for (Chunk* c = zones_[i].first; c; c = c->next) {
      if (c->state != ChunkState::kFree || resident_pages(c) < least_pages) continue;
      remove(c);
      const std::size_t released = release_pages(c);
      c->free.missing_pages += static_cast<std::uint32_t>(released);
      insert(c);
      total += released;
    }
  committed_ -= total;
  return total;
}

}  // namespace plimsoll::internal
