#include "plimsoll/cli/gzip_text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

void read_gzip_text(const char* what, const std::string& path, const std::function<void(std::string_view)>& feed,
                    const std::function<std::size_t()>& lines) {
  const std::string name = std::filesystem::path(path).filename().string();
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr)
    throw NotFound(
        fmt::format("{} \"{}\": cannot be opened: {}", what, path, std::strerror(errno == 0 ? ENOMEM : errno)));
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const int got = gzread(file.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    feed(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
  }
  int code = Z_OK;
  const char* reason = gzerror(file.get(), &code);
  if (code == Z_ERRNO) throw NotFound(fmt::format("{} \"{}\": cannot be read: {}", what, path, std::strerror(errno)));
  if (code == Z_BUF_ERROR)
    throw Corruption(
        fmt::format("{} \"{}\": line {}: the gzip stream ends here; it is truncated", what, name, lines() + 1));
  if (code != Z_OK)
    throw Corruption(fmt::format("{} \"{}\": line {}: damaged gzip stream: {}", what, name, lines() + 1, reason));
}

}  // namespace plimsoll::internal
