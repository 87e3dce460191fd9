// Skyline: the height reached so far in each section, with fast maxima over ranges of sections.
//
//   Skyline skyline(sections);
//   Units at = skyline.lowest(instance, item);   // the lowest place above everything placed so far
//   skyline.place(instance, item, at);
//
// Cost: a range of k sections takes O(k / 64 + 64).
#pragma once

#include <vector>

#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

class Skyline {
 public:
  explicit Skyline(int sections) : heights_(sections, 0), raised_(blocks(sections), 0), highest_(blocks(sections), 0) {}

  void clear();

  // The lowest aligned offset at which the item lies above the skyline wherever it lives.
  Units lowest(const Instance& instance, const Item& item) const;

  // Requires offset >= lowest(item).
  void place(const Instance& instance, const Item& item, Units offset);

 private:
  static constexpr int kBlock = 64;
  static int blocks(int sections) { return sections / kBlock + 1; }
  Units highest(int first, int last) const;
  void raise(int first, int last, Units height);

  std::vector<Units> heights_;  // The height of section s is the larger of heights_[s] and raised_[s / kBlock].
  std::vector<Units> raised_;
  std::vector<Units> highest_;  // Largest height in the block.
};

}  // namespace plimsoll::internal
