// How many processors this process may use, which may be fewer than the machine has.
//
//   set_num_threads(usable_processors());
//
// Thread safety: any thread. Cost: reads a few small files; call it once.
#pragma once

#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// The affinity mask's count, or the control group's quota rounded up when that is less (so a container limited to two
// processors of a large machine gets two threads). At least 1.
PLIMSOLL_API int usable_processors();

// Processors that a quota grants, rounded up: "200000 100000" (microseconds per period, as in cpu.max) is 2,
// "max 100000" is 0: no limit. 0 also for text that is neither.
PLIMSOLL_API int processors_of_quota(std::string_view quota);

}  // namespace plimsoll::internal
