// Preorders: fixed rankings of the items that greedy stages, descents and searches break ties with.
//
//   std::vector<int> order = make_order(instance, {kTotal, kDuration, kArea});   // busiest section first, then longest
#pragma once

#include <array>
#include <vector>

#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

enum class Key {
  kTotal,     // Units that live in the busiest section the item takes part in.
  kDuration,  // In the caller's time.
  kArea,      // Units times time.
  kSize,
  kSections,  // Number of sections it takes part in.
  kStart,     // Earliest first.
};

using Preorder = std::array<Key, 3>;

// What ranks an item by `key`, larger first. Not for kTotal, which depends on the other items.
double item_key(const Item& item, Key key);

// All items, largest first by the keys in turn, ties by index.
std::vector<int> make_order(const Instance& instance, const Preorder& keys);

// Per item, the units that live in the busiest of its sections.
std::vector<Units> busiest_totals(const Instance& instance);

}  // namespace plimsoll::internal
