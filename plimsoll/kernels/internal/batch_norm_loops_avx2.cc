#include "plimsoll/kernels/internal/batch_norm_loops_table.h"

namespace plimsoll {

const BatchNormTable& batch_norm_loops_avx2() noexcept { return kBatchNormTable; }

}  // namespace plimsoll
