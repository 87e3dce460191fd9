// The results of steps, shared by all ranks of a job.
//
//   const auto all = exchange_results(job, own, most, blank);    // In every rank.
//   all[rank * most + i];                                        // The i-th of a rank.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/distributed/job.h"
#include "plimsoll/model/training/step.h"

namespace plimsoll::internal {

// Each rank gives at most `most`; those missing are zero. `blank` says how many losses and metrics a result has.
std::vector<StepResult> exchange_results(distributed::Job& job, const std::vector<StepResult>& own, std::size_t most,
                                         const StepResult& blank);

}  // namespace plimsoll::internal
