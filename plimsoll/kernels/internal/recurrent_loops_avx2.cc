#include "plimsoll/kernels/internal/recurrent_loops_table.h"

namespace plimsoll {

const RecurrentLoops& recurrent_loops_avx2() noexcept { return kRecurrentLoops; }

}  // namespace plimsoll
