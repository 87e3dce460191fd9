#include "plimsoll/plan/plan.h"

#include "plimsoll/base/error.h"
#include "plimsoll/plan/internal/greedy.h"
#include "plimsoll/plan/internal/incumbent.h"
#include "plimsoll/plan/internal/instance.h"
#include "plimsoll/plan/internal/preorder.h"
#include "plimsoll/plan/internal/skyline.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll {
namespace {

using internal::Fit;
using internal::Incumbent;
using internal::Instance;
using internal::Key;
using internal::Neighbours;

// Above this the lists of neighbours take too much memory; descents do without them.
constexpr std::uint64_t kMostNeighbours = 40'000'000;

constexpr internal::Preorder kDescents[] = {
    {Key::kTotal, Key::kDuration, Key::kArea}, {Key::kTotal, Key::kArea, Key::kDuration},
    {Key::kDuration, Key::kArea, Key::kTotal}, {Key::kArea, Key::kDuration, Key::kSize},
    {Key::kSize, Key::kDuration, Key::kArea},  {Key::kDuration, Key::kSize, Key::kTotal},
};

void try_descents(const Instance& instance, Incumbent& best) {
  for (const internal::Preorder& keys : kDescents) {
    if (best.has_plan() && best.done()) return;
    best.offer(skyline_descent(instance, make_order(instance, keys)));
  }
}

void try_greedy(const Instance& instance, Incumbent& best) {
  if (best.done() || Neighbours::count(instance) > kMostNeighbours) return;
  const Neighbours neighbours(instance);
  constexpr internal::Preorder kOrders[] = {{Key::kSize, Key::kDuration, Key::kArea},
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
  const Instance instance = internal::make_instance(buffers, constraints);
  Incumbent best(instance, constraints, deadline);
  try_descents(instance, best);
  try_greedy(instance, best);
  if (observer) observer({best.seconds(), best.peak(), best.bound()});
  Plan result = best.result();
#ifndef NDEBUG
  PLIMSOLL_CHECK(validate_plan(buffers, result.offsets, {.alignment = constraints.alignment}).empty());
#endif
  return result;
}

}  // namespace plimsoll
