// park_variable(): moves the bytes of a variable to a spill file, until it is next used.
//
//   park_variable(weights, file);      // false: somebody else has its bytes, or it is small; it stays in memory
//
// Reading it brings the bytes back (tensor/parked.h). Thread safety: any thread.
#pragma once

#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/ops/variable.h"

namespace plimsoll::internal {

// True when its bytes are not in memory afterwards. Throws what SpillFile throws; then it is where it was.
bool park_variable(const Variable& variable, SpillFile& file);
// Brings the bytes back, if they are parked, and gives the room in the file back. Throws OutOfMemory, Error and
// Corruption; then it is parked as before.
void unpark_variable(const Variable& variable);

}  // namespace plimsoll::internal
