#include "plimsoll/kernels/internal/layer_norm_loops_table.h"

namespace plimsoll {

const LayerNormLoops& layer_norm_loops_avx2() noexcept { return kLayerNormLoops; }

}  // namespace plimsoll
