// make_directories: creates a folder and the missing ones above it.
//
//   make_directories("run/checkpoints");
#pragma once

#include <filesystem>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// Throws Error, with the path and the system's reason; NotFound when the system reports that.
PLIMSOLL_API void make_directories(const std::filesystem::path& path);

}  // namespace plimsoll::internal
