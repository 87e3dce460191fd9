#include "plimsoll/kernels/internal/group_norm_loops.h"

namespace plimsoll {

const GroupNormLoops& group_norm_loops() noexcept {
  static const GroupNormLoops& best = has_avx512() ? group_norm_loops_avx512()
                                      : has_avx2() ? group_norm_loops_avx2()
                                                   : group_norm_loops_baseline();
  return best;
}

}  // namespace plimsoll
