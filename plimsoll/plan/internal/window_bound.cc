#include "plimsoll/plan/internal/window_bound.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/plan/internal/exact.h"

namespace plimsoll::internal {
namespace {

constexpr int kCentres = 3;
constexpr int kLargestReach = 16;        // Sections to either side of the centre.
constexpr std::uint64_t kNodes = 2'000;  // Per search.
constexpr int kMostRaises = 50;          // Per window.

// The busiest sections, no two of them close together.
std::vector<int> find_centres(const Instance& instance) {
  std::vector<Units> live(instance.sections + 1, 0);
  for (const Piece& p : instance.pieces) live[p.first] += p.high - p.low, live[p.last] -= p.high - p.low;
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::vector<int> by_load(instance.sections);
  std::iota(by_load.begin(), by_load.end(), 0);
  std::stable_sort(by_load.begin(), by_load.end(), [&](int a, int b) { return live[a] > live[b]; });
  std::vector<int> centres;
  for (const int s : by_load) {
    const auto close = [&](int centre) { return std::abs(centre - s) < kLargestReach / 2; };
    if (std::none_of(centres.begin(), centres.end(), close)) centres.push_back(s);
    if (centres.size() == kCentres) break;
  }
  return centres;
}

// Raises the bound as long as the window shows that there is no plan at it. False when its nodes ran out.
bool search_window(const Instance& instance, const Instance& window, Incumbent& best) {
  const SearchProblem problem(window);
  const StopToken stop(best.time_limit());
  for (int raises = 0; raises < kMostRaises && !best.done(); ++raises) {
    ExactSearch search(problem, {}, best.bound());
    const Outcome outcome = search.run(std::min(kNodes, best.nodes_left()), stop);
    best.spend(search.nodes());
    if (outcome != Outcome::kExhausted) return outcome == Outcome::kFound;
    best.raise_bound(next_peak_bytes(instance, best.bound()));
  }
  return true;
}

}  // namespace

void raise_bound_by_windows(const Instance& instance, Incumbent& best) {
  if (instance.has_windows) return;
  for (const int centre : find_centres(instance))
    for (int reach = 1; reach <= kLargestReach && !best.done(); reach *= 2) {
      const Instance window =
          clip(instance, std::max(0, centre - reach), std::min(instance.sections, centre + reach + 1));
      if (!search_window(instance, window, best)) break;
    }
}

}  // namespace plimsoll::internal
