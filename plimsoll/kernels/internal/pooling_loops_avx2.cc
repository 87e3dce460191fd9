#include "plimsoll/kernels/internal/pooling_loops_table.h"

namespace plimsoll {

const PoolingTable& pooling_loops_avx2() noexcept { return kPoolingTable; }

}  // namespace plimsoll
