#include "plimsoll/kernels/internal/reduce_loops_table.h"

namespace plimsoll {

const ReduceLoops& reduce_loops_baseline() noexcept { return kReduceLoops; }

}  // namespace plimsoll
