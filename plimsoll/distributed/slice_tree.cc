#include "plimsoll/distributed/slice_tree.h"

#include <algorithm>
#include <bit>

namespace plimsoll::distributed {
namespace {

struct Nothing {};
void merge_nothing(Nothing, Nothing) {}

}  // namespace

bool SliceTree::are_siblings(const Piece& left, const Piece& right) const noexcept {
  const std::size_t width = left.end - left.begin;
  return left.end == right.begin && std::has_single_bit(width) && left.begin % (2 * width) == 0 &&
         right.end == std::min(left.begin + 2 * width, slices_);
}

std::vector<Piece> SliceTree::pieces(int rank) const {
  SliceSums<Nothing> sums(*this);
  for (std::size_t slice = begin(rank); slice < end(rank); ++slice)
    sums.add({slice, slice + 1, rank}, {}, merge_nothing);
  return sums.pieces();
}

std::vector<Piece> SliceTree::pieces() const {
  std::vector<Piece> all;
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::vector<Piece> own = pieces(rank);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::vector<std::size_t> SliceTree::held(int rank) const {
  std::vector<std::size_t> counts;
  SliceSums<Nothing> sums(*this);
  for (std::size_t slice = begin(rank); slice < end(rank); ++slice) {
    counts.push_back(sums.pieces().size());
    sums.add({slice, slice + 1, rank}, {}, merge_nothing);
  }
  return counts;
}

std::size_t SliceTree::most_held(int rank) const {
  std::size_t most = 0;
  for (const std::size_t count : held(rank)) most = std::max(most, count + 1);
  return most;
}

}  // namespace plimsoll::distributed
