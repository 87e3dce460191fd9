#include "plimsoll/kernels/internal/optimizer_loops_table.h"

namespace plimsoll {

const OptimizerLoops& optimizer_loops_avx2() noexcept { return kOptimizerLoops; }

}  // namespace plimsoll
