#include "plimsoll/kernels/internal/recurrent_loops.h"

namespace plimsoll {

const RecurrentLoops& recurrent_loops() noexcept {
  static const RecurrentLoops& best = has_avx512() ? recurrent_loops_avx512()
                                      : has_avx2() ? recurrent_loops_avx2()
                                                   : recurrent_loops_baseline();
  return best;
}

}  // namespace plimsoll
