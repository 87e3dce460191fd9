// The control groups that limit this process's memory, version 1 and 2. See system_memory.h.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll::internal {

// The limited groups among this process's group and its visible parents, innermost first. A container often sees its
// own group as the top of the tree: what is mounted decides, not the path's text.
std::vector<MemoryGroup> read_memory_groups(const std::string& root);

}  // namespace plimsoll::internal
