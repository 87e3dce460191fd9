// SpillSpace: which parts of a file are used and which are holes. It only does the arithmetic.
//
//   SpillSpace space;
//   space.grow(space.growth_for(8192));            // the file now ends at 8192
//   SpillSpace::Taken part = space.take(8192);     // best fit: the smallest hole that is large enough
//   space.give(std::move(part));                   // a hole again, merged with its neighbours
//
// Thread safety: one thread at a time. Cost: logarithmic in the number of holes; give() allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

class SpillSpace {
  using ByOffset = std::map<std::uint64_t, std::uint64_t>;           // Offset, bytes.
  using BySize = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // Bytes, offset.

 public:
  // A part in use, with what give() needs to turn it into a hole.
  class Taken {
   public:
    std::uint64_t offset() const noexcept { return offset_; }
    std::uint64_t bytes() const noexcept { return bytes_; }

   private:
    friend class SpillSpace;
    std::uint64_t offset_ = 0, bytes_ = 0;
    ByOffset::node_type by_offset_;
    BySize::node_type by_size_;
  };

  // By how much the file must grow before take(bytes) can succeed: 0 when a hole is large enough; a hole at the end
  // counts.
  std::uint64_t growth_for(std::uint64_t bytes) const noexcept;
  void grow(std::uint64_t bytes);  // Adds a hole at the end. Changes nothing when memory runs out.
  // Requires growth_for(bytes) == 0 and bytes > 0. Changes nothing when memory runs out.
  Taken take(std::uint64_t bytes);
  void give(Taken taken) noexcept;

  std::uint64_t end() const noexcept { return end_; }  // Bytes of the file.
  std::uint64_t taken_bytes() const noexcept { return taken_bytes_; }
  std::size_t holes() const noexcept { return by_offset_.size(); }

 private:
  static Taken make(std::uint64_t offset, std::uint64_t bytes);
  void add_hole(Taken hole) noexcept;

  ByOffset by_offset_;  // Invariant: no two holes touch; by_size_ has the same holes.
  BySize by_size_;
  std::uint64_t end_ = 0, taken_bytes_ = 0;
};

}  // namespace plimsoll::internal
