// Lower bounds beyond the live bytes: short stretches of time around the busiest sections are searched exhaustively.
//
//   raise_bound_by_windows(instance, best);     // best.bound() may have risen
//
// A stretch holds few items, so that "no plan at the bound" is often shown in a few thousand nodes where the whole
// instance would take forever. Bounded by nodes; deterministic.
#pragma once

#include "plimsoll/plan/internal/incumbent.h"
#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

void raise_bound_by_windows(const Instance& instance, Incumbent& best);

}  // namespace plimsoll::internal
