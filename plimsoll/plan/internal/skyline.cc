#include "plimsoll/plan/internal/skyline.h"

#include <algorithm>

namespace plimsoll::internal {

void Skyline::clear() {
  std::fill(heights_.begin(), heights_.end(), 0);
  std::fill(raised_.begin(), raised_.end(), 0);
  std::fill(highest_.begin(), highest_.end(), 0);
}

Units Skyline::highest(int first, int last) const {
  Units result = 0;
  while (first < last) {
    const int block = first / kBlock;
    const int end = std::min(last, (block + 1) * kBlock);
    if (end - first == kBlock) {
      result = std::max(result, highest_[block]);
    } else {
      result = std::max(result, raised_[block]);
      for (int s = first; s < end; ++s) result = std::max(result, heights_[s]);
    }
    first = end;
  }
  return result;
}

void Skyline::raise(int first, int last, Units height) {
  while (first < last) {
    const int block = first / kBlock;
    const int end = std::min(last, (block + 1) * kBlock);
    highest_[block] = std::max(highest_[block], height);
    if (end - first == kBlock)
      raised_[block] = std::max(raised_[block], height);
    else
      for (int s = first; s < end; ++s) heights_[s] = std::max(heights_[s], height);
    first = end;
  }
}

Units Skyline::lowest(const Instance& instance, const Item& item) const {
  Units offset = 0;
  for (const Piece& p : instance.pieces_of(item)) offset = std::max(offset, highest(p.first, p.last) - p.low);
  const Units past = offset % item.alignment;
  return past == 0 ? offset : offset + item.alignment - past;
}

void Skyline::place(const Instance& instance, const Item& item, Units offset) {
  for (const Piece& p : instance.pieces_of(item)) raise(p.first, p.last, offset + p.high);
}

}  // namespace plimsoll::internal
