#include "plimsoll/memory/free_bins.h"

#include <bit>

namespace plimsoll::internal {
namespace {

unsigned bin_of(std::size_t size) { return static_cast<unsigned>(std::bit_width(size)) - 1; }

// The size's bits below its leading one, moved to the top: the path through the trie.
std::uint64_t path_of(std::size_t size, unsigned bin) { return static_cast<std::uint64_t>(size) << (64 - bin); }

Chunk* leftmost_child(const Chunk* chunk) { return chunk->free.child[0] ? chunk->free.child[0] : chunk->free.child[1]; }

Chunk* smallest_below(Chunk* node) {
  Chunk* smallest = node;
  for (Chunk* at = node; at; at = leftmost_child(at))
    if (at->size < smallest->size) smallest = at;
  return smallest;
}

}  // namespace

void FreeBins::insert(Chunk* chunk) noexcept {
  chunk->free.child[0] = chunk->free.child[1] = chunk->free.parent = nullptr;
  chunk->free.ring_prev = chunk->free.ring_next = chunk;
  chunk->free.in_tree = false;
  if (chunk->size >= kSmall) return insert_in_tree(chunk);
  Chunk*& head = lists_[chunk->size / kGranularity];
  if (head) {
    chunk->free.ring_next = head;
    chunk->free.ring_prev = head->free.ring_prev;
    head->free.ring_prev->free.ring_next = chunk;
    head->free.ring_prev = chunk;
  }
  head = chunk;
  small_map_ |= std::uint64_t{1} << (chunk->size / kGranularity);
}

void FreeBins::remove(Chunk* chunk) noexcept {
  if (chunk->size >= kSmall) return remove_from_tree(chunk);
  const std::size_t index = chunk->size / kGranularity;
  if (chunk->free.ring_next == chunk) {
    lists_[index] = nullptr;
    small_map_ &= ~(std::uint64_t{1} << index);
    return;
  }
  chunk->free.ring_prev->free.ring_next = chunk->free.ring_next;
  chunk->free.ring_next->free.ring_prev = chunk->free.ring_prev;
  if (lists_[index] == chunk) lists_[index] = chunk->free.ring_next;
}

void FreeBins::insert_in_tree(Chunk* chunk) noexcept {
  const unsigned bin = bin_of(chunk->size);
  Chunk* at = roots_[bin];
  if (!at) {
    roots_[bin] = chunk;
    tree_map_ |= std::uint64_t{1} << bin;
    chunk->free.in_tree = true;
    return;
  }
  for (std::uint64_t path = path_of(chunk->size, bin); at->size != chunk->size; path <<= 1) {
    Chunk*& child = at->free.child[path >> 63];
    if (!child) {
      child = chunk;
      chunk->free.parent = at;
      chunk->free.in_tree = true;
      return;
    }
    at = child;
  }
  chunk->free.ring_next = at->free.ring_next;  // Same size: behind the node.
  chunk->free.ring_prev = at;
  at->free.ring_next->free.ring_prev = chunk;
  at->free.ring_next = chunk;
}

// Puts `by` (nullptr for nothing) where `chunk` hangs in the tree and hands it the children.
void FreeBins::replace_in_tree(Chunk* chunk, Chunk* by, unsigned bin) noexcept {
  if (Chunk* parent = chunk->free.parent)
    parent->free.child[parent->free.child[1] == chunk] = by;
  else
    roots_[bin] = by;
  if (!by) {
    if (!roots_[bin]) tree_map_ &= ~(std::uint64_t{1} << bin);
    return;
  }
  by->free.in_tree = true;
  by->free.parent = chunk->free.parent;
  for (int side : {0, 1}) {
    by->free.child[side] = chunk->free.child[side];
    if (by->free.child[side]) by->free.child[side]->free.parent = by;
  }
}

void FreeBins::remove_from_tree(Chunk* chunk) noexcept {
  const unsigned bin = bin_of(chunk->size);
  Chunk* by = nullptr;
  if (chunk->free.ring_next != chunk) {
    by = chunk->free.ring_next;
    chunk->free.ring_prev->free.ring_next = chunk->free.ring_next;
    chunk->free.ring_next->free.ring_prev = chunk->free.ring_prev;
    if (!chunk->free.in_tree) return;
  } else {
    for (Chunk* at = leftmost_child(chunk); at; at = leftmost_child(at)) by = at;
    if (by) {  // The leaf may be anywhere on its path: unhook it, then put it in this place.
      Chunk* parent = by->free.parent;
      parent->free.child[parent->free.child[1] == by] = nullptr;
    }
  }
  replace_in_tree(chunk, by, bin);
}

Chunk* FreeBins::best(std::size_t size) const noexcept {
  if (size < kSmall) {
    const std::uint64_t lists = small_map_ & (~std::uint64_t{0} << (size / kGranularity));
    if (lists) return lists_[static_cast<unsigned>(std::countr_zero(lists))];
    if (!tree_map_) return nullptr;
    return smallest_below(roots_[static_cast<unsigned>(std::countr_zero(tree_map_))]);
  }
  const unsigned bin = bin_of(size);
  Chunk* found = nullptr;
  Chunk* larger = nullptr;  // The nearest subtree in which every size is larger.
  std::uint64_t path = path_of(size, bin);
  for (Chunk* at = roots_[bin]; at; path <<= 1) {
    if (at->size >= size && (!found || at->size < found->size)) {
      found = at;
      if (at->size == size) return found;
    }
    Chunk* right = at->free.child[1];
    at = at->free.child[path >> 63];
    if (right && right != at) larger = right;
  }
  if (larger) {
    Chunk* smallest = smallest_below(larger);
    if (!found || smallest->size < found->size) found = smallest;
  }
  if (found) return found;
  const std::uint64_t above = bin == 63 ? 0 : tree_map_ & (~std::uint64_t{0} << (bin + 1));
  return above ? smallest_below(roots_[static_cast<unsigned>(std::countr_zero(above))]) : nullptr;
}

Chunk* FreeBins::largest() const noexcept {
  if (!tree_map_) return small_map_ ? lists_[static_cast<unsigned>(std::bit_width(small_map_)) - 1] : nullptr;
  Chunk* largest = roots_[static_cast<unsigned>(std::bit_width(tree_map_)) - 1];
  for (Chunk* at = largest; at; at = at->free.child[1] ? at->free.child[1] : at->free.child[0])
    if (at->size > largest->size) largest = at;
  return largest;
}

}  // namespace plimsoll::internal
