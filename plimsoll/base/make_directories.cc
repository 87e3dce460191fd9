#include "plimsoll/base/make_directories.h"

#include <system_error>

#include "plimsoll/base/system_error.h"

namespace plimsoll::internal {

void make_directories(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) throw_system_error("folder", path.string(), "make", failed.value());
}

}  // namespace plimsoll::internal
