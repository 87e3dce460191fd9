// Describes a network in the format of Keras 3's config.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/model/internal/network.h"

namespace plimsoll::internal {

// {"module", "class_name", "config", ...}. Layers are in the order in which Keras will have them, which determines the
// names of their weights (stored_weights.h). Requires a connected network. Throws Unsupported for layers without a
// config().
nlohmann::ordered_json keras_config(const Network& network);

}  // namespace plimsoll::internal
