// A separate folder for a fuzz target that reads files, and a device so small that nothing large can be allocated.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "plimsoll/device/config.h"

namespace plimsoll::internal {

inline const std::string& fuzz_folder() {
  static const std::string kPath = [] {
    config::set_logical_device_configuration(config::list_physical_devices("CPU").at(0), {{.memory_limit = 64 << 20}});
    std::string path = (std::filesystem::temp_directory_path() / "plimsoll_model_fuzz_XXXXXX").string();
    return std::string(mkdtemp(path.data()));
  }();
  return kPath;
}

// The bytes before the first zero byte; those after it become weights.bin in the folder.
inline std::string_view split_off_weights(std::string_view all) {
  const std::size_t end = std::min(all.find('\0'), all.size());
  std::ofstream(fuzz_folder() + "/weights.bin") << all.substr(std::min(end + 1, all.size()));
  return all.substr(0, end);
}

}  // namespace plimsoll::internal
