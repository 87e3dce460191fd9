// check_buffers(): refuses what cannot be planned, naming the buffer and the number that is wrong.
#pragma once

#include <span>

#include "plimsoll/plan/plan.h"

namespace plimsoll::internal {

// Throws InvalidArgument; afterwards lifetimes are not empty, alignments not zero, gaps apart and inside, windows
// inside, and the sum of all sizes, each padded to its alignment, fits a std::int64_t.
void check_buffers(std::span<const Buffer> buffers, const Constraints& constraints);

}  // namespace plimsoll::internal
