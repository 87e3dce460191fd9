// What `plimsoll inspect` shows for a recorded trace and for a model.json: the parts of inspect() for these files.
#pragma once

#include <filesystem>

#include "plimsoll/cli/inspect.h"

namespace plimsoll::internal {

// Figures as metadata. Throws Corruption for a damaged trace; one without an end is `truncated`.
Inspection inspect_trace(const std::filesystem::path& path);

// A Layers model: its layers, and the weights in its manifest. Weight files that are missing or have another size are
// problems of their weights. Throws Corruption for text that is not such a model.
Inspection inspect_layers_model(const std::filesystem::path& path);

}  // namespace plimsoll::internal
