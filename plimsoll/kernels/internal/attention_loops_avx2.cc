#include "plimsoll/kernels/internal/attention_loops_table.h"

namespace plimsoll {

const AttentionLoops& attention_loops_avx2() noexcept { return kAttentionLoops; }

}  // namespace plimsoll
