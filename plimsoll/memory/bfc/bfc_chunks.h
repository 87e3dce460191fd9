// BfcChunks: the chunk records of a BfcResource and the 21 bins its free chunks are sorted into.
//
//   BfcChunks chunks;
//   BfcHandle chunk = chunks.add({.data = region, .size = 2_MiB});
//   chunks.bin_insert(chunk);
//   chunks.find(4_KiB, 256);   // -> chunk: best fit, lowest address on ties
//
// Not thread safe: BfcResource locks around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/bfc/bfc_region.h"

namespace plimsoll::internal {

struct BfcChunk {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::size_t requested = 0;         // What the user asked for; 0 while free.
  std::uint64_t allocation_id = 0;   // Counts up from 1; 0 while free.
  BfcHandle previous = 0, next = 0;  // Neighbours by address in the same region.

  bool in_use() const noexcept { return allocation_id != 0; }
  // Bytes to skip at the front so that the rest is aligned.
  std::size_t padding(std::size_t alignment) const noexcept {
    const std::size_t over = reinterpret_cast<std::uintptr_t>(data) & (alignment - 1);
    return over == 0 ? 0 : alignment - over;
  }
};

class BfcChunks {
 public:
  static constexpr int kBins = 21;

  // Bin i holds free chunks of [256 << i, 256 << (i + 1)) bytes, the last one everything from 256 MiB.
  static int bin_of(std::size_t size) noexcept;

  BfcHandle add(const BfcChunk& chunk);
  void remove(BfcHandle handle);
  BfcChunk& operator[](BfcHandle handle) noexcept { return records_[handle]; }
  const BfcChunk& operator[](BfcHandle handle) const noexcept { return records_[handle]; }

  void bin_insert(BfcHandle handle);
  void bin_remove(BfcHandle handle);

  // The free chunk that serves `size` bytes at `alignment`, or 0. Walks the request's own bin from its smallest chunk,
  // as TensorFlow does: linear in the too-small chunks there.
  BfcHandle find(std::size_t size, std::size_t alignment) const noexcept;
  std::size_t largest_free() const noexcept;

 private:
  using Key = std::tuple<std::size_t, std::byte*, BfcHandle>;  // (size, address): best fit, lowest address first.

  std::vector<BfcChunk> records_{1};  // [0] stands for "none".
  BfcHandle spare_ = 0;               // Removed records, linked by `next`.
  std::array<std::set<Key>, kBins> bins_;
};

}  // namespace plimsoll::internal
