#include "plimsoll/kernels/internal/loss_loops_table.h"

namespace plimsoll {

const LossLoops& loss_loops_avx2() noexcept { return kLossLoops; }

}  // namespace plimsoll
