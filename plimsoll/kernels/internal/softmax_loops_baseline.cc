#include "plimsoll/kernels/internal/softmax_loops_table.h"

namespace plimsoll {

const SoftmaxTable& softmax_loops_baseline() noexcept { return kSoftmaxTable; }

}  // namespace plimsoll
