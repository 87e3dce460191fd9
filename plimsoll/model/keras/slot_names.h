// The names of an optimizer's slots in other systems.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/ops/optimizer.h"

namespace plimsoll::internal {

// In TF.js and Keras before 2.11: "mean_square" of RMSprop is "rms", "velocity" of SGD "momentum".
std::string slot_name_elsewhere(const OptimizerOptions& options, std::string_view ours);
// The reverse; an unknown name stays as it is.
std::string slot_name_here(const OptimizerOptions& options, std::string_view theirs);

}  // namespace plimsoll::internal
