#include "plimsoll/kernels/internal/softmax_loops_table.h"

namespace plimsoll {

const SoftmaxTable& softmax_loops_avx2() noexcept { return kSoftmaxTable; }

}  // namespace plimsoll
