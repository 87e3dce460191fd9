#include "plimsoll/memory/block_map.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <thread>

#include "plimsoll/base/rounding.h"
#include "plimsoll/memory/pages/zero_pages.h"

namespace plimsoll::internal {

BlockMap::BlockMap(std::size_t range_bytes) : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  static_assert(Entry::is_always_lock_free && sizeof(Entry) == sizeof(void*) && sizeof(Leaf) == 4);
  leaf_shift_ = static_cast<unsigned>(std::bit_width(page_bytes_ / sizeof(Entry))) - 1;
  entry_bytes_ = round_up(range_bytes / kGranularity * sizeof(Entry), page_bytes_);
  leaf_bytes_ = round_up(entry_bytes_ / page_bytes_ * sizeof(Leaf), page_bytes_);
  entries_ = static_cast<Entry*>(map_zero_pages(entry_bytes_, "map of blocks"));
  try {
    leaves_ = static_cast<Leaf*>(map_zero_pages(leaf_bytes_, "map of blocks"));
  } catch (...) {
    unmap_zero_pages(entries_, entry_bytes_);
    throw;
  }
}

BlockMap::~BlockMap() {
  unmap_zero_pages(entries_, entry_bytes_);
  unmap_zero_pages(leaves_, leaf_bytes_);
}

// A leaf's count is raised before its entry is written and lowered after it is cleared, so a leaf that counts none
// holds none, and one marked as being released is waited for.
void BlockMap::put(std::size_t offset, Chunk* chunk) noexcept {
  Leaf& counts = leaf(offset);
  std::uint32_t before = 0;
  while ((before = counts.fetch_add(1, std::memory_order_acquire)) & kReleasing) {
    counts.fetch_sub(1, std::memory_order_relaxed);
    std::this_thread::yield();
  }
  if ((before & kCount) == 0) occupied_.fetch_add(1, std::memory_order_relaxed);
  if (!(before & kTouched)) note_touched(counts);
  entry(offset).store(chunk, std::memory_order_release);
}

bool BlockMap::take(std::size_t offset, Chunk* chunk) noexcept {
  if (!entry(offset).compare_exchange_strong(chunk, nullptr, std::memory_order_acq_rel)) return false;
  if ((leaf(offset).fetch_sub(1, std::memory_order_release) & kCount) == 1)
    occupied_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void BlockMap::note_touched(Leaf& counts) noexcept {
  if (counts.fetch_or(kTouched, std::memory_order_relaxed) & kTouched) return;
  const auto number = static_cast<std::size_t>(&counts - leaves_);
  std::size_t high = high_water_.load(std::memory_order_relaxed);
  while (high <= number && !high_water_.compare_exchange_weak(high, number + 1, std::memory_order_relaxed)) {
  }
  const std::size_t touched = touched_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (touched > 2 * occupied_.load(std::memory_order_relaxed) + kSpareLeaves) release_empty();
}

// Gives the leaf's page back if it has no entries.
bool BlockMap::release(std::size_t number) noexcept {
  std::uint32_t expected = kTouched;
  if (!leaves_[number].compare_exchange_strong(expected, kTouched | kReleasing, std::memory_order_acquire))
    return false;
  madvise(entries_ + (number << leaf_shift_), page_bytes_, MADV_DONTNEED);
  touched_.fetch_sub(1, std::memory_order_relaxed);
  leaves_[number].fetch_and(~(kTouched | kReleasing), std::memory_order_release);
  return true;
}

std::size_t BlockMap::release_empty() noexcept {
  if (sweeping_.exchange(true, std::memory_order_acquire)) return 0;  // Another thread is already sweeping.
  std::size_t bytes = 0;
  const std::size_t high = high_water_.load(std::memory_order_relaxed);
  for (std::size_t number = 0; number < high; ++number)
    if (leaves_[number].load(std::memory_order_relaxed) == kTouched && release(number)) bytes += page_bytes_;
  sweeping_.store(false, std::memory_order_release);
  return bytes;
}

std::size_t BlockMap::bytes() const noexcept {
  return touched_.load(std::memory_order_relaxed) * page_bytes_ +
         round_up(high_water_.load(std::memory_order_relaxed) * sizeof(Leaf), page_bytes_) + sizeof(BlockMap);
}

}  // namespace plimsoll::internal
