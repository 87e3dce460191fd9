#include "plimsoll/cli/live/serve_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/observe/http/http_server.h"

namespace plimsoll::internal {

std::string serve_token(const std::string& path) {
  if (path.empty()) return make_token();
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) {
    std::string token = make_token();
    const ssize_t count = write(file, token.data(), token.size());
    close(file);
    if (count != static_cast<ssize_t>(token.size())) throw_system_error("serve", path, "write", errno);
    return token;
  }
  if (errno != EEXIST) throw_system_error("serve", path, "make", errno);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw_system_error("serve", path, "look at", errno);
  if ((status.st_mode & 077) != 0)
    throw FailedPrecondition(fmt::format("serve: others can read the token in \"{}\"; chmod 600 it", path));
  const std::string text = read_file(path, 4096);
  constexpr const char* kAllowed = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~+/=";
  const std::size_t end = std::min(text.find_first_not_of(kAllowed), text.size());
  if (end < 16 || text.find_first_not_of("\r\n ", end) != std::string::npos)
    throw InvalidArgument(fmt::format(
        "serve: \"{}\" has no token of 16 or more letters and digits; remove the file, and a new one is written",
        path));
  return text.substr(0, end);
}

}  // namespace plimsoll::internal
