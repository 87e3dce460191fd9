// FreeBins: free chunks by size; finds the smallest that fits in time independent of their number.
//
// Sizes below 4 KiB have a list each. Larger ones live in one bitwise trie per power of two, at most as deep as the
// size has bits; chunks of one size form a ring behind one node.
// Not thread-safe: the arena's lock protects it.
#pragma once

#include <array>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/chunk.h"

namespace plimsoll::internal {

class FreeBins {
 public:
  void insert(Chunk* chunk) noexcept;
  void remove(Chunk* chunk) noexcept;

  // The smallest chunk of at least `size` bytes, or nullptr.
  Chunk* best(std::size_t size) const noexcept;

  // A chunk of the largest size, or nullptr.
  Chunk* largest() const noexcept;

 private:
  static constexpr std::size_t kSmall = 4096;  // Sizes below have exact lists.

  void insert_in_tree(Chunk* chunk) noexcept;
  void remove_from_tree(Chunk* chunk) noexcept;
  void replace_in_tree(Chunk* chunk, Chunk* by, unsigned bin) noexcept;

  std::uint64_t small_map_ = 0;  // Bit i: the list of size i * 64 is not empty.
  std::uint64_t tree_map_ = 0;   // Bit i: the trie of sizes [2^i, 2^(i+1)) is not empty.
  std::array<Chunk*, kSmall / kGranularity> lists_{};
  std::array<Chunk*, 64> roots_{};
};

}  // namespace plimsoll::internal
