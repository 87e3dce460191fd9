#define PLIMSOLL_LOOPS_NAME "avx512"
#include "plimsoll/kernels/internal/loops_table.h"

namespace plimsoll {

const Loops& loops_avx512() noexcept { return kLoops; }

}  // namespace plimsoll
