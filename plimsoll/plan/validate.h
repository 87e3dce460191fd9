// validate_plan(): an independent check of a plan, by sweeping through time. Shares no code with the planner.
//
//   std::string fault = validate_plan(buffers, plan.offsets);   // "" when the plan is right
//
// Cost: O((n + gaps) log n). Thread safety: a pure function.
#pragma once

#include <span>
#include <string>

#include "plimsoll/plan/plan.h"

namespace plimsoll::internal {

// The first fault found, in words: a misaligned buffer, a buffer past the capacity, two buffers that share bytes at the
// same time without being of one alias set, members of an alias set that lie apart. "" when there is none.
PLIMSOLL_API std::string validate_plan(std::span<const Buffer> buffers, std::span<const std::size_t> offsets,
                                       const Constraints& constraints = {});

}  // namespace plimsoll::internal
