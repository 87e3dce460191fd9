// Chunk: the record of one stretch of an arena's address range, kept outside of the memory it describes.
//
// A chunk is free, cached (freed, kept by a thread for reuse at the same size), live, or deferred (freed, not yet
// reusable). All chunks of a zone form one list in address order without gaps, and two neighbours are never both free.
// The first cache line is what allocation touches; the second is the ledger's label while the chunk is live
// and the links of the free bins while it is free.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/memory/label.h"

namespace plimsoll {

class BudgetNode;

enum class ChunkState : std::uint8_t { kSpare, kFree, kCached, kLive, kDeferred };

inline constexpr std::size_t kGranularity = 64;  // Every chunk's offset and size is a multiple of it.

struct FreeLinks {
  struct Chunk* child[2];   // In the trie of its power of two.
  struct Chunk* parent;     // nullptr for a root and for ring members that are not in the tree.
  struct Chunk* ring_prev;  // Chunks of the same size.
  struct Chunk* ring_next;
  struct Chunk* donor_prev;  // Chunks that miss some pages and still hold others.
  struct Chunk* donor_next;
  std::uint32_t missing_pages;  // Whole pages inside that are not committed.
  bool in_tree;
  bool in_donors;
};

struct alignas(64) Chunk {
  std::size_t offset;     // From the start of the arena's range.
  std::size_t size;       // Bytes, rounded.
  Chunk* prev;            // Neighbours by address, within the zone.
  Chunk* next;
  Chunk* link;            // Next in a thread's cache, in the deferred list or among the spare records.
  BudgetNode* budget;     // Charged while live; nullptr for none.
  std::size_t requested;  // Bytes asked for, while live.
  std::uint32_t generation;
  ChunkState state;
  std::uint8_t zone;
  std::uint16_t owner;  // The thread that allocated it: only that thread caches it.
  union {
    BlockLabel label;
    FreeLinks free;
  };
};
static_assert(sizeof(Chunk) == 128);

}  // namespace plimsoll
