#include "plimsoll/memory/chunk_table.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/pages/zero_pages.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kLeastRecords = 1024;

// Tries smaller and smaller sizes until the system agrees.
Chunk* map_records(std::size_t& most) {
  for (most = std::clamp<std::size_t>(most, kLeastRecords, UINT32_MAX);; most = std::max(kLeastRecords, most / 2)) {
    try {
      return static_cast<Chunk*>(map_zero_pages(most * sizeof(Chunk), "chunk records"));
    } catch (const OutOfMemory&) {
      if (most == kLeastRecords) throw;
    }
  }
}

}  // namespace

ChunkTable::ChunkTable(std::size_t most)
    : most_(most),
      records_(map_records(most_)),
      per_page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / sizeof(Chunk)),
      pages_away_(most_ / per_page_ + 1) {}

ChunkTable::~ChunkTable() { unmap_zero_pages(records_, most_ * sizeof(Chunk)); }

Chunk* ChunkTable::make_new() noexcept {
  if (away_ > 0) {
    bring_back_page();
    return make();
  }
  const std::size_t number = made_.load(std::memory_order_relaxed);
  made_.store(number + 1, std::memory_order_release);
  return records_ + number;  // All zero.
}

void ChunkTable::bring_back_page() noexcept {
  const std::size_t pages = made_.load(std::memory_order_relaxed) / per_page_;
  const std::size_t page = pages_away_.next_set(0, pages);
  pages_away_.clear(page, page + 1);
  --away_;
  for (std::size_t i = per_page_; i-- > 0;) {
    Chunk* const chunk = records_ + page * per_page_ + i;
    chunk->generation = next_generation_;
    add_spare(chunk);
  }
}

// Also raises `generation` above those of the page's records.
bool ChunkTable::all_spare(std::size_t page, std::uint32_t& generation) const noexcept {
  for (std::size_t i = 0; i < per_page_; ++i) {
    const Chunk& chunk = records_[page * per_page_ + i];
    if (chunk.state != ChunkState::kSpare) return false;
    generation = std::max(generation, chunk.generation + 1);
  }
  return true;
}

std::size_t ChunkTable::trim() noexcept {
  if (spares_ < per_page_) return 0;
  const std::size_t made = made_.load(std::memory_order_relaxed), before = away_;
  spare_ = nullptr;
  spares_ = 0;
  std::size_t first = 0;  // Start of the run of pages to release.
  const auto release = [&](std::size_t last) {
    if (first < last) madvise(records_ + first * per_page_, (last - first) * per_page_ * sizeof(Chunk), MADV_DONTNEED);
  };
  for (std::size_t page = 0; page < made / per_page_; ++page) {
    const bool is_away = pages_away_.count(page, page + 1) > 0;
    std::uint32_t generation = next_generation_;
    if (is_away || all_spare(page, generation)) {
      next_generation_ = generation;
      pages_away_.set(page, page + 1);
      away_ += is_away ? 0 : 1;
      continue;
    }
    release(page);
    first = page + 1;
    for (std::size_t i = 0; i < per_page_; ++i)
      if (Chunk* const chunk = records_ + page * per_page_ + i; chunk->state == ChunkState::kSpare) add_spare(chunk);
  }
  release(made / per_page_);
  for (Chunk* chunk = records_ + made / per_page_ * per_page_; chunk != records_ + made; ++chunk)
    if (chunk->state == ChunkState::kSpare) add_spare(chunk);
  return (away_ - before) * per_page_ * sizeof(Chunk);
}

void ChunkTable::refuse(std::size_t records) const {
  OutOfMemoryDetails details;
  details.requested = records * sizeof(Chunk);
  details.in_use = details.limit = most_ * sizeof(Chunk);
  details.smallest_sufficient_limit = details.limit + details.requested;
  details.what = fmt::format("arena: all {} records of chunks are in use; allocate fewer, larger blocks", most_);
  throw OutOfMemory(std::move(details));  // Not by throw_refusal(): the arena's lock is held.
}

}  // namespace plimsoll::internal
