#define PLIMSOLL_LOOPS_NAME "avx2"
#include "plimsoll/kernels/internal/loops_table.h"

namespace plimsoll {

const Loops& loops_avx2() noexcept { return kLoops; }

}  // namespace plimsoll
