#include "plimsoll/plan/plan.h"

#include <chrono>

#include "plimsoll/base/error.h"
#include "plimsoll/plan/internal/descent.h"
#include "plimsoll/plan/internal/greedy.h"
#include "plimsoll/plan/internal/incumbent.h"
#include "plimsoll/plan/internal/instance.h"
#include "plimsoll/plan/internal/local_search.h"
#include "plimsoll/plan/internal/portfolio.h"
#include "plimsoll/plan/internal/preorder.h"
#include "plimsoll/plan/internal/window_bound.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll::internal {
namespace {

// Entries in lists of neighbours above which greedy orders are too slow, and searches take too much memory.
constexpr std::uint64_t kMostGreedyNeighbours = 2'000'000;
constexpr std::uint64_t kMostSearchNeighbours = 8'000'000;
// Above this a search cannot hope to look at much; local search goes on instead.
constexpr std::size_t kMostSearchItems = 20'000;
constexpr std::uint64_t kLocalSearchPlacements = 20'000;  // Spent on local search before the exact stage.

constexpr Preorder kDescents[] = {
    {Key::kTotal, Key::kArea, Key::kDuration}, {Key::kArea, Key::kDuration, Key::kSize},
    {Key::kTotal, Key::kDuration, Key::kArea}, {Key::kDuration, Key::kArea, Key::kTotal},
    {Key::kSize, Key::kDuration, Key::kArea},  {Key::kDuration, Key::kSize, Key::kTotal},
};

// Returns the order of the best descent.
std::vector<int> try_descents(const Instance& instance, Incumbent& best) {
  std::vector<int> best_order;
  for (const Preorder& keys : kDescents) {
    if (best.has_plan() && best.done()) break;
    std::vector<int> order = make_order(instance, keys);
    if (best.offer(skyline_descent(instance, order))) best_order = std::move(order);
  }
  return best_order;
}

void try_greedy(const Instance& instance, Incumbent& best) {
  if (best.done() || Neighbours::count(instance) > kMostGreedyNeighbours) return;
  const Neighbours neighbours(instance);
  constexpr Preorder kOrders[] = {{Key::kSize, Key::kDuration, Key::kArea},
                                  {Key::kArea, Key::kSize, Key::kDuration},
                                  {Key::kDuration, Key::kSize, Key::kArea}};
  for (int o = 0; o < 4; ++o) {
    const std::vector<int> order = o < 3 ? make_order(instance, kOrders[o]) : breadth_order(instance);
    for (const Fit fit : {Fit::kBest, Fit::kFirst}) {
      if (best.done()) return;
      best.offer(greedy_fit(instance, neighbours, order, fit));
    }
  }
}

// Tells the observer, at most ten times a second.
class Reporter {
 public:
  Reporter(const Incumbent& best, const PlanObserver& observer) : best_(best), observer_(observer) {}

  void tell() {
    if (!observer_ || best_.seconds() < next_) return;
    next_ = best_.seconds() + 0.1;
    observer_({best_.seconds(), best_.peak(), best_.bound()});
  }

 private:
  const Incumbent& best_;
  const PlanObserver& observer_;
  double next_ = 0;
};

}  // namespace

const char* to_string(Proof proof) {
  switch (proof) {
    case Proof::kOptimal:
      return "optimal";
    case Proof::kFeasible:
      return "feasible";
    case Proof::kInfeasible:
      return "infeasible";
    case Proof::kUnknown:
      return "unknown";
  }
  return "unknown";
}

Plan plan(std::span<const Buffer> buffers, const Constraints& constraints, const Deadline& deadline,
          const PlanObserver& observer) {
  const auto start = std::chrono::steady_clock::now();
  const Instance instance = make_instance(buffers, constraints);
  Incumbent best(instance, constraints, deadline, start);
  Reporter reporter(best, observer);
  const auto notify = [&] { reporter.tell(); };
  std::vector<int> order = try_descents(instance, best);
  notify();
  try_greedy(instance, best);
  if (!best.done()) {
    const bool can_search =
        instance.items.size() <= kMostSearchItems && Neighbours::count(instance) <= kMostSearchNeighbours;
    const std::uint64_t few = kLocalSearchPlacements / instance.items.size();
    improve_order(instance, best, order, can_search ? few : std::numeric_limits<std::uint64_t>::max(), notify);
    if (can_search) raise_bound_by_windows(instance, best);
    if (can_search) search_portfolio(instance, best, notify);
  }
  Plan result = best.result();
#ifndef NDEBUG
  PLIMSOLL_CHECK(validate_plan(buffers, result.offsets, {.alignment = constraints.alignment}).empty());
#endif
  return result;
}

}  // namespace plimsoll::internal
