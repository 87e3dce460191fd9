#include "plimsoll/plan/internal/search_problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "plimsoll/plan/internal/greedy.h"

namespace plimsoll::internal {
namespace {

Units distance(const Instance& instance, const Item& below, const Item& above) {
  if (instance.is_simple) return below.size;
  Units result = std::numeric_limits<Units>::min();
  const auto lower = instance.pieces_of(below), upper = instance.pieces_of(above);
  for (std::size_t l = 0, u = 0; l < lower.size() && u < upper.size();) {
    if (std::max(lower[l].first, upper[u].first) < std::min(lower[l].last, upper[u].last))
      result = std::max(result, lower[l].high - upper[u].low);
    lower[l].last < upper[u].last ? ++l : ++u;
  }
  return result;
}

}  // namespace

SearchProblem::SearchProblem(const Instance& instance) : instance_(instance) {
  for (const Item& item : instance.items) sizes_.push_back(item.size);
  section_begin_.assign(instance.sections + 1, 0);
  for (const Piece& p : instance.pieces)
    for (int s = p.first; s < p.last; ++s) ++section_begin_[s + 1];
  std::partial_sum(section_begin_.begin(), section_begin_.end(), section_begin_.begin());
  in_section_.resize(section_begin_.back());
  std::vector<std::size_t> next(section_begin_.begin(), section_begin_.end() - 1);
  for (int i = 0; i < items(); ++i)
    for (const Piece& p : instance.pieces_of(instance.items[i]))
      for (int s = p.first; s < p.last; ++s) in_section_[next[s]++] = i;
  find_neighbours();
  find_twins();
}

void SearchProblem::find_neighbours() {
  const Neighbours lists(instance_);
  neighbours_begin_.push_back(0);
  for (int i = 0; i < items(); ++i) {
    for (const int other : lists.of(i)) {
      const Units lift = distance(instance_, instance_.items[other], instance_.items[i]);
      neighbours_.push_back({other, distance(instance_, instance_.items[i], instance_.items[other]), lift});
    }
    std::sort(
        neighbours_.begin() + static_cast<std::ptrdiff_t>(neighbours_begin_.back()), neighbours_.end(),
        [](const Neighbour& a, const Neighbour& b) { return a.lift != b.lift ? a.lift < b.lift : a.item < b.item; });
    neighbours_begin_.push_back(neighbours_.size());
  }
}

void SearchProblem::find_twins() {
  twins_.assign(items(), -1);
  std::map<std::tuple<int, int, Units, Units, std::size_t>, int> seen;
  for (int i = 0; i < items(); ++i) {
    const Item& item = instance_.items[i];
    const auto pieces = instance_.pieces_of(item);
    if (pieces.size() != 1 || pieces[0].low != 0 || pieces[0].high != item.size) continue;
    const auto [found, is_new] =
        seen.emplace(std::tuple(item.first, item.last, item.size, item.alignment, item.bytes), i);
    if (is_new) continue;
    twins_[i] = found->second;
    found->second = i;
  }
}

}  // namespace plimsoll::internal
