#include "plimsoll/kernels/internal/attention_loops_table.h"

namespace plimsoll {

const AttentionLoops& attention_loops_avx512() noexcept { return kAttentionLoops; }

}  // namespace plimsoll
