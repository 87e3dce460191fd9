// ScopeNamer: how a graph that is being built names a NameScope: one that was entered before is numbered.
#pragma once

#include <string>

#include "plimsoll/base/api.h"

namespace plimsoll {
class Tracer;
}  // namespace plimsoll

namespace plimsoll::internal {

// The name that a scope which is to be called `full_name` gets in the tracer's graph.
using ScopeNamer = std::string (*)(Tracer& tracer, std::string full_name);
PLIMSOLL_API void set_scope_namer(ScopeNamer namer) noexcept;  // By the graphs, once.

}  // namespace plimsoll::internal
