#include "plimsoll/kernels/internal/layer_norm_loops_table.h"

namespace plimsoll {

const LayerNormLoops& layer_norm_loops_baseline() noexcept { return kLayerNormLoops; }

}  // namespace plimsoll
