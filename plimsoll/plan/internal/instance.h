// Instance: what the searches see of a planning problem. Alias sets are one item, times are section numbers, sizes are
// multiples of the largest unit that loses nothing.
//
//   Instance instance = make_instance(buffers, constraints);
//   std::vector<Units> offsets = ...;                              // one per item
//   std::vector<std::size_t> bytes = buffer_offsets(instance, offsets);
//
// A section is a stretch of time whose live set is not contained in that of a neighbour; only there can bytes run out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::internal {

using Units = std::int64_t;

// In sections [first, last) the item holds units [low, high) from its offset on.
struct Piece {
  int first;
  int last;
  Units low;
  Units high;
};

struct Item {
  Units size = 0;         // Padded to the alignment that all items share.
  Units alignment = 1;    // In units; 1 when every multiple of the unit will do.
  std::size_t bytes = 0;  // True size; size * unit - bytes is padding that the topmost item need not have.
  int first = 0;          // Sections from the first to past the last piece.
  int last = 0;
  std::uint32_t pieces_begin = 0;
  std::uint32_t pieces_end = 0;
  double area = 0;  // Units times duration, in the caller's time.
  double duration = 0;
};

struct Instance {
  std::size_t unit = 1;  // Bytes.
  std::vector<Item> items;
  std::vector<Piece> pieces;
  int sections = 0;
  bool has_windows = false;  // Some piece does not start at the item's first byte: searches are not complete then.
  bool is_simple = true;     // Every item is one piece of its full size.

  std::size_t live_bytes = 0;  // The most bytes that live at once, without any padding.

  std::vector<int> item_of_buffer;          // -1 for buffers without bytes.
  std::vector<std::size_t> offset_in_item;  // Of each buffer.

  std::span<const Piece> pieces_of(const Item& item) const {
    return {pieces.data() + item.pieces_begin, pieces.data() + item.pieces_end};
  }
};

// Throws InvalidArgument as plan() does.
Instance make_instance(std::span<const Buffer> buffers, const Constraints& constraints);

std::vector<std::size_t> buffer_offsets(const Instance& instance, std::span<const Units> item_offsets);

// Largest offset + true size, in bytes.
std::size_t peak_bytes(const Instance& instance, std::span<const Units> item_offsets);

// The smallest peak above `bytes` that a plan can have.
std::size_t next_peak_bytes(const Instance& instance, std::size_t bytes);

// The same items in sections [first, last) only: a plan of the whole holds a plan of it, so its bounds are bounds of
// both.
Instance clip(const Instance& instance, int first, int last);

}  // namespace plimsoll::internal
