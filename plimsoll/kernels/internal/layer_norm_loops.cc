#include "plimsoll/kernels/internal/layer_norm_loops.h"

namespace plimsoll {

const LayerNormLoops& layer_norm_loops() noexcept {
  static const LayerNormLoops& best = has_avx512() ? layer_norm_loops_avx512()
                                      : has_avx2() ? layer_norm_loops_avx2()
                                                   : layer_norm_loops_baseline();
  return best;
}

}  // namespace plimsoll
