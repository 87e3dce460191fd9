#include "plimsoll/memory/bfc/bfc_chunks.h"

#include <algorithm>
#include <bit>

namespace plimsoll::internal {

int BfcChunks::bin_of(std::size_t size) noexcept {
  const std::size_t granules = std::max<std::size_t>(size / kBfcGranule, 1);
  return std::min(kBins - 1, static_cast<int>(std::bit_width(granules)) - 1);
}

BfcHandle BfcChunks::add(const BfcChunk& chunk) {
  if (spare_ == 0) {
    records_.push_back(chunk);
    return static_cast<BfcHandle>(records_.size() - 1);
  }
  const BfcHandle handle = spare_;
  spare_ = records_[handle].next;
  records_[handle] = chunk;
  return handle;
}

void BfcChunks::remove(BfcHandle handle) {
  records_[handle] = BfcChunk{.next = spare_};
  spare_ = handle;
}

void BfcChunks::bin_insert(BfcHandle handle) {
  const BfcChunk& chunk = records_[handle];
  bins_[static_cast<std::size_t>(bin_of(chunk.size))].emplace(chunk.size, chunk.data, handle);
}

void BfcChunks::bin_remove(BfcHandle handle) {
  const BfcChunk& chunk = records_[handle];
  bins_[static_cast<std::size_t>(bin_of(chunk.size))].erase(Key(chunk.size, chunk.data, handle));
}

BfcHandle BfcChunks::find(std::size_t size, std::size_t alignment) const noexcept {
  for (std::size_t bin = static_cast<std::size_t>(bin_of(size)); bin < kBins; ++bin) {
    for (const auto& [free_size, data, handle] : bins_[bin]) {
      if (free_size < size) continue;
      if (records_[handle].padding(alignment) <= free_size - size) return handle;
    }
  }
  return 0;
}

std::size_t BfcChunks::largest_free() const noexcept {
  for (auto bin = bins_.rbegin(); bin != bins_.rend(); ++bin)
    if (!bin->empty()) return std::get<0>(*bin->rbegin());
  return 0;
}

}  // namespace plimsoll::internal
