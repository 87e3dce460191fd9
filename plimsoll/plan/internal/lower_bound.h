// Lower bounds: peaks below which no plan can be.
//
//   std::size_t bytes = live_bound(instance);     // the most bytes that live at once, with unavoidable padding
//
// Cost: O(pieces + sections).
#pragma once

#include <cstddef>

#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

// Per section the sum of the live sizes, each padded to what all alignments share except the one with most padding,
// which may be on top; and no less than the largest item.
std::size_t live_bound(const Instance& instance);

}  // namespace plimsoll::internal
