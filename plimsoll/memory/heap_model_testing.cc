#include "plimsoll/memory/heap_model_testing.h"

#include <algorithm>

namespace plimsoll {

HeapAndModel::HeapAndModel(std::size_t page_cap, const FakePagesOptions& options, bool two_zones)
    : page_cap_(page_cap),
      pages_(*new FakePageRange(page_cap * options.page_bytes * options.range_factor, options)),
      heap_(std::unique_ptr<PageRange>(&pages_), options.page_bytes, two_zones) {}

Chunk* HeapAndModel::take(std::size_t size, std::size_t alignment) {
  Chunk* chunk = heap_.take_resident(size, alignment);
  if (!chunk) chunk = heap_.take_committing(size, alignment, page_cap_);
  if (!chunk) chunk = heap_.take_moving(size, alignment, page_cap_, page_cap_);
  if (chunk) add(chunk, size, alignment);
  return chunk;
}

void HeapAndModel::add(Chunk* chunk, std::size_t size, std::size_t alignment) {
  EXPECT_EQ(chunk->size, size);
  EXPECT_EQ(chunk->offset % alignment, 0u);
  const auto next = live_.lower_bound(chunk->offset);
  if (next != live_.end()) {
    EXPECT_LE(chunk->offset + size, next->first) << "overlaps the next block";
  }
  if (next != live_.begin()) {
    const auto& [offset, before] = *std::prev(next);
    EXPECT_LE(offset + before.chunk->size, chunk->offset) << "overlaps the previous block";
  }
  const Block block(heap_.base() + chunk->offset, size, nullptr, 0);
  EXPECT_TRUE(live_.emplace(chunk->offset, Live{chunk, MarkedBlock(block, ++marks_)}).second);
}

void HeapAndModel::give(std::size_t which) {
  const auto place = std::next(live_.begin(), static_cast<std::ptrdiff_t>(which % live_.size()));
  EXPECT_TRUE(place->second.contents.intact()) << "the block at " << place->first << " lost its contents";
  heap_.give(place->second.chunk);
  live_.erase(place);
}

void HeapAndModel::give_all() {
  while (!live_.empty()) give(live_.size() / 2);
}

std::size_t HeapAndModel::live_pages() const {
  std::size_t pages = 0, counted = 0;  // All pages below `counted` are.
  for (const auto& [offset, live] : live_) {
    const std::size_t first = std::max(counted, offset / heap_.page_bytes());
    const std::size_t last = (offset + live.chunk->size - 1) / heap_.page_bytes() + 1;
    if (last > first) pages += last - first;
    counted = std::max(counted, last);
  }
  return pages;
}

void HeapAndModel::check() const {
  heap_.validate();
  ASSERT_EQ(heap_.committed_pages(), pages_.present());
  ASSERT_EQ(heap_.peak_committed_pages(), pages_.most_present());
  ASSERT_LE(pages_.most_present(), page_cap_);
  ASSERT_EQ(heap_.committed_pages() - heap_.spare_pages(), live_pages());
  ASSERT_EQ(pages_.wrong_calls(), 0u);
  for (const auto& [offset, live] : live_) ASSERT_TRUE(live.contents.intact()) << offset;
}

std::size_t random_size(std::mt19937& random, std::size_t most) {
  const unsigned kind = random() % 10;
  const std::size_t range = kind < 5 ? 32 * kGranularity : kind < 9 ? most / 16 : most;
  return (1 + random() % std::max<std::size_t>(1, range / kGranularity)) * kGranularity;
}

}  // namespace plimsoll
