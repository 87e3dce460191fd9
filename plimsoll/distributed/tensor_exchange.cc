#include "plimsoll/distributed/tensor_exchange.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

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

// left += right, which parts of other dtypes before them may have moved off their alignment.
void add_unaligned(DType dtype, std::byte* left, const std::byte* right, std::size_t bytes) noexcept {
  const auto is_aligned = [&](const std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at) % size_of(dtype) == 0;
  };
  if (is_aligned(left) && is_aligned(right)) {
    binary(BinaryOp::add, dtype, {left}, {right}, left, bytes / size_of(dtype));
    return;
  }
  alignas(kAlignment) std::byte near[2][4096];
  for (std::size_t at = 0; at < bytes; at += sizeof near[0]) {
    const std::size_t some = std::min(sizeof near[0], bytes - at);
    std::memcpy(near[0], left + at, some);
    std::memcpy(near[1], right + at, some);
    binary(BinaryOp::add, dtype, {near[0]}, {near[1]}, near[0], some / size_of(dtype));
    std::memcpy(left + at, near[0], some);
  }
}

}  // namespace

FlatSpace::FlatSpace(std::vector<Part> parts, int ranks, const Options& options)
    : parts_(std::move(parts)),
      starts_(1, 0),
      groups_(1, 0),
      ranks_(static_cast<std::size_t>(ranks)),
      grain_(options.grain) {
  std::size_t group_begin = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    std::size_t end = round_up(starts_.back() + bytes_of(i), kAlignment);
    const bool is_full = options.group_bytes > 0 && end - group_begin >= options.group_bytes;
    if (is_full || (i + 1 == options.last_group) || i + 1 == parts_.size()) {
      if (i + 1 < parts_.size()) end = round_up(end, grain_);
      groups_.push_back(i + 1);
      group_begin = end;
    }
    starts_.push_back(end);
  }
}

std::size_t FlatSpace::group_of(std::size_t part) const noexcept {
  const auto after = std::upper_bound(groups_.begin(), groups_.end(), part);
  return static_cast<std::size_t>(after - groups_.begin()) - 1;
}

std::size_t FlatSpace::cut(std::size_t group, int rank) const noexcept {
  const auto number = static_cast<std::size_t>(rank);
  const std::size_t begin = starts_[groups_[group]], end = group_end(group);
  return number == ranks_ ? end : begin + (end - begin) / grain_ * number / ranks_ * grain_;
}

int FlatSpace::owner_of(std::size_t at) const noexcept {
  const std::size_t group = group_of(first_part(at));
  int rank = 0;
  while (cut(group, rank + 1) <= at) ++rank;
  return rank;
}

std::size_t FlatSpace::longest_stretch(std::size_t group) const noexcept {
  std::size_t longest = 0;
  for (int rank = 0; rank < static_cast<int>(ranks_); ++rank)
    longest = std::max(longest, cut(group, rank + 1) - cut(group, rank));
  return longest;
}

std::size_t FlatSpace::longest_stretch() const noexcept {
  std::size_t longest = 0;
  for (std::size_t group = 0; group < num_groups(); ++group) longest = std::max(longest, longest_stretch(group));
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

void add_part(const FlatSpace::Part& part, std::byte* left, const std::byte* right) noexcept {
  binary(BinaryOp::add, part.dtype, {left}, {right}, left, part.count);
}

void add_parts(const FlatSpace& space, const PartAddresses& left, const PartAddresses& right) noexcept {
  for (std::size_t i = 0; i < space.parts().size(); ++i) add_part(space.parts()[i], left[i], right[i]);
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
    add_unaligned(space_.parts()[part].dtype, left, right, bytes);
    left += bytes;
    right += bytes;
  });
}

void TensorExchange::begin_reduce(const SliceTree& tree, std::vector<PartAddresses> pieces, PartAddresses sum) {
  tree_ = tree;
  all_pieces_ = tree.pieces();
  set_pieces(std::move(pieces), std::move(sum));
  is_ready_.assign(space_.parts().size(), false);
  in_round_ = is_empty_ = false;
  early_bytes_ = 0;
  first_ = group_ = 0;
  if (job_.size() == 1) return;
  bucket_ = room_.size() / most_buckets(tree) / kAlignment * kAlignment;
  PLIMSOLL_CHECK(bucket_ > 0);
  tag_ = job_.next_tag();  // One for all rounds: they are sent in one order.
  group_ = space_.num_groups();
}

void TensorExchange::set_pieces(std::vector<PartAddresses> pieces, PartAddresses sum) {
  pieces_ = std::move(pieces);
  sum_ = std::move(sum);
}

// Of the stretch of a rank in this group, what this round is about.
TensorExchange::Range TensorExchange::range_of(int rank) const {
  const std::size_t end = space_.cut(group_ - 1, rank + 1);
  const std::size_t begin = std::min(space_.cut(group_ - 1, rank) + first_, end);
  return {begin, std::min(begin + bucket_, end)};
}

bool TensorExchange::next_round() {
  first_ += bucket_;
  if (first_ < space_.longest_stretch(group_ - 1)) return true;
  first_ = 0;
  return --group_ > 0;
}

bool TensorExchange::is_group_ready() const {
  for (std::size_t part = space_.first_part_of(group_ - 1); part < space_.first_part_of(group_); ++part)
    if (!is_ready_[part]) return false;
  return true;
}

void TensorExchange::begin_round() {
  const int me = job_.rank();
  const auto [begin, end] = range_of(me);
  const std::size_t mine = space_.bytes_in(begin, end);
  messages_.clear();
  received_.clear();
  std::byte* next = room_.data();
  const auto take = [&] { return std::exchange(next, next + bucket_); };
  std::size_t own = 0;
  for (const Piece& piece : all_pieces_) {
    received_.push_back(take());
    if (piece.rank != me && mine > 0)
      messages_.push_back(job_.receive(piece.rank, tag_, {received_.back(), mine}));
    else if (piece.rank == me && !is_empty_)
      pack(begin, end, pieces_[own++], received_.back());
  }
  const std::size_t num_own = tree_.pieces(me).size();
  for (int i = 1; i < job_.size(); ++i) {
    const int to = (me + i) % job_.size();
    const Range theirs = range_of(to);
    for (std::size_t piece = 0; piece < num_own; ++piece) {
      std::byte* const packed = take();
      const std::size_t bytes = is_empty_ ? space_.bytes_in(theirs.begin, theirs.end)
                                          : pack(theirs.begin, theirs.end, pieces_[piece], packed);
      if (bytes > 0) messages_.push_back(job_.send(to, tag_, {packed, bytes}));
    }
  }
  in_round_ = true;
}

void TensorExchange::end_round() {
  in_round_ = false;
  const auto [begin, end] = range_of(job_.rank());
  if (is_empty_ || begin == end) return;
  SliceSums<std::byte*> sums(tree_);
  const auto merge = [this, begin = begin, end = end](std::byte* left, const std::byte* right) {
    add_packed(begin, end, left, right);
  };
  for (std::size_t i = 0; i < all_pieces_.size(); ++i) sums.add(all_pieces_[i], received_[i], merge);
  PLIMSOLL_CHECK(sums.values().size() == 1);
  unpack(begin, end, sums.values()[0], sum_);
}

void TensorExchange::advance() {
  while (group_ > 0) {
    if (!in_round_) {
      if (!is_group_ready()) return;
      const std::uint64_t before = job_.traffic().sent_bytes;
      begin_round();
      early_bytes_ += job_.traffic().sent_bytes - before;
    }
    if (!job_.are_done(messages_, "reduce")) return;
    end_round();
    next_round();
  }
}

void TensorExchange::run_rounds() {
  while (group_ > 0) {
    if (!in_round_) begin_round();
    job_.wait(messages_, "reduce");
    end_round();
    next_round();
  }
}

void TensorExchange::finish_reduce() {
  run_rounds();
  if (job_.size() > 1) return;
  for (std::size_t i = 0; i < space_.parts().size(); ++i)  // All of it is one piece.
    if (sum_[i] != pieces_[0][i]) std::memcpy(sum_[i], pieces_[0][i], space_.bytes_of(i));
}

void TensorExchange::drain_reduce() {
  is_empty_ = true;
  run_rounds();
}

void TensorExchange::reduce_scatter(const SliceTree& tree, std::span<const PartAddresses> pieces,
                                    const PartAddresses& sum) {
  begin_reduce(tree, {pieces.begin(), pieces.end()}, sum);
  finish_reduce();
}

template <class F>
void TensorExchange::visit_stretches(int rank, const Range& range, std::size_t first_group, F&& f) const {
  std::size_t at = 0;
  for (std::size_t group = first_group; group < space_.num_groups() && at < range.end; ++group) {
    const std::size_t first = space_.cut(group, rank), bytes = space_.cut(group, rank + 1) - first;
    const std::size_t from = std::max(at, range.begin), to = std::min(at + bytes, range.end);
    if (from < to) f(first + (from - at), first + (to - at));
    at += bytes;
  }
}

std::size_t TensorExchange::all_stretches(int rank, std::size_t first_group) const {
  std::size_t all = 0;
  for (std::size_t group = first_group; group < space_.num_groups(); ++group)
    all += space_.cut(group, rank + 1) - space_.cut(group, rank);
  return all;
}

void TensorExchange::all_gather(const PartAddresses& values, std::size_t first_group) {
  if (job_.size() == 1) return;
  const std::size_t bucket = room_.size() / static_cast<std::size_t>(job_.size()) / kAlignment * kAlignment;
  std::size_t longest = 0;
  for (int rank = 0; rank < job_.size(); ++rank) longest = std::max(longest, all_stretches(rank, first_group));
  for (std::size_t first = 0; first < longest; first += bucket)
    gather_round(values, {first, first + bucket}, first_group);
}

void TensorExchange::gather_round(const PartAddresses& values, const Range& range, std::size_t first_group) {
  const int tag = job_.next_tag();
  const auto place_of = [&](int rank) {
    return room_.data() + static_cast<std::size_t>(rank) * (range.end - range.begin);
  };
  messages_.clear();
  for (int rank = 0; rank < job_.size(); ++rank) {
    std::byte* const place = place_of(rank);
    std::size_t bytes = 0;
    visit_stretches(rank, range, first_group, [&](std::size_t begin, std::size_t end) {
      bytes += rank == job_.rank() ? pack(begin, end, values, place + bytes) : space_.bytes_in(begin, end);
    });
    if (bytes == 0) continue;
    if (rank != job_.rank()) messages_.push_back(job_.receive(rank, tag, {place, bytes}));
    for (int i = 1; rank == job_.rank() && i < job_.size(); ++i)
      messages_.push_back(job_.send((rank + i) % job_.size(), tag, {place, bytes}));
  }
  job_.wait(messages_, "gather");
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (rank == job_.rank()) continue;
    const std::byte* from = place_of(rank);
    visit_stretches(rank, range, first_group, [&](std::size_t begin, std::size_t end) {
      unpack(begin, end, from, values);
      from += space_.bytes_in(begin, end);
    });
  }
}

}  // namespace plimsoll::distributed
