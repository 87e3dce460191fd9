// A network as Keras 3 describes it in config.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/model/internal/network.h"

namespace plimsoll::internal {

// {"module", "class_name", "config", ...}. Layers come in the order in which Keras will have them, which decides the
// names of their weights (stored_weights.h). Requires a network that is connected. Throws Unsupported for layers
// without a config().
nlohmann::ordered_json keras_config(const Network& network);

}  // namespace plimsoll::internal
