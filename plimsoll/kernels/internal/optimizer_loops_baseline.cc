#include "plimsoll/kernels/internal/optimizer_loops_table.h"

namespace plimsoll {

const OptimizerLoops& optimizer_loops_baseline() noexcept { return kOptimizerLoops; }

}  // namespace plimsoll
