#include "plimsoll/kernels/internal/convolution_loops.h"

namespace plimsoll {

const ConvolutionTable& convolution_loops() noexcept {
  static const ConvolutionTable& best = has_avx512() ? convolution_loops_avx512()
                                        : has_avx2() ? convolution_loops_avx2()
                                                     : convolution_loops_baseline();
  return best;
}

}  // namespace plimsoll
