// skyline_descent(): places all items, always one with the lowest possible offset, ties by the order given.
//
//   std::vector<Units> offsets = skyline_descent(instance, make_order(instance, keys));   // one per item
//
// No hole that an item could fill is ever left. Cost: about O(n log n) when every item is one piece; items with gaps
// are kept in a queue and looked at again whenever something below them was placed.
#pragma once

#include <span>
#include <vector>

#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

// `order` lists all items.
std::vector<Units> skyline_descent(const Instance& instance, std::span<const int> order);

}  // namespace plimsoll::internal
