// Local search on the order in which descents break ties: items at the peak are moved forward, what helps is kept.
//
//   improve_order(instance, best, order, evaluations, notify);
//
// Each evaluation is one skyline descent and counts one node per item. Deterministic for a given number of evaluations.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/plan/internal/incumbent.h"
#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

// Stops early when `best` is done. `order` lists all items; it is left as improved.
void improve_order(const Instance& instance, Incumbent& best, std::vector<int>& order, std::uint64_t evaluations,
                   const std::function<void()>& notify);

}  // namespace plimsoll::internal
