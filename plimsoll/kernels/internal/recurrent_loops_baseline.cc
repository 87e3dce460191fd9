#include "plimsoll/kernels/internal/recurrent_loops_table.h"

namespace plimsoll {

const RecurrentLoops& recurrent_loops_baseline() noexcept { return kRecurrentLoops; }

}  // namespace plimsoll
