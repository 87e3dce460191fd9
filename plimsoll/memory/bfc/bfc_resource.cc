#include "plimsoll/memory/bfc/bfc_resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/refusal.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kFirstRegion = 2_MiB;

constexpr std::size_t granules_down(std::size_t bytes) { return bytes / kBfcGranule * kBfcGranule; }
constexpr std::size_t granules_up(std::size_t bytes) {  // The largest granule multiple when it would overflow.
  return bytes > SIZE_MAX - kBfcGranule ? granules_down(SIZE_MAX) : granules_down(bytes + kBfcGranule - 1);
}

BfcOptions checked(BfcOptions options) {
  if (options.limit < kBfcGranule)
    throw InvalidArgument(fmt::format("bfc \"{}\": limit is {}; give at least {} bytes", options.name,
                                      format_bytes_exactly(options.limit), kBfcGranule));
  return options;
}

}  // namespace

BfcResource::BfcResource(BfcOptions options)
    : options_(checked(std::move(options))),
      regions_(options_.source != nullptr ? *options_.source : mmap_region_source()),
      step_(granules_up(options_.growth ? std::min(options_.limit, kFirstRegion) : options_.limit)) {
  stats_.bytes_limit = options_.limit;
}

BfcResource::~BfcResource() = default;

Block BfcResource::allocate(std::size_t bytes, std::size_t alignment) {
  if (!std::has_single_bit(alignment))
    throw InvalidArgument(fmt::format("bfc \"{}\": alignment {} is not a power of two", options_.name, alignment));
  if (bytes == 0) return {};
  alignment = std::max(alignment, kBfcGranule);
  const std::size_t size = granules_up(bytes);
  const std::lock_guard lock(mutex_);
  if (size < bytes || size > options_.limit) refuse(bytes, size);
  const BfcHandle handle = find_or_extend(size, alignment);
  if (handle == 0) refuse(bytes, size);
  return hand_out(handle, bytes, size, alignment);
}

BfcHandle BfcResource::find_or_extend(std::size_t size, std::size_t alignment) {
  if (const BfcHandle handle = chunks_.find(size, alignment)) return handle;
  if (extend(size, alignment)) return chunks_.find(size, alignment);
  if (!options_.garbage_collection || free_empty_regions(size) == 0) return 0;
  return extend(size, alignment) ? chunks_.find(size, alignment) : 0;
}

bool BfcResource::extend(std::size_t size, std::size_t alignment) {
  const std::size_t available = granules_down(options_.limit - regions_.bytes());
  if (size > available) return false;
  bool grown = false;
  while (step_ < size) {
    if (step_ > SIZE_MAX / 2) return false;
    step_ *= 2;
    grown = true;
  }
  BfcRegion* region = reserve_region(std::min(step_, available), size, alignment);
  if (region == nullptr) return false;
  if (!grown && step_ <= SIZE_MAX / 2) step_ *= 2;
  stats_.bytes_reserved = regions_.bytes();
  stats_.peak_bytes_reserved = std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
  const BfcHandle handle = chunks_.add({.data = region->data(), .size = region->size()});
  region->set_handle(region->data(), handle);
  chunks_.bin_insert(handle);
  return true;
}

// Asks for less and less, by a tenth at a time, while the source refuses.
BfcRegion* BfcResource::reserve_region(std::size_t bytes, std::size_t least, std::size_t alignment) {
  while (bytes >= least) {
    if (BfcRegion* region = regions_.add(bytes, alignment)) return region;
    const auto tenth_off = static_cast<std::size_t>(static_cast<double>(bytes) * 0.9);
    if (bytes == kBfcGranule) break;
    bytes = std::min(granules_up(tenth_off), bytes - kBfcGranule);
  }
  return nullptr;
}

bool BfcResource::empty(const BfcRegion& region) const noexcept {
  const BfcChunk& first = chunks_[region.handle(region.data())];
  return !first.in_use() && first.size == region.size();  // Free neighbours have merged.
}

// Releases empty regions if the pool could then grow by `least`; returns the bytes released.
std::size_t BfcResource::free_empty_regions(std::size_t least) {
  std::size_t free = 0;
  for (const BfcRegion& region : regions_.all())
    if (empty(region)) free += region.size();
  if (free == 0 || options_.limit - regions_.bytes() + free < least) return 0;
  for (std::size_t index = regions_.all().size(); index-- > 0;) {
    const BfcRegion& region = regions_.all()[index];
    if (!empty(region)) continue;
    const BfcHandle handle = region.handle(region.data());
    chunks_.bin_remove(handle);
    chunks_.remove(handle);
    regions_.remove(index);
  }
  stats_.bytes_reserved = regions_.bytes();
  return free;
}

Block BfcResource::hand_out(BfcHandle handle, std::size_t bytes, std::size_t size, std::size_t alignment) {
  chunks_.bin_remove(handle);
  if (const std::size_t padding = chunks_[handle].padding(alignment)) {
    split(handle, padding);
    chunks_.bin_insert(std::exchange(handle, chunks_[handle].next));
    chunks_.bin_remove(handle);
  }
  if (chunks_[handle].size >= 2 * size || chunks_[handle].size - size >= options_.max_internal_waste)
    split(handle, size);
  BfcChunk& chunk = chunks_[handle];
  chunk.requested = bytes;
  chunk.allocation_id = next_id_++;
  ++stats_.num_allocs;
  stats_.bytes_in_use += chunk.size;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  stats_.largest_alloc_bytes = std::max(stats_.largest_alloc_bytes, chunk.size);
  return Block(chunk.data, bytes, this, chunk.allocation_id);
}

// Cuts a chunk that is in no bin down to `size`; what follows becomes a free chunk in its bin.
void BfcResource::split(BfcHandle handle, std::size_t size) {
  const BfcHandle rest = chunks_.add({});
  BfcChunk& chunk = chunks_[handle];
  chunks_[rest] = {.data = chunk.data + size, .size = chunk.size - size, .previous = handle, .next = chunk.next};
  chunk.size = size;
  if (chunk.next != 0) chunks_[chunk.next].previous = rest;
  chunk.next = rest;
  regions_.find(chunks_[rest].data)->set_handle(chunks_[rest].data, rest);
  chunks_.bin_insert(rest);
}

// Joins two free chunks that are in no bin; returns the one that remains.
BfcHandle BfcResource::merge_with_next(BfcHandle handle) {
  BfcChunk& chunk = chunks_[handle];
  const BfcHandle gone = chunk.next;
  regions_.find(chunks_[gone].data)->set_handle(chunks_[gone].data, 0);
  chunk.size += chunks_[gone].size;
  chunk.next = chunks_[gone].next;
  if (chunk.next != 0) chunks_[chunk.next].previous = handle;
  chunks_.remove(gone);
  return handle;
}

void BfcResource::deallocate(const Block& block) {
  if (!block) return;
  const std::lock_guard lock(mutex_);
  const BfcRegion* region = block.owner() == this ? regions_.find(block.data()) : nullptr;
  BfcHandle handle = region != nullptr ? region->handle(block.data()) : 0;
  if (handle == 0 || chunks_[handle].data != block.data() || chunks_[handle].allocation_id != block.token())
    throw InvalidArgument(
        fmt::format("bfc \"{}\": deallocate of a block of {} that is not live here; "
                    "it was deallocated before or came from elsewhere",
                    options_.name, format_bytes_exactly(block.size())));
  stats_.bytes_in_use -= chunks_[handle].size;
  chunks_[handle].allocation_id = 0;
  chunks_[handle].requested = 0;
  if (const BfcHandle next = chunks_[handle].next; next != 0 && !chunks_[next].in_use()) {
    chunks_.bin_remove(next);
    merge_with_next(handle);
  }
  if (const BfcHandle previous = chunks_[handle].previous; previous != 0 && !chunks_[previous].in_use()) {
    chunks_.bin_remove(previous);
    handle = merge_with_next(previous);
  }
  chunks_.bin_insert(handle);
}

MemoryStats BfcResource::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats = stats_;
  stats.largest_free_block_bytes = chunks_.largest_free();
  return stats;
}

std::vector<BfcExtent> BfcResource::extents() const {
  const std::lock_guard lock(mutex_);
  std::vector<BfcExtent> extents;
  std::size_t offset = 0;
  for (const BfcRegion& region : regions_.all()) {
    for (BfcHandle handle = region.handle(region.data()); handle != 0; handle = chunks_[handle].next) {
      extents.push_back({.offset = offset, .size = chunks_[handle].size, .requested = chunks_[handle].requested});
      offset += chunks_[handle].size;
    }
  }
  return extents;
}

std::size_t BfcResource::num_regions() const {
  const std::lock_guard lock(mutex_);
  return regions_.all().size();
}

std::size_t BfcResource::collect_garbage() {
  const std::lock_guard lock(mutex_);
  return free_empty_regions(0);
}

void BfcResource::refuse(std::size_t bytes, std::size_t size) {
  ++stats_.num_ooms;
  const std::size_t pool = regions_.bytes();
  OutOfMemoryDetails details;
  details.requested = bytes;
  details.limit = options_.limit;
  details.in_use = stats_.bytes_in_use;
  details.smallest_sufficient_limit = size > SIZE_MAX - pool ? SIZE_MAX : pool + size;
  details.tried = {{.name = "extend the pool"}};
  if (options_.garbage_collection) details.tried.push_back({.name = "release empty regions"});
  details.what = fmt::format(
      "bfc \"{}\": cannot allocate {}: {} in use, {} reserved of the limit {}, largest free chunk {}; "
      "raise the limit to {}",
      options_.name, format_bytes_exactly(bytes), format_bytes(stats_.bytes_in_use), format_bytes(pool),
      format_bytes_exactly(options_.limit), format_bytes(chunks_.largest_free()),
      format_bytes_exactly(details.smallest_sufficient_limit));
  throw_refusal(std::move(details), {.device = options_.name.c_str()});
}

}  // namespace plimsoll::internal
