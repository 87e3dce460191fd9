// What other systems call an optimizer's slots.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/ops/optimizer.h"

namespace plimsoll::internal {

// As TF.js and Keras before 2.11 do: "mean_square" of RMSprop is "rms", "velocity" of SGD "momentum".
std::string slot_name_elsewhere(const OptimizerOptions& options, std::string_view ours);
// The other way round; a name that is not known is itself.
std::string slot_name_here(const OptimizerOptions& options, std::string_view theirs);

}  // namespace plimsoll::internal
