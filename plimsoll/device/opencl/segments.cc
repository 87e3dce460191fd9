#include "plimsoll/device/opencl/segments.h"

#include <algorithm>
#include <exception>
#include <iterator>

namespace plimsoll::internal {

void Segments::add_hole(std::size_t segment, std::size_t offset, std::size_t bytes) {
  if (bytes > 0) holes_.insert({bytes, segment, offset});
}

// Into a hole that begins there.
void Segments::put(std::size_t address, Place place, std::size_t bytes) {
  Segment& segment = segments_[place.segment];
  const auto next = segment.blocks.lower_bound(place.offset);
  const std::size_t end = next == segment.blocks.end() ? segment.bytes : next->first;
  segment.blocks.emplace_hint(next, place.offset, address);
  blocks_[address] = {place, bytes};
  holes_.erase({end - place.offset, place.segment, place.offset});
  add_hole(place.segment, place.offset + bytes, end - place.offset - bytes);
  segment.live += bytes;
  live_ += bytes;
}

// The hole that is left merges with those around it.
void Segments::take_out(std::size_t address, const Block& block) {
  const auto [place, bytes] = block;
  Segment& segment = segments_[place.segment];
  const auto at = segment.blocks.find(place.offset);
  const auto next = std::next(at);
  std::size_t begin = 0;
  if (at != segment.blocks.begin()) {
    const auto before = std::prev(at);
    begin = before->first + blocks_.at(before->second).bytes;
  }
  const std::size_t end = next == segment.blocks.end() ? segment.bytes : next->first;
  holes_.erase({place.offset - begin, place.segment, begin});
  holes_.erase({end - place.offset - bytes, place.segment, place.offset + bytes});
  add_hole(place.segment, begin, end - begin);
  segment.blocks.erase(at);
  segment.live -= bytes;
  live_ -= bytes;
  blocks_.erase(address);
}

bool Segments::try_place(std::size_t address, std::size_t bytes) {
  const auto hole = holes_.lower_bound({bytes, 0, 0});
  if (hole == holes_.end()) return false;
  put(address, {std::get<1>(*hole), std::get<2>(*hole)}, bytes);
  return true;
}

// A segment for so many bytes at least: of the usual size, or of what is left of the limit.
bool Segments::grow(std::size_t bytes) {
  const std::size_t left = sizes_.limit - std::min(sizes_.limit, total_);
  const std::size_t size = std::min({std::max(sizes_.segment_bytes, bytes), left, sizes_.most_bytes});
  if (size < bytes) return false;
  const auto unused = std::find_if(segments_.begin(), segments_.end(), [](const Segment& s) { return s.bytes == 0; });
  const auto number = static_cast<std::size_t>(unused - segments_.begin());
  if (unused == segments_.end()) segments_.emplace_back();
  if (!memory_.make_segment(number, size)) return false;
  segments_[number].bytes = size;
  total_ += size;
  add_hole(number, 0, size);
  return true;
}

bool Segments::place(std::size_t address, std::size_t bytes) noexcept {
  try {
    return try_place(address, bytes) || (grow(bytes) && try_place(address, bytes)) || make_room(address, bytes);
  } catch (const std::exception&) {  // No memory for the records.
    return false;
  }
}

void Segments::remove(std::size_t address) noexcept {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  try {
    take_out(address, Block(found->second));
    if (sizes_.segment_bytes == 0) give_empty();
  } catch (const std::exception&) {  // Its place is not used again until its segment is empty.
  }
}

bool Segments::find(std::size_t address, Place& place) const noexcept {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return false;
  --found;
  if (address > found->first + found->second.bytes) return false;
  place = {found->second.place.segment, found->second.place.offset + (address - found->first)};
  return true;
}

void Segments::give_empty() noexcept {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    if (segment.bytes == 0 || !segment.blocks.empty()) continue;
    holes_.erase({segment.bytes, i, 0});
    memory_.drop_segment(i);
    total_ -= segment.bytes;
    segment = {};
  }
}

// The rungs before refusing: return empty segments, move blocks together in each segment, then empty one after the
// other, beginning with those that hold least.
bool Segments::make_room(std::size_t address, std::size_t bytes) {
  const auto again = [&] {
    if (try_place(address, bytes)) return true;
    give_empty();
    return grow(bytes) && try_place(address, bytes);
  };
  if (bytes > sizes_.limit - std::min(sizes_.limit, live_)) return false;
  if (again()) return true;
  for (std::size_t i = 0; i < segments_.size(); ++i) slide(i);
  if (again()) return true;
  for (const std::size_t segment : by_live_bytes())
    if (evacuate(segment) && again()) return true;
  return false;
}

std::vector<std::size_t> Segments::by_live_bytes() const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < segments_.size(); ++i)
    if (segments_[i].live > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(segments_[a].live, a) < std::pair(segments_[b].live, b);
  });
  return order;
}

// Moves a segment's blocks to its start: one hole is left, at its end.
void Segments::slide(std::size_t number) {
  const Segment before = segments_[number];
  std::size_t to = 0;
  for (const auto& [offset, address] : before.blocks) {
    const std::size_t bytes = blocks_.at(address).bytes;
    if (offset > to) {
      move_down({number, to}, {number, offset}, bytes);
      take_out(address, Block(blocks_.at(address)));
      put(address, {number, to}, bytes);
    }
    to += bytes;
  }
}

// Within a segment, where both may overlap: in pieces, through the largest hole of another segment when that is larger
// than the way they go.
void Segments::move_down(Place to, Place from, std::size_t bytes) {
  moved_ += bytes;
  const std::size_t way = from.offset - to.offset;
  if (way >= bytes) return memory_.copy(to, from, bytes);
  Place between;
  std::size_t piece = way;
  for (auto hole = holes_.rbegin(); hole != holes_.rend() && std::get<0>(*hole) > piece; ++hole) {
    if (std::get<1>(*hole) == to.segment) continue;
    piece = std::get<0>(*hole);
    between = {std::get<1>(*hole), std::get<2>(*hole)};
  }
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t count = std::min(piece, bytes - done);
    const Place there = {to.segment, to.offset + done}, here = {from.segment, from.offset + done};
    if (piece == way) {
      memory_.copy(there, here, count);
    } else {
      memory_.copy(between, here, count);
      memory_.copy(there, between, count);
    }
  }
}

// Moves what it can to holes of other segments. True when something changed.
bool Segments::evacuate(std::size_t number) {
  const Segment before = segments_[number];
  bool any = false;
  for (const auto& [offset, address] : before.blocks) {
    const Block block = blocks_.at(address);
    auto hole = holes_.lower_bound({block.bytes, 0, 0});
    while (hole != holes_.end() && std::get<1>(*hole) == number) ++hole;
    if (hole == holes_.end()) continue;
    const Place to = {std::get<1>(*hole), std::get<2>(*hole)};
    memory_.copy(to, block.place, block.bytes);
    moved_ += block.bytes;
    take_out(address, block);
    put(address, to, block.bytes);
    any = true;
  }
  if (any) slide(number);
  return any;
}

}  // namespace plimsoll::internal
