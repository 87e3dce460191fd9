#include "plimsoll/memory/chunk_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/zero_pages.h"

namespace plimsoll {
namespace {

constexpr std::size_t kLeastRecords = 1024;

// Asks for less and less until the system agrees.
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

ChunkTable::ChunkTable(std::size_t most) : most_(most), records_(map_records(most_)) {}

ChunkTable::~ChunkTable() { unmap_zero_pages(records_, most_ * sizeof(Chunk)); }

Chunk* ChunkTable::make_new() noexcept {
  const std::size_t number = made_.load(std::memory_order_relaxed);
  made_.store(number + 1, std::memory_order_release);
  return records_ + number;  // All zero.
}

void ChunkTable::refuse(std::size_t records) const {
  OutOfMemoryDetails details;
  details.requested = records * sizeof(Chunk);
  details.in_use = details.limit = most_ * sizeof(Chunk);
  details.smallest_sufficient_limit = details.limit + details.requested;
  details.what = fmt::format("arena: all {} records of chunks are in use; allocate fewer, larger blocks", most_);
  throw OutOfMemory(std::move(details));  // Not by throw_refusal(): the arena's lock is held.
}

}  // namespace plimsoll
