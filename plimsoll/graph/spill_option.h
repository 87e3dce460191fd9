// open_spill(): opens the file for an option `spill`, for both sessions and functions.
//
//   std::optional<SpillFile> spill = open_spill("session", options.spill, options.budget.has_value());
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/memory/spill/spill_file.h"

namespace plimsoll::internal {

// Empty without a directory. Throws InvalidArgument for one without a budget, which would never be used, and what
// SpillFile throws.
std::optional<SpillFile> open_spill(std::string_view where, const std::string& directory, bool has_budget);

}  // namespace plimsoll::internal
