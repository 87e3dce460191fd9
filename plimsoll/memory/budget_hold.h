// BudgetHold: bytes that are charged to a budget without a block, while something is under way that is bound by it and
// whose blocks are charged to another one.
//
//   BudgetScope use(request);                  // blocks are charged to "request" and those above it
//   BudgetHold hold(session, 4_MiB);           // and as many bytes to "session", until the end of the block
//
// Budgets that are above both are charged by the blocks and not once more. Thread safety: belongs to the thread that
// made it. Cost: as charging a block.
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
  Meter* first_;  // The budget's, of this thread.
  Meter* end_;    // The first that the blocks are charged to as well; nullptr: none.
};

}  // namespace plimsoll::internal
