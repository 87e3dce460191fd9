#include "plimsoll/kernels/internal/reduce_loops_table.h"

namespace plimsoll {

const ReduceLoops& reduce_loops_avx2() noexcept { return kReduceLoops; }

}  // namespace plimsoll
