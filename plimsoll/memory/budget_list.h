// All budgets of the process, as numbers: for views that show them while the program runs.
//
//   for (const BudgetFigures& budget : list_budgets()) std::cout << budget.name << ' ' << budget.used << '\n';
//
// Thread safety: any thread. Cost: a few microseconds per budget, under the lock that creating one takes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll::internal {

struct BudgetFigures {
  std::string name;
  std::ptrdiff_t parent = -1;  // Its index in the list; -1 for none.
  std::size_t limit = 0, used = 0, peak = 0;
};

std::vector<BudgetFigures> list_budgets();

}  // namespace plimsoll::internal
