// ScopeNamer: how a graph under construction names a NameScope: one that was entered before gets a number.
#pragma once

#include <string>

#include "plimsoll/base/api.h"

namespace plimsoll {
class Tracer;
}  // namespace plimsoll

namespace plimsoll::internal {

// The name in the tracer's graph of a scope that would be called `full_name`.
using ScopeNamer = std::string (*)(Tracer& tracer, const std::string& full_name);
PLIMSOLL_API void set_scope_namer(ScopeNamer namer) noexcept;  // Called once, by the graph layer.

}  // namespace plimsoll::internal
