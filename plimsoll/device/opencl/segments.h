// Segments: places for blocks in memory that comes in large pieces, which cannot grow and are limited in size by the
// driver. A block is in one segment, and may be moved to another place: its address is only a number.
//
//   Segments segments(memory, {.limit = 64_MiB, .segment_bytes = 8_MiB, .most_bytes = 2_GiB});
//   segments.place(address, bytes);                    // false: there is no room, even when all live blocks are moved
//   const Segments::Place place = segments.find(address);
//   segments.remove(address);
//
// A block goes into the tightest hole; otherwise into a new segment, while all together stay within the limit;
// otherwise live blocks are moved together by copies, empty segments are returned, and it is tried again. So, with
// requests up to an eighth of a segment, none is refused while live and requested bytes are at most 7/8 of the limit
// less one segment: when every hole is smaller than the request, every segment is more than 7/8 full.
// Larger blocks than a segment have one of their own; with segments of 0 bytes every block has, and returns it when it
// goes: then a simulator sees who reads or writes outside of a block. Empty segments are kept until give_empty() or
// until the room is needed. Not thread-safe. No method throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace plimsoll::internal {

class Segments {
 public:
  struct Place {
    std::size_t segment = 0, offset = 0;
    auto operator<=>(const Place&) const = default;
  };
  // Whose memory it is.
  class Memory {
   public:
    virtual bool make_segment(std::size_t segment, std::size_t bytes) noexcept = 0;  // False: there is none.
    virtual void drop_segment(std::size_t segment) noexcept = 0;
    // After all that was done before with these bytes. They do not overlap.
    virtual void copy(Place to, Place from, std::size_t bytes) noexcept = 0;

   protected:
    ~Memory() = default;
  };
  struct Sizes {
    std::size_t limit, segment_bytes, most_bytes;  // Of all, of one as a rule, of one at most.
  };

  Segments(Memory& memory, const Sizes& sizes) noexcept : memory_(memory), sizes_(sizes) {}

  bool place(std::size_t address, std::size_t bytes) noexcept;
  void remove(std::size_t address) noexcept;
  bool find(std::size_t address, Place& place) const noexcept;  // Of any byte of a block. False: of none.
  void give_empty() noexcept;

  std::size_t bytes() const noexcept { return total_; }  // Of all segments.
  std::size_t live_bytes() const noexcept { return live_; }
  std::uint64_t moved_bytes() const noexcept { return moved_; }

 private:
  struct Segment {
    std::size_t bytes = 0, live = 0;            // No bytes: there is none.
    std::map<std::size_t, std::size_t> blocks;  // Addresses, by offset.
  };
  struct Block {
    Place place;
    std::size_t bytes = 0;
  };
  using Hole = std::tuple<std::size_t, std::size_t, std::size_t>;  // Bytes, segment, offset.

  bool try_place(std::size_t address, std::size_t bytes);
  bool make_room(std::size_t address, std::size_t bytes);
  bool grow(std::size_t bytes);
  void put(std::size_t address, Place place, std::size_t bytes);
  void take_out(std::size_t address, const Block& block);
  void add_hole(std::size_t segment, std::size_t offset, std::size_t bytes);
  void slide(std::size_t segment);
  void move_down(Place to, Place from, std::size_t bytes);
  bool evacuate(std::size_t segment);
  std::vector<std::size_t> by_live_bytes() const;

  Memory& memory_;
  const Sizes sizes_;
  std::vector<Segment> segments_;
  std::map<std::size_t, Block> blocks_;  // By address.
  std::set<Hole> holes_;
  std::size_t total_ = 0, live_ = 0;
  std::uint64_t moved_ = 0;
};

}  // namespace plimsoll::internal
