// The texts of records in a trace: "@word {json}". docs/trace_format.md lists them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

std::string budget_record(std::string_view name, std::string_view parent, std::size_t limit);

}  // namespace plimsoll::internal
