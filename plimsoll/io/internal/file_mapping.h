// A tensor's bytes on a private mapping of a file: no copy, nothing charged, pages read at their first use.
#pragma once

#include <cstdint>

#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

// Requires a file with a handle, and bytes inside it. Lasts as long as the storage; the file may be closed. Throws
// Error when the system refuses.
StorageRef map_file(const InputFile& file, std::uint64_t offset, std::uint64_t bytes);

}  // namespace plimsoll::internal
