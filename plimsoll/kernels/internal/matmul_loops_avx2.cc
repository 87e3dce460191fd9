#include "plimsoll/kernels/internal/matmul_loops_table.h"

namespace plimsoll {

const MatmulTable& matmul_loops_avx2() noexcept { return kMatmulTable; }

}  // namespace plimsoll
