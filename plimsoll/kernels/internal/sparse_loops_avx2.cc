#include "plimsoll/kernels/internal/sparse_loops_table.h"

namespace plimsoll {

const SparseLoops& sparse_loops_avx2() noexcept { return kSparseLoops; }

}  // namespace plimsoll
