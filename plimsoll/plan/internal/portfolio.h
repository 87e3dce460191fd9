// The exact stage: many short searches, of different strategies and capacities, on all threads.
//
//   search_portfolio(instance, best, notify);      // until `best` is settled or out of nodes or time
//
// Searches come in rounds of fixed size. The outcome of a round is that of its first search, by number, that found a
// plan; only later ones are cut short. So the result depends on the node budget but neither on the threads nor on their
// speed.
#pragma once

#include <functional>

#include "plimsoll/plan/internal/incumbent.h"
#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

void search_portfolio(const Instance& instance, Incumbent& best, const std::function<void()>& notify);

}  // namespace plimsoll::internal
