#include "plimsoll/memory/spill/spill_space.h"

#include <iterator>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

std::uint64_t SpillSpace::growth_for(std::uint64_t bytes) const noexcept {
  if (by_size_.lower_bound({bytes, 0}) != by_size_.end()) return 0;
  if (by_offset_.empty()) return bytes;
  const auto& [offset, hole] = *by_offset_.rbegin();
  return offset + hole == end_ ? bytes - hole : bytes;
}

void SpillSpace::grow(std::uint64_t bytes) {
  if (bytes == 0) return;
  Taken added = make(end_, bytes);
  end_ += bytes;
  add_hole(std::move(added));
}

SpillSpace::Taken SpillSpace::take(std::uint64_t bytes) {
  const auto found = by_size_.lower_bound({bytes, 0});
  PLIMSOLL_CHECK(bytes > 0 && found != by_size_.end());
  const auto [hole, offset] = *found;
  Taken taken;
  if (hole == bytes) {
    taken.offset_ = offset;
    taken.bytes_ = bytes;
    taken.by_size_ = by_size_.extract(found);
    taken.by_offset_ = by_offset_.extract(offset);
  } else {
    taken = make(offset, bytes);
    BySize::node_type rest = by_size_.extract(found);
    rest.value() = {hole - bytes, offset + bytes};
    by_size_.insert(std::move(rest));
    ByOffset::node_type moved = by_offset_.extract(offset);
    moved.key() = offset + bytes;
    moved.mapped() = hole - bytes;
    by_offset_.insert(std::move(moved));
  }
  taken_bytes_ += bytes;
  return taken;
}

void SpillSpace::give(Taken taken) noexcept {
  taken_bytes_ -= taken.bytes_;
  add_hole(std::move(taken));
}

SpillSpace::Taken SpillSpace::make(std::uint64_t offset, std::uint64_t bytes) {
  ByOffset by_offset{{offset, bytes}};
  BySize by_size{{bytes, offset}};
  Taken made;
  made.offset_ = offset;
  made.bytes_ = bytes;
  made.by_offset_ = by_offset.extract(by_offset.begin());
  made.by_size_ = by_size.extract(by_size.begin());
  return made;
}

void SpillSpace::add_hole(Taken hole) noexcept {
  std::uint64_t offset = hole.offset_, bytes = hole.bytes_;
  auto after = by_offset_.lower_bound(offset);
  if (after != by_offset_.end() && offset + bytes == after->first) {
    bytes += after->second;
    by_size_.erase({after->second, after->first});
    after = by_offset_.erase(after);
  }
  if (after != by_offset_.begin())
    if (const auto before = std::prev(after); before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      by_size_.erase({before->second, before->first});
      by_offset_.erase(before);
    }
  hole.by_offset_.key() = offset;
  hole.by_offset_.mapped() = bytes;
  by_offset_.insert(std::move(hole.by_offset_));
  hole.by_size_.value() = {bytes, offset};
  by_size_.insert(std::move(hole.by_size_));
}

}  // namespace plimsoll::internal
