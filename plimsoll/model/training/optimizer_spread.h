// OptimizerSpread: an optimizer's state that is distributed over the processes of a job, and how it is gathered for
// files.
//
//   if (network.training.spread) slots = network.training.spread->whole_slots(optimizer, parameter);   // In every
//   rank.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/distributed/job.h"
#include "plimsoll/distributed/tensor_exchange.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll::internal {

struct OptimizerSpread {
  distributed::Job& job;
  distributed::FlatSpace space;      // Cut for the ranks;
  std::vector<Variable> parameters;  // its first parts are these.

  // As Optimizer::slots(), for the first rank; the others send what they have and get nothing. Throws Unavailable, also
  // when not all ranks call it.
  std::vector<Optimizer::Slot> whole_slots(const Optimizer& optimizer, const Variable& parameter) const;
};

}  // namespace plimsoll::internal
