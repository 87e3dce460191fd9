#include "plimsoll/memory/chunk_table.h"

#include "plimsoll/base/error.h"
#include "plimsoll/memory/zero_pages.h"

namespace plimsoll {

namespace {
constexpr std::size_t kDirectoryBytes = (std::size_t{1} << 20) * sizeof(void*);
constexpr std::size_t kMappingBytes = 17 * 65536;  // One slab more than it holds, to align the rest.
}  // namespace

ChunkTable::ChunkTable()
    : directory_(static_cast<Chunk**>(map_zero_pages(kDirectoryBytes, "chunk records"))),
      mappings_(static_cast<void**>(map_zero_pages(kDirectoryBytes / kSlabsPerMapping, "chunk records"))) {
  static_assert(kSlabBytes == 65536 && kMappingBytes == (kSlabsPerMapping + 1) * kSlabBytes);
}

ChunkTable::~ChunkTable() {
  for (std::size_t i = 0; i * kSlabsPerMapping < slabs_.load(); ++i) unmap_zero_pages(mappings_[i], kMappingBytes);
  unmap_zero_pages(mappings_, kDirectoryBytes / kSlabsPerMapping);
  unmap_zero_pages(directory_, kDirectoryBytes);
}

void ChunkTable::add_slab() {
  const std::size_t number = slabs_.load(std::memory_order_relaxed);
  PLIMSOLL_CHECK(number < kMaxSlabs);
  if (number % kSlabsPerMapping == 0) mappings_[number / kSlabsPerMapping] = map_zero_pages(kMappingBytes, "chunk records");
  const auto mapping = reinterpret_cast<std::uintptr_t>(mappings_[number / kSlabsPerMapping]);
  const std::uintptr_t aligned = (mapping + kSlabBytes - 1) & ~(kSlabBytes - 1);
  auto* slab = reinterpret_cast<Chunk*>(aligned + number % kSlabsPerMapping * kSlabBytes);
  slab->offset = number;
  for (std::size_t i = kSlabRecords; --i > 0;) drop(&slab[i]);
  directory_[number] = slab;
  slabs_.store(number + 1, std::memory_order_release);
}

}  // namespace plimsoll
