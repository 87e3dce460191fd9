#include "plimsoll/kernels/internal/group_norm_loops_table.h"

namespace plimsoll {

const GroupNormLoops& group_norm_loops_avx512() noexcept { return kGroupNormLoops; }

}  // namespace plimsoll
