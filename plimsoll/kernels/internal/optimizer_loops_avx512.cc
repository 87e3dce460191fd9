#include "plimsoll/kernels/internal/optimizer_loops_table.h"

namespace plimsoll {

const OptimizerLoops& optimizer_loops_avx512() noexcept { return kOptimizerLoops; }

}  // namespace plimsoll
