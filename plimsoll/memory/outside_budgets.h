// OutsideBudgets: while it lives, what this thread allocates is charged to no budget.
//
//   const OutsideBudgets free;     // To find out how much is needed.
#pragma once

#include <utility>

#include "plimsoll/memory/thread_memory.h"

namespace plimsoll::internal {

class OutsideBudgets {
 public:
  OutsideBudgets() noexcept : before_(std::exchange(ThreadMemory::current().budget, nullptr)) {}
  ~OutsideBudgets() { ThreadMemory::current().budget = before_; }
  OutsideBudgets(const OutsideBudgets&) = delete;
  OutsideBudgets& operator=(const OutsideBudgets&) = delete;

 private:
  Meter* const before_;
};

}  // namespace plimsoll::internal
