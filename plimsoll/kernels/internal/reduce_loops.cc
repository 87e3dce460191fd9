#include "plimsoll/kernels/internal/reduce_loops.h"

namespace plimsoll {

const ReduceLoops& reduce_loops() noexcept {
  static const ReduceLoops& best = has_avx512() ? reduce_loops_avx512()
                                   : has_avx2() ? reduce_loops_avx2()
                                                : reduce_loops_baseline();
  return best;
}

}  // namespace plimsoll
