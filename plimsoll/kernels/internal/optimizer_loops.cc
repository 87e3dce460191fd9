#include "plimsoll/kernels/internal/optimizer_loops.h"

namespace plimsoll {

const OptimizerLoops& optimizer_loops() noexcept {
  static const OptimizerLoops& best = has_avx512() ? optimizer_loops_avx512()
                                      : has_avx2() ? optimizer_loops_avx2()
                                                   : optimizer_loops_baseline();
  return best;
}

}  // namespace plimsoll
