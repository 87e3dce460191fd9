// Chunk: the record of one range of an arena's addresses, kept outside the memory it describes.
//
// A chunk is free, cached (freed, kept by a thread for reuse at the same size), live, deferred (freed, not yet
// reusable), or taken (on its way between the heap and a block: its label means nothing). All chunks of a zone form one
// list in address order without gaps, and two neighbours are never both free. The first cache line is what allocation
// touches; the second is the ledger's label while the chunk is live and the links of the free bins while it is free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"

namespace plimsoll {

namespace internal {
class BudgetNode;
}  // namespace internal

enum class ChunkState : std::uint8_t { kSpare, kFree, kTaken, kCached, kLive, kDeferred };

// The thread that uses a chunk sets its state while other threads, working on its neighbours, check whether it is free.
// They see one of the states in use or kFree, never half a change; no order is implied.
class SharedChunkState {
 public:
  SharedChunkState() = default;
  SharedChunkState(const SharedChunkState& other) noexcept : state_(other) {}
  SharedChunkState& operator=(const SharedChunkState& other) noexcept { return *this = static_cast<ChunkState>(other); }
  SharedChunkState& operator=(ChunkState state) noexcept {
    state_.store(state, std::memory_order_relaxed);
    return *this;
  }
  operator ChunkState() const noexcept { return state_.load(std::memory_order_relaxed); }

 private:
  std::atomic<ChunkState> state_{ChunkState::kSpare};
};

inline constexpr std::size_t kGranularity = 64;  // Every chunk's offset and size is a multiple of it.

struct FreeLinks {
  struct Chunk* child[2];   // In the trie of its power of two.
  struct Chunk* parent;     // nullptr for a root and for ring members that are not in the tree.
  struct Chunk* ring_prev;  // Chunks of the same size.
  struct Chunk* ring_next;
  struct Chunk* donor_prev;  // Chunks that lack some pages and still hold others.
  struct Chunk* donor_next;
  std::uint32_t missing_pages;  // Whole pages inside that are not committed.
  bool in_tree;
  bool in_donors;
};

struct alignas(64) Chunk {
  std::size_t offset;  // From the start of the arena's range.
  std::size_t size;    // Bytes, rounded.
  Chunk* prev;         // Neighbours by address, within the zone.
  Chunk* next;
  Chunk* link;            // Next in a thread's cache, in the deferred list or among the spare records.
  BudgetNode* budget;     // Charged while live; nullptr for none.
  std::size_t requested;  // Bytes asked for, while live.
  std::uint32_t generation;
  SharedChunkState state;
  std::uint8_t zone;
  std::uint16_t owner;  // The thread that allocated it: only that thread caches it.
  union {
    BlockLabel label;
    FreeLinks free;
  };
};
static_assert(sizeof(Chunk) == 128);

}  // namespace plimsoll
