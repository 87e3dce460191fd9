#include "plimsoll/kernels/internal/batch_norm_loops.h"

namespace plimsoll {

const BatchNormTable& batch_norm_loops() noexcept {
  static const BatchNormTable& best = has_avx512() ? batch_norm_loops_avx512()
                                      : has_avx2() ? batch_norm_loops_avx2()
                                                   : batch_norm_loops_baseline();
  return best;
}

}  // namespace plimsoll
