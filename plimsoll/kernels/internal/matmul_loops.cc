#include "plimsoll/kernels/internal/matmul_loops.h"

namespace plimsoll {

const MatmulTable& matmul_loops() noexcept {
  static const MatmulTable& best = has_avx512() ? matmul_loops_avx512()
                                   : has_avx2() ? matmul_loops_avx2()
                                                : matmul_loops_baseline();
  return best;
}

}  // namespace plimsoll
