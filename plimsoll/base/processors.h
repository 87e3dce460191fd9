// The number of processors this process may use, which may be smaller than the machine's.
//
//   set_num_threads(usable_processors());
//
// Thread safety: any thread. Cost: reads a few small files; call it once.
#pragma once

#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// The count of the affinity mask, or the control group's quota rounded up when that is less (so a container limited to
// two processors of a large machine gets two threads). At least 1.
PLIMSOLL_API int usable_processors();

// The processors that a quota grants, rounded up: "200000 100000" (microseconds per period, as in cpu.max) is 2, "max
// 100000" is 0: no limit. Also 0 for text in any other form.
PLIMSOLL_API int processors_of_quota(std::string_view quota);

}  // namespace plimsoll::internal
