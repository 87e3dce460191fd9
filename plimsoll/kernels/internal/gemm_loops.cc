#include "plimsoll/kernels/internal/gemm_loops.h"

namespace plimsoll {

const GemmTable& gemm_loops() noexcept {
  static const GemmTable& best = has_avx512() ? gemm_loops_avx512()
                                 : has_avx2() ? gemm_loops_avx2()
                                              : gemm_loops_baseline();
  return best;
}

}  // namespace plimsoll
