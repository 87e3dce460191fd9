#include "plimsoll/kernels/internal/sparse_loops.h"

namespace plimsoll {

const SparseLoops& sparse_loops() noexcept {
  static const SparseLoops& best = has_avx512() ? sparse_loops_avx512()
                                   : has_avx2() ? sparse_loops_avx2()
                                                : sparse_loops_baseline();
  return best;
}

}  // namespace plimsoll
