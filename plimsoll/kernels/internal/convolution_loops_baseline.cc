#include "plimsoll/kernels/internal/convolution_loops_table.h"

namespace plimsoll {

const ConvolutionTable& convolution_loops_baseline() noexcept { return kConvolutionTable; }

}  // namespace plimsoll
