// TensorExchange: adds lists of tensors over the processes of a job, in the order of a SliceTree, through buckets of
// bounded size; and gathers the parts that each process has.
//
//   const FlatSpace space({{f32, 784 * 100}, {f32, 100}}, job.size());    // The tensors as one row, cut for the ranks.
//   TensorExchange exchange(job, space, buckets);                         // room_bytes() of memory.
//   exchange.begin_reduce(tree, {first_piece, second_piece}, sum);
//   exchange.set_ready(1); exchange.advance();                            // While the others are still computed:
//   exchange.finish_reduce();                                             // sum: my stretches of the sum of all
//   pieces. exchange.all_gather(sum);                                             // Now all of it.
//
// Each element's sum is made by one rank, from the pieces of all, added as the tree says: the bits do not depend on the
// number of ranks. Volume: where every rank has one piece, a rank sends (n-1)/n of all bytes for each of the two parts.
// They throw Unavailable. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/distributed/job.h"
#include "plimsoll/distributed/slice_tree.h"

namespace plimsoll::distributed {

// Tensors after one another, each from a multiple of 64 bytes on. Neighbours form groups, and each group is cut for the
// ranks: into stretches that are about equal, at multiples of 64 bytes or more. A group is what is reduced at once.
class PLIMSOLL_API FlatSpace {
 public:
  struct Part {
    DType dtype;
    std::size_t count;  // Of elements.
  };
  struct Options {
    std::size_t grain = 64;       // Groups begin, and stretches are cut, at its multiples; a multiple of 64 itself.
    std::size_t group_bytes = 0;  // A group ends with the part that reaches so many. 0: one group of all.
    std::size_t last_group = 0;   // This part and those after it are no group with those before. 0: they may be.
  };
  FlatSpace(std::vector<Part> parts, int ranks) : FlatSpace(std::move(parts), ranks, Options()) {}
  FlatSpace(std::vector<Part> parts, int ranks, const Options& options);

  const std::vector<Part>& parts() const noexcept { return parts_; }
  std::size_t bytes_of(std::size_t part) const noexcept { return parts_[part].count * size_of(parts_[part].dtype); }
  std::size_t end() const noexcept { return starts_.back(); }
  std::size_t grain() const noexcept { return grain_; }
  std::size_t num_groups() const noexcept { return groups_.size() - 1; }
  std::size_t group_of(std::size_t part) const noexcept;
  std::size_t first_part_of(std::size_t group) const noexcept { return groups_[group]; }
  // Where a rank's stretch of a group begins, and the one before ends.
  std::size_t cut(std::size_t group, int rank) const noexcept;
  int owner_of(std::size_t at) const noexcept;   // The rank whose stretch it is in.
  std::size_t longest_stretch() const noexcept;  // Of all groups.
  std::size_t longest_stretch(std::size_t group) const noexcept;
  // Calls f(part, first byte in it, bytes) for what lies in [begin, end).
  template <class F>
  void visit(std::size_t begin, std::size_t end, F&& f) const {
    for (std::size_t part = first_part(begin); part < parts_.size() && starts_[part] < end; ++part) {
      const std::size_t first = begin > starts_[part] ? begin - starts_[part] : 0;
      const std::size_t last = end - starts_[part] < bytes_of(part) ? end - starts_[part] : bytes_of(part);
      if (first < last) f(part, first, last - first);
    }
  }
  // The same for all stretches of a rank: at most one piece of each part.
  template <class F>
  void visit_own(int rank, F&& f) const {
    for (std::size_t group = 0; group < num_groups(); ++group) visit(cut(group, rank), cut(group, rank + 1), f);
  }
  std::size_t bytes_in(std::size_t begin, std::size_t end) const;

 private:
  std::size_t first_part(std::size_t at) const noexcept;
  std::size_t group_end(std::size_t group) const noexcept { return starts_[groups_[group + 1]]; }

  std::vector<Part> parts_;
  std::vector<std::size_t> starts_;  // Of each part, then the end.
  std::vector<std::size_t> groups_;  // Their first parts, then the number of parts.
  std::size_t ranks_, grain_;
};

// Where the bytes of each part are.
using PartAddresses = std::vector<std::byte*>;

// left += right, of one part, and part by part.
PLIMSOLL_API void add_part(const FlatSpace::Part& part, std::byte* left, const std::byte* right) noexcept;
PLIMSOLL_API void add_parts(const FlatSpace& space, const PartAddresses& left, const PartAddresses& right) noexcept;

class PLIMSOLL_API TensorExchange {
 public:
  static constexpr std::size_t kMostRoom = std::size_t{4} << 20;
  // The memory of buckets for this tree: an eighth of all bytes, at most kMostRoom and what is sent at once; none for
  // one rank.
  static std::size_t room_bytes(const FlatSpace& space, const SliceTree& tree);
  // Groups for such tensors: eight or more, so that the first is sent long before the last is computed.
  static std::size_t group_bytes(const FlatSpace& space) noexcept { return space.end() / 8; }
  static std::size_t least_room_bytes(const SliceTree& tree);  // With less it cannot work.

  // Borrows `room`, which is aligned to 64 bytes.
  TensorExchange(Job& job, const FlatSpace& space, std::span<std::byte> room) : job_(job), space_(space), room_(room) {}

  // `pieces`: this rank's, as tree.pieces(rank) lists them; `sum` may be the first of them. Only this rank's stretches
  // of it are written. What is in the pieces stays, but for that. Every rank begins with the same tree.
  void begin_reduce(const SliceTree& tree, std::vector<PartAddresses> pieces, PartAddresses sum);
  // Other addresses of what has not been sent yet.
  void set_pieces(std::vector<PartAddresses> pieces, PartAddresses sum);
  // This rank's pieces have their values of this part, and nobody reads `sum` there any more.
  void set_ready(std::size_t part) noexcept { is_ready_[part] = true; }
  // Sends and receives what it can without waiting: groups from the last one to the first, each when all of its parts
  // are ready.
  void advance();
  void finish_reduce();  // All of it; parts that are not ready are taken as they are.
  // The messages of what is left, with nothing in them: where one rank has failed, so that none is left over.
  void drain_reduce();
  void reduce_scatter(const SliceTree& tree, std::span<const PartAddresses> pieces, const PartAddresses& sum);
  // Sends this rank's stretches of `values` to all and gets theirs, of this group and those after it.
  void all_gather(const PartAddresses& values, std::size_t first_group = 0);
  bool is_reducing() const noexcept { return group_ > 0; }
  std::uint64_t early_bytes() const noexcept { return early_bytes_; }  // That advance() has sent.

 private:
  std::size_t pack(std::size_t begin, std::size_t end, const PartAddresses& from, std::byte* to) const;
  void unpack(std::size_t begin, std::size_t end, const std::byte* from, const PartAddresses& to) const;
  void add_packed(std::size_t begin, std::size_t end, std::byte* left, const std::byte* right) const;
  struct Range {
    std::size_t begin, end;
  };
  Range range_of(int rank) const;  // Of the round that is under way, or the next.
  bool next_round();               // To the next one; false when there is none.
  bool is_group_ready() const;
  void begin_round();
  void end_round();
  void run_rounds();
  // Of a rank's stretches of this group and those after it, one after the other, those bytes.
  template <class F>
  void visit_stretches(int rank, const Range& range, std::size_t first_group, F&& f) const;
  std::size_t all_stretches(int rank, std::size_t first_group) const;
  void gather_round(const PartAddresses& values, const Range& range, std::size_t first_group);

  Job& job_;
  const FlatSpace& space_;
  const std::span<std::byte> room_;
  std::vector<Job::Message> messages_;

  // Of the reduction under way.
  SliceTree tree_{1, 1};
  std::vector<Piece> all_pieces_;
  std::vector<PartAddresses> pieces_;
  PartAddresses sum_;
  std::vector<bool> is_ready_;        // By part.
  std::vector<std::byte*> received_;  // By piece of all ranks: where it is in the room.
  std::size_t group_ = 0,
              first_ = 0;  // Groups that are left; bytes of the stretches of the last of them that are done.
  std::size_t bucket_ = 0;
  std::uint64_t early_bytes_ = 0;
  int tag_ = 0;
  bool in_round_ = false, is_empty_ = false;
};

}  // namespace plimsoll::distributed
