#include "plimsoll/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"

namespace plimsoll {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr mode_t kPermissionBits = 07777;

// The file at the end of a chain of links, whether it exists or not.
std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code ignored;
  for (int depth = 0; depth < 40 && std::filesystem::is_symlink(path, ignored); ++depth)
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  return path;
}

std::filesystem::path temporary_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> count{0};
  std::filesystem::path name = target;
  name += fmt::format(".tmp-{}-{}", getpid(), count++);
  return name;
}

// Some file systems cannot sync a directory; they say EINVAL, and there is nothing to be done.
bool sync_directory(const std::filesystem::path& directory) {
  const int handle = open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return false;
  const bool synced = fsync(handle) == 0 || errno == EINVAL;
  const int error = errno;
  close(handle);
  errno = error;
  return synced;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), target_(follow_links(path)), temporary_(temporary_name(target_)) {
  if (!target_.has_filename() || std::filesystem::is_directory(target_))
    throw_system_error("file", path_.native(), "create", EISDIR);
  buffer_.reserve(kBufferBytes);
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) throw_system_error("file", path_.native(), "create", errno);
  struct stat before {};
  if (stat(target_.c_str(), &before) == 0 && fchmod(file_, before.st_mode & kPermissionBits) != 0)
    fail("set permissions");
}

AtomicFile::~AtomicFile() { give_up(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  require_open("write");
  bytes_written_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) return put(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::commit() {
  require_open("commit");
  flush();
  if (fsync(file_) != 0) fail("sync");
  if (close(std::exchange(file_, -1)) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    throw_system_error("file", path_.native(), "close", error);
  }
  if (rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    throw_system_error("file", path_.native(), "replace", error);
  }
  if (!sync_directory(target_.parent_path()))
    throw_system_error("file", path_.native(), "sync the directory of", errno);
}

void AtomicFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void AtomicFile::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::give_up() noexcept {
  if (file_ < 0) return;
  close(std::exchange(file_, -1));
  unlink(temporary_.c_str());
}

void AtomicFile::require_open(const char* verb) const {
  if (file_ < 0)
    throw FailedPrecondition(
        fmt::format("file \"{}\": cannot {}: already committed or given up; open it anew", path_.native(), verb));
}

void AtomicFile::fail(const char* verb) {
  const int error = errno;
  give_up();
  throw_system_error("file", path_.native(), verb, error);
}

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_system_error("file", path.native(), "open", errno);
  const std::unique_ptr<const int, void (*)(const int*)> closer(&file, [](const int* handle) { close(*handle); });
  std::string text;
  for (std::size_t used = 0;;) {
    // Room for one byte more than allowed tells a file that is too large from one that just fits.
    if (used == text.size()) text.resize(std::min(std::max<std::size_t>(2 * used, 4096), max_bytes + 1));
    const ssize_t got = read(file, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("file", path.native(), "read", errno);
    used += static_cast<std::size_t>(got);
    if (used > max_bytes)
      throw InvalidArgument(
          fmt::format("file \"{}\": larger than the {} bytes allowed here", path.native(), max_bytes));
    if (got > 0) continue;
    text.resize(used);
    return text;
  }
}

}  // namespace plimsoll
