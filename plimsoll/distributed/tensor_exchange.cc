#include "plimsoll/distributed/tensor_exchange.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll::distributed {
namespace {

constexpr std::size_t kAlignment = 64;

// Buckets of a round: what the rank with most pieces sends, and what it gets.
std::size_t most_buckets(const SliceTree& tree) {
  std::size_t all = 0, most = 0;
  for (int rank = 0; rank < tree.ranks(); ++rank) {
    const std::size_t own = tree.pieces(rank).size();
    all += own;
    most = std::max(most, own);
  }
  return all + most * static_cast<std::size_t>(tree.ranks() - 1);
}

}  // namespace

FlatSpace::FlatSpace(std::vector<Part> parts, int ranks, std::size_t grain)
    : parts_(std::move(parts)), starts_(1, 0), ranks_(static_cast<std::size_t>(ranks)), grain_(grain) {
  for (std::size_t i = 0; i < parts_.size(); ++i) starts_.push_back(round_up(starts_.back() + bytes_of(i), kAlignment));
}

std::size_t FlatSpace::cut(int rank) const noexcept {
  const auto number = static_cast<std::size_t>(rank);
  return number == ranks_ ? end() : end() / grain_ * number / ranks_ * grain_;
}

std::size_t FlatSpace::longest_stretch() const noexcept {
  std::size_t longest = 0;
  for (int rank = 0; rank < static_cast<int>(ranks_); ++rank) longest = std::max(longest, cut(rank + 1) - cut(rank));
  return longest;
}

std::size_t FlatSpace::first_part(std::size_t at) const noexcept {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), at);
  return static_cast<std::size_t>(after - starts_.begin()) - 1;
}

std::size_t FlatSpace::bytes_in(std::size_t begin, std::size_t end) const {
  std::size_t bytes = 0;
  visit(begin, end, [&](std::size_t, std::size_t, std::size_t size) { bytes += size; });
  return bytes;
}

void add_parts(const FlatSpace& space, const PartAddresses& left, const PartAddresses& right) noexcept {
  for (std::size_t i = 0; i < space.parts().size(); ++i)
    binary(BinaryOp::add, space.parts()[i].dtype, {left[i]}, {right[i]}, left[i], space.parts()[i].count);
}

std::size_t TensorExchange::room_bytes(const FlatSpace& space, const SliceTree& tree) {
  constexpr std::size_t kLeastBucket = 1024, kLeastShare = 8;
  if (tree.ranks() == 1) return 0;
  const std::size_t buckets = most_buckets(tree);
  const std::size_t wanted = std::max(round_up(space.end() / kLeastShare, kAlignment), buckets * kLeastBucket);
  return std::min({kMostRoom, wanted, buckets * space.longest_stretch()});
}

std::size_t TensorExchange::least_room_bytes(const SliceTree& tree) {
  return tree.ranks() == 1 ? 0 : most_buckets(tree) * kAlignment;
}

std::size_t TensorExchange::pack(std::size_t begin, std::size_t end, const PartAddresses& from, std::byte* to) const {
  std::byte* at = to;
  space_.visit(begin, end, [&](std::size_t part, std::size_t first, std::size_t bytes) {
    std::memcpy(at, from[part] + first, bytes);
    at += bytes;
  });
  return static_cast<std::size_t>(at - to);
}

void TensorExchange::unpack(std::size_t begin, std::size_t end, const std::byte* from, const PartAddresses& to) const {
  space_.visit(begin, end, [&](std::size_t part, std::size_t first, std::size_t bytes) {
    std::memcpy(to[part] + first, from, bytes);
    from += bytes;
  });
}

void TensorExchange::add_packed(std::size_t begin, std::size_t end, std::byte* left, const std::byte* right) const {
  space_.visit(begin, end, [&](std::size_t part, std::size_t, std::size_t bytes) {
    const DType dtype = space_.parts()[part].dtype;
    binary(BinaryOp::add, dtype, {left}, {right}, left, bytes / size_of(dtype));
    left += bytes;
    right += bytes;
  });
}

void TensorExchange::reduce_scatter(const SliceTree& tree, std::span<const PartAddresses> pieces,
                                    const PartAddresses& sum) {
  if (job_.size() == 1) {  // All of it is one piece.
    for (std::size_t i = 0; i < space_.parts().size(); ++i)
      if (sum[i] != pieces[0][i]) std::memcpy(sum[i], pieces[0][i], space_.bytes_of(i));
    return;
  }
  all_pieces_ = tree.pieces();
  const std::size_t bucket = room_.size() / most_buckets(tree) / kAlignment * kAlignment;
  PLIMSOLL_CHECK(bucket > 0);
  const std::size_t longest = space_.longest_stretch();
  for (std::size_t first = 0; first < longest; first += bucket) reduce_round(tree, pieces, sum, first, bucket);
}

// Of every stretch the bytes from `first` on.
void TensorExchange::reduce_round(const SliceTree& tree, std::span<const PartAddresses> pieces,
                                  const PartAddresses& sum, std::size_t first, std::size_t bucket) {
  const int me = job_.rank(), tag = job_.next_tag();
  const auto range = [&](int rank) {
    const std::size_t begin = std::min(space_.cut(rank) + first, space_.cut(rank + 1));
    return std::pair(begin, std::min(begin + bucket, space_.cut(rank + 1)));
  };
  const auto [begin, end] = range(me);
  const std::size_t mine = space_.bytes_in(begin, end);
  messages_.clear();
  std::byte* next = room_.data();
  const auto take = [&] { return std::exchange(next, next + bucket); };
  std::vector<std::byte*> received;
  std::size_t own = 0;
  for (const Piece& piece : all_pieces_) {
    received.push_back(take());
    if (piece.rank == me)
      pack(begin, end, pieces[own++], received.back());
    else if (mine > 0)
      messages_.push_back(job_.receive(piece.rank, tag, {received.back(), mine}));
  }
  for (int i = 1; i < job_.size(); ++i) {
    const int to = (me + i) % job_.size();
    const auto [theirs_begin, theirs_end] = range(to);
    for (const PartAddresses& piece : pieces) {
      std::byte* const packed = take();
      const std::size_t bytes = pack(theirs_begin, theirs_end, piece, packed);
      if (bytes > 0) messages_.push_back(job_.send(to, tag, {packed, bytes}));
    }
  }
  job_.wait(messages_, "reduce");
  if (mine == 0) return;
  SliceSums<std::byte*> sums(tree);
  for (std::size_t i = 0; i < all_pieces_.size(); ++i)
    sums.add(all_pieces_[i], received[i],
             [&](std::byte* left, const std::byte* right) { add_packed(begin, end, left, right); });
  PLIMSOLL_CHECK(sums.values().size() == 1);
  unpack(begin, end, sums.values()[0], sum);
}

void TensorExchange::all_gather(const PartAddresses& values) {
  if (job_.size() == 1) return;
  const std::size_t bucket = room_.size() / static_cast<std::size_t>(job_.size()) / kAlignment * kAlignment;
  const std::size_t longest = space_.longest_stretch();
  for (std::size_t first = 0; first < longest; first += bucket) gather_round(values, first, bucket);
}

void TensorExchange::gather_round(const PartAddresses& values, std::size_t first, std::size_t bucket) {
  const int tag = job_.next_tag();
  const auto range = [&](int rank) {
    const std::size_t begin = std::min(space_.cut(rank) + first, space_.cut(rank + 1));
    return std::pair(begin, std::min(begin + bucket, space_.cut(rank + 1)));
  };
  messages_.clear();
  for (int rank = 0; rank < job_.size(); ++rank) {
    const auto [begin, end] = range(rank);
    std::byte* const place = room_.data() + static_cast<std::size_t>(rank) * bucket;
    const std::size_t bytes = rank == job_.rank() ? pack(begin, end, values, place) : space_.bytes_in(begin, end);
    if (bytes == 0) continue;
    if (rank != job_.rank()) messages_.push_back(job_.receive(rank, tag, {place, bytes}));
    for (int i = 1; rank == job_.rank() && i < job_.size(); ++i)
      messages_.push_back(job_.send((rank + i) % job_.size(), tag, {place, bytes}));
  }
  job_.wait(messages_, "gather");
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (rank == job_.rank()) continue;
    const auto [begin, end] = range(rank);
    unpack(begin, end, room_.data() + static_cast<std::size_t>(rank) * bucket, values);
  }
}

}  // namespace plimsoll::distributed
