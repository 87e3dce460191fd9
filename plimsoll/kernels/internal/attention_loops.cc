#include "plimsoll/kernels/internal/attention_loops.h"

namespace plimsoll {

const AttentionLoops& attention_loops() noexcept {
  static const AttentionLoops& best = has_avx512() ? attention_loops_avx512()
                                      : has_avx2() ? attention_loops_avx2()
                                                   : attention_loops_baseline();
  return best;
}

}  // namespace plimsoll
