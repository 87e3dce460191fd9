#include "plimsoll/kernels/internal/sparse_loops_table.h"

namespace plimsoll {

const SparseLoops& sparse_loops_baseline() noexcept { return kSparseLoops; }

}  // namespace plimsoll
