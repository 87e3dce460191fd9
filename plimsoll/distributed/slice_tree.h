// SliceTree: the order in which the values of a batch's slices are added, so that the sum has the same bits for any
// number of ranks.
//
//   SliceTree tree(32, 7);                    // 32 slices over 7 ranks
//   tree.begin(1), tree.end(1);               // The slices of rank 1: 4 to 9.
//   SliceSums<Gradient> sums(tree);           // Adds as slices come, like counting in binary:
//   sums.add(tree.begin(1), gradient, merge); // merge(left, right): left += right.
//   sums.pieces();                            // What is left: 4..8 and 8..9, which no rank can add alone.
//
// There is one tree over all slices: the pair of nodes [a, a + w) and [a + w, min(a + 2 w, slices)) is added when both
// are complete, for w = 1, 2, 4, .. and a a multiple of 2 w. It does not depend on the ranks. The pieces of all ranks,
// added in the order of their slices by the same rule, give the root.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace plimsoll::distributed {

// Slices [begin, end) of the batch, and the rank that added them.
struct Piece {
  std::size_t begin = 0, end = 0;
  int rank = 0;
  bool operator==(const Piece&) const = default;
};

class SliceTree {
 public:
  // Requires at least one slice and one rank. Ranks beyond the slices have none.
  SliceTree(std::size_t slices, int ranks) : slices_(slices), ranks_(static_cast<std::size_t>(ranks)) {}

  std::size_t slices() const noexcept { return slices_; }
  int ranks() const noexcept { return static_cast<int>(ranks_); }
  std::size_t begin(int rank) const noexcept { return static_cast<std::size_t>(rank) * slices_ / ranks_; }
  std::size_t end(int rank) const noexcept { return begin(rank + 1); }

  // Whether these two neighbours are the children of one node.
  bool are_siblings(const Piece& left, const Piece& right) const noexcept;
  std::vector<Piece> pieces(int rank) const;  // What a rank's slices add up to.
  std::vector<Piece> pieces() const;          // Of all ranks, in the order of their slices.
  // The number of complete values a rank holds while it computes its slice number i, without that of the slice.
  std::vector<std::size_t> held(int rank) const;
  std::size_t most_held(int rank) const;  // With that one: at most floor(log2(slices of the rank)) + 1 when they begin
                                          // at a multiple of a power of two that is at least as many.

 private:
  std::size_t slices_, ranks_;
};

// The sums of neighbouring slices. Values are moved.
template <class Value>
class SliceSums {
 public:
  explicit SliceSums(const SliceTree& tree) : tree_(tree) {}
  // The next piece, which begins where the last one ended. `merge(left, right)` adds right to left.
  template <class Merge>
  void add(const Piece& piece, Value value, Merge&& merge) {
    pieces_.push_back(piece);
    values_.push_back(std::move(value));
    while (pieces_.size() > 1 && tree_.are_siblings(pieces_[pieces_.size() - 2], pieces_.back())) {
      merge(values_[values_.size() - 2], values_.back());
      pieces_[pieces_.size() - 2].end = pieces_.back().end;
      pieces_.pop_back();
      values_.pop_back();
    }
  }
  const std::vector<Piece>& pieces() const noexcept { return pieces_; }
  std::vector<Value>& values() noexcept { return values_; }
  void reserve(std::size_t count) {
    pieces_.reserve(count);
    values_.reserve(count);
  }
  void clear() noexcept {
    pieces_.clear();
    values_.clear();
  }

 private:
  SliceTree tree_;
  std::vector<Piece> pieces_;
  std::vector<Value> values_;
};

}  // namespace plimsoll::distributed
