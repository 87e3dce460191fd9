// BudgetHold: charges bytes to a budget without a block, while work that this budget limits has its blocks charged to
// another budget.
//
//   BudgetScope use(request);                  // blocks are charged to "request" and those above it
//   BudgetHold hold(session, 4_MiB);           // and as many bytes to "session", until the end of the block
//
// Budgets above both are charged by the blocks and not a second time. Thread safety: belongs to the thread that made
// it. Cost: the same as charging a block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll::internal {

class PLIMSOLL_API BudgetHold {
 public:
  // Throws OutOfMemory when a budget has less left; then nothing is charged.
  BudgetHold(const Budget& budget, std::size_t bytes);
  ~BudgetHold();
  BudgetHold(const BudgetHold&) = delete;
  BudgetHold& operator=(const BudgetHold&) = delete;

 private:
  const Budget budget_;
  const std::int64_t bytes_;
  Meter* first_;  // This thread's meter of the budget.
  Meter* end_;    // The first meter that the blocks are charged to as well; nullptr: none.
};

}  // namespace plimsoll::internal
