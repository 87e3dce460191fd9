#include "plimsoll/kernels/internal/gemm_loops_table.h"

namespace plimsoll {

const GemmTable& gemm_loops_avx2() noexcept { return kGemmTable; }

}  // namespace plimsoll
