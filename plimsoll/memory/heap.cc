#include "plimsoll/memory/heap.h"

#include <algorithm>
#include <bit>

#include "plimsoll/base/error.h"

namespace plimsoll {

namespace {

constexpr std::size_t kLeastRecords = std::size_t{1} << 15;
constexpr std::size_t kMostRecords = std::size_t{1} << 26;     // 8 GiB of addresses.
constexpr std::size_t kLeastSmallZone = std::size_t{1} << 28;  // While that is within a quarter of the range.

std::size_t align_up(std::size_t n, std::size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

}  // namespace

Heap::Heap(std::unique_ptr<PageRange> range, std::size_t page_bytes, bool two_zones, std::size_t most_bytes)
    : range_(std::move(range)),
      page_shift_(static_cast<unsigned>(std::bit_width(page_bytes)) - 1),
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

// Cuts `size` bytes out of a hole; what is left on either side stays free. The result is taken although its missing
// pages are not there yet. Two spare records are needed.
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
  return carve({hole, align_up(hole->offset, alignment), 0}, size);
}

void Heap::give(Chunk* chunk) noexcept {
  ++counters_.gives;
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

}  // namespace plimsoll
