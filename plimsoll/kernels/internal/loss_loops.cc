#include "plimsoll/kernels/internal/loss_loops.h"

namespace plimsoll {

const LossLoops& loss_loops() noexcept {
  static const LossLoops& best = has_avx512() ? loss_loops_avx512()
                                 : has_avx2() ? loss_loops_avx2()
                                              : loss_loops_baseline();
  return best;
}

}  // namespace plimsoll
