// Transfers: when stores and loads of a schedule start, and how long steps wait for them.
#pragma once

#include "plimsoll/plan/internal/step_facts.h"

namespace plimsoll::internal {

// Moves stores of a completed schedule up to the value's last use and loads up as far as they fit and help, then sets
// its peak and stall_cost from a replay over one link that works in the order of the entries.
void settle_transfers(const StepFacts& facts, std::size_t limit, double bytes_per_cost, StepSchedule& schedule);

}  // namespace plimsoll::internal
