#include "plimsoll/kernels/internal/attention_loops_table.h"

namespace plimsoll {

const AttentionLoops& attention_loops_baseline() noexcept { return kAttentionLoops; }

}  // namespace plimsoll
