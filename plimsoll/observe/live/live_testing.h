// OwnRuntimeFolder: an XDG_RUNTIME_DIR of the test's own, while it lives.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace plimsoll {

class OwnRuntimeFolder {
 public:
  OwnRuntimeFolder() {
    std::string name = std::filesystem::temp_directory_path() / "plimsoll_live_XXXXXX";
    path_ = mkdtemp(name.data());
    if (const char* const before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
    setenv("XDG_RUNTIME_DIR", path_.c_str(), 1);
  }
  ~OwnRuntimeFolder() {
    std::filesystem::remove_all(path_);
    before_.empty() ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
  }
  OwnRuntimeFolder(const OwnRuntimeFolder&) = delete;
  OwnRuntimeFolder& operator=(const OwnRuntimeFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path live() const { return path_ / "plimsoll"; }

 private:
  std::filesystem::path path_;
  std::string before_;
};

}  // namespace plimsoll
