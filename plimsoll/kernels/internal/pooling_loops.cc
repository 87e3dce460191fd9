#include "plimsoll/kernels/internal/pooling_loops.h"

namespace plimsoll {

const PoolingTable& pooling_loops() noexcept {
  static const PoolingTable& best = has_avx512() ? pooling_loops_avx512()
                                    : has_avx2() ? pooling_loops_avx2()
                                                 : pooling_loops_baseline();
  return best;
}

}  // namespace plimsoll
