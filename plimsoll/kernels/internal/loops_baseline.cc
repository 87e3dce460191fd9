#define PLIMSOLL_LOOPS_NAME "baseline"
#include "plimsoll/kernels/internal/loops_table.h"

namespace plimsoll {

const Loops& loops_baseline() noexcept { return kLoops; }

}  // namespace plimsoll
