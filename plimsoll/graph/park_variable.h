// park_variable(): moves the bytes of a variable to a spill file until its next use.
//
//   park_variable(weights, file);      // false: something else holds its bytes, or it is small; it stays in memory
//
// Reading it brings the bytes back (tensor/parked.h). Thread safety: any thread.
#pragma once

#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/ops/variable.h"

namespace plimsoll::internal {

// True when its bytes are not in memory afterwards. Throws what SpillFile throws; it then stays where it was.
bool park_variable(const Variable& variable, SpillFile& file);
// Brings the bytes back, if they are parked, and frees the space in the file. Throws OutOfMemory, Error and Corruption;
// it then stays parked.
void unpark_variable(const Variable& variable);

}  // namespace plimsoll::internal
