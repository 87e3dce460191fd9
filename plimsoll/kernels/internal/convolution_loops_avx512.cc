#include "plimsoll/kernels/internal/convolution_loops_table.h"

namespace plimsoll {

const ConvolutionTable& convolution_loops_avx512() noexcept { return kConvolutionTable; }

}  // namespace plimsoll
