// Staging: host memory for bytes on their way to or from a device that the host cannot access.
#pragma once

#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

// On the first CPU device, charged to the thread's budget as workspace. Throws OutOfMemory.
StorageRef take_staging(std::size_t bytes);

}  // namespace plimsoll::internal
